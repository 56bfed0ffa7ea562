#include "solvers/report/report.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "solvers/base/text_escape.h"
#include "solvers/model/field_error.h"
#include "solvers/report/page_text.h"
#include "solvers/report/palette.h"
#include "solvers/report/report_data.h"
#include "solvers/report/report_numbers.h"

namespace stowage {
namespace {

std::string NameOf(const Problem& problem) {
  const std::string name = std::visit([](const auto& kind) { return kind.name(); }, problem);
  return name.empty() ? "a network without a name" : name;
}

std::string KindText(const Problem& problem) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    return absl::StrCat("Graph of ", graph->size(), " vertices");
  }
  return absl::StrCat("Chain of ", std::get<Chain>(problem).length(), " stages");
}

// Nothing in the page may ask a network, or run what is not the page's own.
std::string Head(const std::string& title) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n"
      "<title>",
      HtmlEscaped(title), "</title>\n<style>\n:root{color-scheme:light dark;", PaletteCss(), "}\n",
      kPageStyle, "@media print{:root{color-scheme:light;", PaletteCss(),
      "}}\n</style>\n</head>\n");
}

constexpr char kStepSection[] =
    "<section>\n<div class=\"head\"><h2>The step in time</h2><span class=\"buttons\">"
    "<button id=\"closer\" aria-label=\"closer in\">+</button>"
    "<button id=\"wider\" aria-label=\"further out\">&#8722;</button>"
    "<button id=\"whole\">whole step</button></span></div>\n"
    "<div class=\"bar\"><span class=\"legend\" id=\"works\"></span>"
    "<span class=\"legend\" id=\"uses\"></span></div>\n"
    "<div id=\"timeline\"></div>\n"
    "<p class=\"keys\" id=\"keys\">Wheel or <kbd>+</kbd> <kbd>&#8722;</kbd> to zoom, drag or "
    "<kbd>Shift</kbd> <kbd>&#8592;</kbd> <kbd>&#8594;</kbd> to move, <kbd>&#8592;</kbd> "
    "<kbd>&#8594;</kbd> from instruction to instruction, <kbd>0</kbd> for the whole step.</p>\n"
    "</section>\n";

constexpr char kStageSection[] =
    "<section>\n<h2>What becomes of what each stage makes</h2>\n<div id=\"stages\"></div>\n"
    "<p class=\"keys\">Click a stage to mark its instructions in the step above.</p>\n"
    "<details id=\"stage-table\"><summary>All stages as a table</summary></details>\n</section>\n";

std::string Top(const Report& report) {
  std::string top = absl::StrCat("<div class=\"top\">\n<section>\n<h2>Numbers</h2>\n",
                                 NumbersTable(report.plans), "</section>\n");
  if (!report.curves.empty() || !report.others.empty()) {
    absl::StrAppend(
        &top,
        "<section>\n<h2>Time over storing everything, against memory</h2>\n<div "
        "id=\"frontier\"></div>\n"
        "<p class=\"keys\">The line is what the solver has at each budget, a cross what "
        "another strategy has here; no schedule is in the shaded part.</p>\n"
        "<details id=\"frontier-table\"><summary>The points as a table</summary></details>\n"
        "</section>\n");
  }
  return top + "</div>\n";
}

}  // namespace

absl::StatusOr<std::string> HtmlReport(const Problem& problem, const Report& report) {
  if (report.plans.empty() || report.plans.size() > 2) {
    return FieldError("report.plans", static_cast<int64_t>(report.plans.size()),
                      "must be one plan, or two to compare");
  }
  const std::string name = NameOf(problem);
  return absl::StrCat(Head(absl::StrCat(name, ", ", report.plans.front().label)),
                      "<body>\n<header>\n<h1>", HtmlEscaped(name), "</h1>\n<p class=\"lead\">",
                      KindText(problem), ". ", HtmlEscaped(LeadText(report.plans.front())),
                      "</p>\n</header>\n", Top(report), kStepSection, kStageSection,
                      "<noscript><p>The pictures need scripts, which this browser does not run."
                      "</p></noscript>\n<script type=\"application/json\" id=\"data\">\n",
                      ReportData(problem, report),
                      "\n</script>\n<script>\n'use strict';\n(() => {\n", kPageScript,
                      "})();\n</script>\n</body>\n</html>\n");
}

}  // namespace stowage

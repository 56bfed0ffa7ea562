#include "solvers/viz/report.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "solvers/base/text_escape.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/text.h"
#include "solvers/viz/drawn_plan.h"
#include "solvers/viz/pictures.h"

namespace stowage {
namespace {

double Ratio(int64_t a, int64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

std::string Percent(double ratio) { return absl::StrFormat("%.1f%%", 100.0 * ratio); }

// Over a step without a budget: "+5.9%".
std::string Overhead(const Plan& plan, Nanos time) {
  const int64_t plain = plan.bounds.store_all_makespan.value();
  return absl::StrFormat("%+.1f%%", plain == 0 ? 0.0 : 100.0 * (Ratio(time.value(), plain) - 1.0));
}

// "+1.2%" of a measured value to the predicted one, "as predicted" if equal.
std::string Against(int64_t measured, int64_t predicted) {
  if (measured == predicted) return "as predicted";
  return absl::StrFormat("%+.1f%%", 100.0 * (Ratio(measured, predicted) - 1.0));
}

std::string BudgetCell(const Plan& plan) {
  const std::string budget = ToString(plan.budget);
  if (plan.bounds.store_all_peak == Bytes(0)) return budget;
  const double share = Ratio(plan.budget.value(), plan.bounds.store_all_peak.value());
  return absl::StrCat(budget, ", ", Percent(share), " of storing everything");
}

std::string RecomputedCell(const Simulation& s) {
  if (s.recomputed_forwards == 0) return "nothing";
  return absl::StrCat(s.recomputed_forwards,
                      s.recomputed_forwards == 1 ? " forward, " : " forwards, ",
                      ToString(s.recompute_time));
}

std::string OffloadedCell(const Simulation& s) {
  if (s.offloaded == Bytes(0)) return "nothing";
  return absl::StrCat(ToString(s.offloaded), " out, ", ToString(s.prefetched), " back");
}

std::string BoundCell(const Plan& plan) {
  if (plan.bounds.lower_bound == Nanos(0)) return "not known";
  return absl::StrCat(ToString(plan.bounds.lower_bound), ", the plan is ",
                      plan.gap() > 0.0 ? absl::StrCat(Percent(plan.gap()), " above it") : "there");
}

// A row of cells; a cell for measured steps is empty where nothing is measured of it.
class TableWriter {
 public:
  explicit TableWriter(const std::vector<DrawnPlan>& plans) : plans_(plans) {}

  template <class Predicted, class Measured>
  void Row(const char* label, const Predicted& predicted, const Measured& measured) {
    absl::StrAppend(&rows_, "<tr><th scope=\"row\">", label, "</th>");
    for (const DrawnPlan& plan : plans_) {
      absl::StrAppend(&rows_, "<td>", HtmlEscaped(predicted(plan)), "</td>");
      if (plan.measured) absl::StrAppend(&rows_, "<td>", HtmlEscaped(measured(plan)), "</td>");
    }
    absl::StrAppend(&rows_, "</tr>\n");
  }
  template <class Predicted>
  void Row(const char* label, const Predicted& predicted) {
    Row(label, predicted, [](const DrawnPlan&) { return std::string(); });
  }

  std::string Finish() const {
    return absl::StrCat("<table class=\"numbers\">\n", Head(), "<tbody>\n", rows_,
                        "</tbody></table>\n");
  }

 private:
  // Nothing for one plan without a measured step.
  std::string Head() const {
    if (plans_.size() == 1 && !plans_.front().measured) return "";
    std::string head = "<thead><tr><th></th>";
    for (size_t p = 0; p < plans_.size(); ++p) {
      const DrawnPlan& plan = plans_[p];
      const std::string name =
          plans_.size() > 1 ? absl::StrCat(p == 0 ? "A  " : "B  ", plan.label) : "predicted";
      absl::StrAppend(&head, "<th scope=\"col\">", HtmlEscaped(name), "</th>");
      if (plan.measured) absl::StrAppend(&head, "<th scope=\"col\">measured</th>");
    }
    return head + "</tr></thead>\n";
  }

  const std::vector<DrawnPlan>& plans_;
  std::string rows_;
};

// One sentence about a plan: what it takes against storing everything. Not escaped.
std::string LeadText(const DrawnPlan& drawn) {
  const Plan& plan = drawn.plan;
  const Simulation& s = drawn.step.simulation;
  std::string text = absl::StrCat("A training step within ", ToString(plan.budget), ": ",
                                  ToString(s.peak), " at its peak, ", ToString(s.makespan));
  const Bounds& b = plan.bounds;
  if (b.store_all_makespan == Nanos(0)) return text + ".";
  return absl::StrCat(text, " (", Overhead(plan, s.makespan), "). Storing everything takes ",
                      ToString(b.store_all_peak), " and ", ToString(b.store_all_makespan), ".");
}

// A column per plan and per measured step.
std::string NumbersTable(const std::vector<DrawnPlan>& plans) {
  TableWriter table(plans);
  table.Row("budget", [](const DrawnPlan& p) { return BudgetCell(p.plan); });
  table.Row(
      "peak", [](const DrawnPlan& p) { return ToString(p.step.simulation.peak); },
      [](const DrawnPlan& p) {
        return absl::StrCat(ToString(p.measured->peak), ", ",
                            Against(p.measured->peak.value(), p.step.simulation.peak.value()));
      });
  table.Row(
      "step", [](const DrawnPlan& p) { return ToString(p.step.simulation.makespan); },
      [](const DrawnPlan& p) {
        return absl::StrCat(
            ToString(p.measured->step_time), ", ",
            Against(p.measured->step_time.value(), p.step.simulation.makespan.value()));
      });
  table.Row(
      "overhead", [](const DrawnPlan& p) { return Overhead(p.plan, p.step.simulation.makespan); },
      [](const DrawnPlan& p) { return Overhead(p.plan, p.measured->step_time); });
  table.Row("recomputed", [](const DrawnPlan& p) { return RecomputedCell(p.step.simulation); });
  table.Row("offloaded", [](const DrawnPlan& p) { return OffloadedCell(p.step.simulation); });
  table.Row("waiting", [](const DrawnPlan& p) {
    const Nanos idle = p.step.simulation.idle_time;
    return idle == Nanos(0) ? std::string("none") : ToString(idle);
  });
  table.Row("lower bound", [](const DrawnPlan& p) { return BoundCell(p.plan); });
  table.Row("optimal", [](const DrawnPlan& p) { return OptimalityText(p.plan); });
  table.Row("solver", [](const DrawnPlan& p) {
    const Provenance& by = p.plan.provenance;
    if (by.solver.empty()) return std::string("not known");
    return absl::StrCat(by.solver, by.solver_version.empty() ? "" : " ", by.solver_version, ", ",
                        ToString(by.solve_time));
  });
  return table.Finish();
}

std::string NameOf(const Problem& problem) {
  const std::string name = std::visit([](const auto& kind) { return kind.name(); }, problem);
  return name.empty() ? "a network without a name" : name;
}

std::string KindText(const Problem& problem) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    return graph->has_backwards() ? absl::StrCat("Graph of ", graph->size(), " vertices")
                                  : absl::StrCat("Compute DAG of ", graph->size(), " nodes");
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

namespace {

constexpr char kStage[] = "%";

// "[...]" of what `append` writes for each item.
template <class Items, class Append>
std::string List(const Items& items, const Append& append, const char* separator = ",") {
  return absl::StrCat("[", absl::StrJoin(items, separator, append), "]");
}

// Of numbers, those that `value` makes of the items.
template <class Items, class Value>
std::string Numbers(const Items& items, const Value& value) {
  return List(items, [&value](std::string* out, const auto& item) {
    absl::StrAppend(out, static_cast<int64_t>(value(item)));
  });
}

// The same of differences to the value before; the first's is 0.
template <class Items, class Value>
std::string Differences(const Items& items, const Value& value) {
  int64_t before = 0;
  return Numbers(items, [&](const auto& item) {
    const int64_t now = value(item);
    return now - std::exchange(before, now);
  });
}

std::string Texts(const std::vector<std::string>& texts) {
  return List(texts,
              [](std::string* out, const std::string& text) { out->append(JsonString(text)); });
}

std::string Points(const std::vector<TradeOff>& points) {
  return List(points, [](std::string* out, const TradeOff& p) {
    absl::StrAppend(out, "[", p.memory.value(), ",", p.makespan.value(), "]");
  });
}

// Patterns of all instructions' texts, by number.
class Patterns {
 public:
  int64_t NumberOf(const TimelineEvent& event) {
    const auto [found, is_new] =
        numbers_.emplace(EventText(event, kStage), static_cast<int64_t>(texts_.size()));
    if (is_new) texts_.push_back(found->first);
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, int64_t> numbers_;
  std::vector<std::string> texts_;
};

// What stages make: what storing them takes.
struct StageColumns {
  std::vector<std::string> op = {""};
  std::vector<int64_t> made, forward, backward;

  void Add(const std::string& op_kind, Bytes bytes, Nanos forward_time, Nanos backward_time) {
    op.push_back(op_kind);
    made.push_back(bytes.value());
    forward.push_back(forward_time.value());
    backward.push_back(backward_time.value());
  }
};

StageColumns ColumnsOf(const Problem& problem) {
  StageColumns columns;
  columns.forward = columns.backward = {0};
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    columns.made = {0};
    for (int p = 0; p < graph->size(); ++p) {
      const Vertex& v = graph->vertex(p);
      columns.Add(v.op_kind, graph->bytes(p) + v.extra_saved, v.forward_time, v.backward_time);
    }
    return columns;
  }
  const Chain& chain = std::get<Chain>(problem);
  columns.made = {chain.activation(0).value()};
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    columns.Add(s.op_kind, s.saved, s.forward_time, s.backward_time);
  }
  return columns;
}

std::string StageData(const Problem& problem) {
  const StageColumns columns = ColumnsOf(problem);
  const auto same = [](int64_t n) { return n; };
  return absl::StrCat("{\"label\":", Texts(StageLabels(problem)), ",\"op\":", Texts(columns.op),
                      ",\"made\":", Numbers(columns.made, same),
                      ",\"forward_ns\":", Numbers(columns.forward, same),
                      ",\"backward_ns\":", Numbers(columns.backward, same), "}");
}

std::string MemoryData(const StepTimeline& step) {
  std::string columns;
  for (size_t u = 0; u < kMemoryUses; ++u) {
    std::vector<int64_t> bytes;
    bool any = false;
    for (const TimelineEvent& event : step.events) {
      for (const MemoryByUse* memory : {&event.running, &event.held}) {
        bytes.push_back(memory->bytes[u].value());
        any |= bytes.back() != 0;
      }
    }
    if (!any) bytes.clear();
    absl::StrAppend(&columns, u == 0 ? "" : ",", Differences(bytes, [](int64_t b) { return b; }));
  }
  return absl::StrCat("[", columns, "]");
}

std::string MeasuredData(const MeasuredStep& step) {
  const auto& list = step.instructions;
  return absl::StrCat(
      "{\"peak_bytes\":", step.peak.value(), ",\"step_time_ns\":", step.step_time.value(),
      ",\"start\":", Differences(list, [](const auto& i) { return i.start.value(); }),
      ",\"duration\":", Numbers(list, [](const auto& i) { return (i.end - i.start).value(); }),
      ",\"peak\":", Differences(list, [](const auto& i) { return i.peak.value(); }),
      ",\"held\":", Differences(list, [](const auto& i) { return i.held_after.value(); }), "}");
}

std::string PlanData(const DrawnPlan& plan, Patterns* patterns) {
  const std::vector<TimelineEvent>& events = plan.step.events;
  const auto column = [&events](const auto& value) { return Numbers(events, value); };
  std::string data = absl::StrCat("{\"label\":", JsonString(plan.label),
                                  ",\"budget_bytes\":", plan.plan.budget.value(),
                                  ",\"makespan_ns\":", plan.step.simulation.makespan.value());
  absl::StrAppend(
      &data, ",\"work\":", column([](const auto& e) { return static_cast<int64_t>(e.work); }),
      ",\"stage\":", column([](const auto& e) { return e.instruction.stage; }), ",\"stream\":",
      column([](const auto& e) { return static_cast<int64_t>(e.instruction.stream); }),
      ",\"pattern\":", column([patterns](const auto& e) { return patterns->NumberOf(e); }));
  absl::StrAppend(&data,
                  ",\"start\":", Differences(events, [](const auto& e) { return e.start.value(); }),
                  ",\"duration\":", column([](const auto& e) { return (e.end - e.start).value(); }),
                  ",\"memory\":", MemoryData(plan.step),
                  ",\"host\":", Differences(events, [](const auto& e) { return e.host.value(); }));
  const auto stages = [&plan](const auto& value) { return Numbers(plan.stages, value); };
  absl::StrAppend(&data,
                  ",\"role\":", stages([](const auto& s) { return static_cast<int64_t>(s.role); }),
                  ",\"forwards\":", stages([](const auto& s) { return s.forwards; }),
                  ",\"offloaded\":", stages([](const auto& s) { return s.offloaded.value(); }));
  if (plan.measured) absl::StrAppend(&data, ",\"measured\":", MeasuredData(*plan.measured));
  return data + "}";
}

std::string FrontierData(const Report& report) {
  const Bounds& bounds = report.plans.front().plan.bounds;
  const std::string curves = List(report.curves, [](std::string* out, const ReportCurve& curve) {
    absl::StrAppend(out, "{\"label\":", JsonString(curve.label),
                    ",\"points\":", Points(curve.points), "}");
  });
  const std::string others = List(report.others, [](std::string* out, const ReportStrategy& other) {
    absl::StrAppend(out, "{\"label\":", JsonString(other.label),
                    ",\"bytes\":", other.at.memory.value(), ",\"time\":", other.at.makespan.value(),
                    "}");
  });
  return absl::StrCat("{\"curves\":", curves, ",\"others\":", others,
                      ",\"bound\":", Points(report.bound),
                      ",\"plain\":{\"bytes\":", bounds.store_all_peak.value(),
                      ",\"time\":", bounds.store_all_makespan.value(), "}}");
}

}  // namespace

std::string ReportData(const Problem& problem, const Report& report) {
  Patterns patterns;
  const std::string plans = List(
      report.plans,
      [&patterns](std::string* out, const DrawnPlan& plan) {
        out->append(PlanData(plan, &patterns));
      },
      ",\n");
  std::vector<std::string> works, uses;
  for (size_t w = 0; w < kStepWorks; ++w) works.push_back(ToString(static_cast<StepWork>(w)));
  for (size_t u = 0; u < kMemoryUses; ++u) uses.push_back(ToString(static_cast<MemoryUse>(u)));
  const int first_stage = std::holds_alternative<Chain>(problem) ? 0 : 1;
  return absl::StrCat("{\"works\":", Texts(works), ",\"uses\":", Texts(uses),
                      ",\"first_stage\":", first_stage, ",\"stages\":", StageData(problem),
                      ",\n\"plans\":", plans, ",\n\"patterns\":", Texts(patterns.texts()),
                      ",\"frontier\":", FrontierData(report), "}");
}

}  // namespace stowage

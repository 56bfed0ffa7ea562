// A plan, or two on one time axis, as one HTML page: numbers, the step in time on its streams, memory by
// use against the budget, what becomes of each stage, the frontier, what was measured beside what is
// predicted.
//
// The page has everything in it, asks no network for anything (its own policy forbids that) and works
// from a file. Pointer, wheel and keys move along the time axis; what is narrower than a pixel is drawn
// gathered. Colours are told apart by lightness alone, too; light and dark follow the reader's setting.
#ifndef STOWAGE_SOLVERS_VIZ_REPORT_H_
#define STOWAGE_SOLVERS_VIZ_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/viz/drawn_plan.h"

namespace stowage {

struct TradeOff {
  Bytes memory;
  Nanos makespan;
};

// What a solver has at every budget, of Frontier's points.
struct ReportCurve {
  std::string label;
  std::vector<TradeOff> points;  // memory rises, makespans fall
};

struct ReportStrategy {
  std::string label;
  TradeOff at;  // peak and makespan of its plan
};

struct Report {
  std::vector<DrawnPlan> plans;  // one, or two to compare
  // May be empty: then the page has no frontier.
  std::vector<ReportCurve> curves;
  std::vector<ReportStrategy> others;
  std::vector<TradeOff> bound;  // by budget, rising: no schedule is faster
};

// Plain ASCII. INVALID_ARGUMENT unless there are one or two plans. The plans are of `problem`. Some 60 KiB and
// 50 to 100 bytes per instruction and stage; O(instructions + stages).
absl::StatusOr<std::string> HtmlReport(const Problem& problem, const Report& report);

// What a report's scripts draw, as JSON.
//
// Columns, one number per instruction or stage. Starts, memory and measured bytes are differences to the
// one before; memory has two per instruction, while it runs and afterwards (TimelineEvent), and is empty
// for a use that there is none of. Texts of instructions are patterns with % for the stage's label.

// Plain ASCII, fit for the inside of <script>.
std::string ReportData(const Problem& problem, const Report& report);

// The style sheet and the scripts of reports (page/), as they are.

extern const char kPageStyle[];
extern const char kPageScript[];

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_REPORT_H_

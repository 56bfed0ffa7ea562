#include "client/cli/run_table.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/cells.h"
#include "client/cli/table.h"

namespace stowage {
namespace {

Table MakeTable(const VerificationReport& report) {
  std::vector<std::pair<std::string, std::string>> head = {{"budget", ""},
                                                           {"budget", "MiB"},
                                                           {"peak MiB", "predicted"},
                                                           {"peak MiB", "measured"},
                                                           {"step s", "predicted"},
                                                           {"step s", "measured"},
                                                           {"recomputed", "planned"},
                                                           {"recomputed", "executed"},
                                                           {"loss", "equal"},
                                                           {"gradients,", "state equal"},
                                                           {"64 B less", "fails, mends"},
                                                           {"plan", "from"},
                                                           {"plan", "ms"}};
  if (!report.link.empty()) {
    head.emplace_back("offloaded MiB", "planned");
    head.emplace_back("offloaded MiB", "executed");
  }
  if (report.arena) head.emplace_back("reserved", "MiB");
  return Table(std::move(head));
}

std::vector<std::string> RowOf(const Verified& one, const VerificationReport& report) {
  const Plan& plan = one.adopted.plan;
  if (!one.found()) {
    return {ToString(one.budget), Mebibytes(plan.budget), ToString(plan.status)};
  }
  const Simulation& predicted = plan.prediction;
  const StepReport& first = one.run.steps.front();
  const Equality& equal = one.equal;
  std::vector<std::string> cells = {
      ToString(one.budget),
      Mebibytes(plan.budget),
      Mebibytes(predicted.peak),
      Mebibytes(one.run.peak()),
      Seconds(predicted.makespan),
      Seconds(one.run.median_time()),
      absl::StrCat(predicted.recomputed_forwards),
      absl::StrCat(first.recomputed_forwards),
      YesNo(equal.loss),
      YesNo(equal.gradients && equal.parameters && equal.buffers && equal.random),
      one.limit_held ? YesNo(*one.limit_held) : "",
      ToString(one.adopted.source),
      absl::StrFormat("%.1f", static_cast<double>(one.adopted.request_time.value()) / 1e6)};
  if (!report.link.empty()) {
    cells.push_back(Mebibytes(predicted.offloaded));
    cells.push_back(Mebibytes(first.offloaded));
  }
  if (report.arena) cells.push_back(Mebibytes(one.memory.reserved_peak));
  return cells;
}

}  // namespace

std::string RunTable(const VerificationReport& report) {
  Table table = MakeTable(report);
  table.AddRow({"none", "", "", Mebibytes(report.plain.peak()), Seconds(report.plain_prediction),
                Seconds(report.plain.median_time())});
  for (const Verified& one : report.budgets) table.AddRow(RowOf(one, report));
  return table.ToString();
}

}  // namespace stowage

#include "client/cli/verification_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/cells.h"
#include "client/cli/json_text.h"
#include "client/cli/table.h"

namespace stowage {
namespace {

constexpr size_t kColumns = 16;

std::string PlannedAndExecuted(int planned, int executed) {
  return absl::StrCat(planned, " / ", executed);
}

Table MakeTable() {
  return Table({{"budget", ""},
                {"budget", "MiB"},
                {"peak MiB", "predicted"},
                {"peak MiB", "measured"},
                {"reserved", "MiB"},
                {"stranded", "MiB"},
                {"step s", "predicted"},
                {"step s", "measured"},
                {"recomputes", "plan / done"},
                {"copies", "plan / done"},
                {"loss", "equal"},
                {"gradients", "equal"},
                {"parameters", "equal"},
                {"buffers", "equal"},
                {"random", "equal"},
                {"plan", "from"}});
}

std::vector<std::string> RowOf(const Verified& one) {
  const Plan& plan = one.adopted.plan;
  std::vector<std::string> cells = {ToString(one.budget), Mebibytes(plan.budget)};
  if (!one.found()) {
    cells.emplace_back(ToString(plan.status));
    cells.resize(kColumns);
    return cells;
  }
  const int executed = one.run.steps.front().recomputed_forwards;
  for (std::string cell :
       {Mebibytes(plan.prediction.peak), Mebibytes(one.run.peak()),
        Mebibytes(one.memory.reserved_peak),
        one.memory.served ? Mebibytes(one.memory.stranded) : std::string(),
        Seconds(plan.prediction.makespan), Seconds(one.run.median_time()),
        PlannedAndExecuted(plan.prediction.recomputed_forwards, executed),
        PlannedAndExecuted(one.planned_transfers, one.executed_transfers),
        std::string(YesNo(one.equal.loss)), std::string(YesNo(one.equal.gradients)),
        std::string(YesNo(one.equal.parameters)), std::string(YesNo(one.equal.buffers)),
        std::string(YesNo(one.equal.random)), std::string(ToString(one.adopted.source))}) {
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::string TimeAndPeak(Nanos time, Bytes peak) {
  return JsonObject(
      {{"step_time_ns", absl::StrCat(time.value())}, {"peak_bytes", absl::StrCat(peak.value())}});
}

std::string Counts(int planned, int executed) {
  return JsonObject({{"planned", absl::StrCat(planned)}, {"executed", absl::StrCat(executed)}});
}

std::string Reserved(const StepMemory& memory) {
  return JsonObject({{"peak_bytes", absl::StrCat(memory.reserved_peak.value())},
                     {"served_from_region", JsonBool(memory.served)},
                     {"region_bytes", absl::StrCat(memory.extent.value())},
                     {"stranded_bytes", absl::StrCat(memory.stranded.value())}});
}

std::string JsonOf(const Verified& one) {
  const Plan& plan = one.adopted.plan;
  JsonFields fields = {{"budget", JsonString(ToString(one.budget))},
                       {"budget_bytes", absl::StrCat(plan.budget.value())},
                       {"status", JsonString(ToString(plan.status))}};
  if (!one.found()) return JsonObject(fields);
  std::vector<std::string> faults;
  for (const std::string& fault : one.faults) faults.push_back(JsonString(fault));
  const JsonFields more = {
      {"plan", JsonString(one.adopted.digest.ToHex())},
      {"solver", JsonString(plan.provenance.solver)},
      {"source", JsonString(ToString(one.adopted.source))},
      {"predicted", TimeAndPeak(plan.prediction.makespan, plan.prediction.peak)},
      {"measured", TimeAndPeak(one.run.median_time(), one.run.peak())},
      {"reserved", Reserved(one.memory)},
      {"recomputed_forwards",
       Counts(plan.prediction.recomputed_forwards, one.run.steps.front().recomputed_forwards)},
      {"transfers", Counts(one.planned_transfers, one.executed_transfers)},
      {"equal", JsonObject({{"loss", JsonBool(one.equal.loss)},
                            {"gradients", JsonBool(one.equal.gradients)},
                            {"parameters", JsonBool(one.equal.parameters)},
                            {"buffers", JsonBool(one.equal.buffers)},
                            {"random_state", JsonBool(one.equal.random)}})},
      {"faults", JsonArray(faults)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return JsonObject(fields);
}

}  // namespace

bool VerificationReport::equal() const {
  return std::all_of(budgets.begin(), budgets.end(),
                     [](const Verified& one) { return one.faults.empty(); });
}

bool VerificationReport::all_found() const {
  return std::all_of(budgets.begin(), budgets.end(),
                     [](const Verified& one) { return one.found(); });
}

std::string ToText(const VerificationReport& report) {
  Table table = MakeTable();
  std::vector<std::string> plain = {"none", "", "", Mebibytes(report.plain.peak()),
                                    "",     "", "", Seconds(report.plain.median_time())};
  plain.resize(kColumns);
  table.AddRow(std::move(plain));
  std::string faults;
  for (const Verified& one : report.budgets) {
    table.AddRow(RowOf(one));
    for (const std::string& fault : one.faults) {
      absl::StrAppend(&faults, ToString(one.budget), ": ", fault, "\n");
    }
  }
  return absl::StrCat(report.model, " as a ", report.graph ? "graph" : "chain", ", ", report.steps,
                      " steps each\n", table.ToString(), faults);
}

std::string ToJson(const VerificationReport& report) {
  std::vector<std::string> budgets;
  for (const Verified& one : report.budgets) budgets.push_back(JsonOf(one));
  return absl::StrCat(
      JsonObject({{"model", JsonString(report.model)},
                  {"form", JsonString(report.graph ? "graph" : "chain")},
                  {"steps", absl::StrCat(report.steps)},
                  {"plain", TimeAndPeak(report.plain.median_time(), report.plain.peak())},
                  {"budgets", JsonArray(budgets)},
                  {"equal", JsonBool(report.equal())}}),
      "\n");
}

}  // namespace stowage

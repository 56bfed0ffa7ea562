#include "client/cli/verification_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/cells.h"
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

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

using Fields = std::vector<std::pair<std::string, std::string>>;

// Values are JSON already.
std::string Object(const Fields& fields) {
  return absl::StrCat("{",
                      absl::StrJoin(fields, ", ",
                                    [](std::string* out, const auto& field) {
                                      absl::StrAppend(out, Quoted(field.first), ": ", field.second);
                                    }),
                      "}");
}

std::string Bool(bool value) { return value ? "true" : "false"; }

std::string TimeAndPeak(Nanos time, Bytes peak) {
  return Object(
      {{"step_time_ns", absl::StrCat(time.value())}, {"peak_bytes", absl::StrCat(peak.value())}});
}

std::string Counts(int planned, int executed) {
  return Object({{"planned", absl::StrCat(planned)}, {"executed", absl::StrCat(executed)}});
}

std::string Reserved(const MemoryUse& memory) {
  return Object({{"peak_bytes", absl::StrCat(memory.reserved_peak.value())},
                 {"served_from_region", Bool(memory.served)},
                 {"region_bytes", absl::StrCat(memory.extent.value())},
                 {"stranded_bytes", absl::StrCat(memory.stranded.value())}});
}

std::string JsonOf(const Verified& one) {
  const Plan& plan = one.adopted.plan;
  Fields fields = {{"budget", Quoted(ToString(one.budget))},
                   {"budget_bytes", absl::StrCat(plan.budget.value())},
                   {"status", Quoted(ToString(plan.status))}};
  if (!one.found()) return Object(fields);
  std::vector<std::string> faults;
  for (const std::string& fault : one.faults) faults.push_back(Quoted(fault));
  const Fields more = {{"plan", Quoted(one.adopted.digest.ToHex())},
                       {"solver", Quoted(plan.provenance.solver)},
                       {"source", Quoted(ToString(one.adopted.source))},
                       {"predicted", TimeAndPeak(plan.prediction.makespan, plan.prediction.peak)},
                       {"measured", TimeAndPeak(one.run.median_time(), one.run.peak())},
                       {"reserved", Reserved(one.memory)},
                       {"recomputed_forwards", Counts(plan.prediction.recomputed_forwards,
                                                      one.run.steps.front().recomputed_forwards)},
                       {"transfers", Counts(one.planned_transfers, one.executed_transfers)},
                       {"equal", Object({{"loss", Bool(one.equal.loss)},
                                         {"gradients", Bool(one.equal.gradients)},
                                         {"parameters", Bool(one.equal.parameters)},
                                         {"buffers", Bool(one.equal.buffers)},
                                         {"random_state", Bool(one.equal.random)}})},
                       {"faults", absl::StrCat("[", absl::StrJoin(faults, ", "), "]")}};
  fields.insert(fields.end(), more.begin(), more.end());
  return Object(fields);
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
      Object({{"model", Quoted(report.model)},
              {"form", Quoted(report.graph ? "graph" : "chain")},
              {"steps", absl::StrCat(report.steps)},
              {"plain", TimeAndPeak(report.plain.median_time(), report.plain.peak())},
              {"budgets", absl::StrCat("[", absl::StrJoin(budgets, ", "), "]")},
              {"equal", Bool(report.equal())}}),
      "\n");
}

}  // namespace stowage

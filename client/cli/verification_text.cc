#include "client/cli/verification_text.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/cells.h"
#include "client/cli/json_text.h"

namespace stowage {
namespace {

using Cells = std::vector<Listing::Cell>;

// Cells that its row has no meaning for are nothing.
void AddRow(Cells cells, size_t columns, Listing* listing) {
  cells.resize(columns, Listing::Nothing());
  listing->AddRow(std::move(cells));
}

Listing::Cell Size(Bytes bytes) { return Listing::Number(Mebibytes(bytes), bytes.value()); }
Listing::Cell Time(Nanos time) { return Listing::Number(Seconds(time), time.value()); }
// "NO" is seen in a table.
Listing::Cell Holds(bool holds) { return {YesNo(holds), JsonBool(holds), false}; }
Listing::Cell OnlyText(const std::string& text) { return {text, "", true}; }
Listing::Cell PlannedAndExecuted(int planned, int executed) {
  return OnlyText(absl::StrCat(planned, " / ", executed));
}

const std::vector<Listing::Column>& BudgetColumns() {
  static const auto* const kColumns =
      new std::vector<Listing::Column>{{"budget", "", "budget"},
                                       {"budget", "MiB", "budget_bytes"},
                                       {"peak MiB", "predicted", "predicted_peak_bytes"},
                                       {"peak MiB", "measured", "measured_peak_bytes"},
                                       {"reserved", "MiB", "reserved_peak_bytes"},
                                       {"fragmentation", "MiB", "fragmentation_bytes"},
                                       {"step s", "predicted", "predicted_step_time_ns"},
                                       {"step s", "measured", "measured_step_time_ns"},
                                       {"recomputes", "plan / done", ""},
                                       {"copies", "plan / done", ""},
                                       {"loss", "equal", "loss_equal"},
                                       {"gradients", "equal", "gradients_equal"},
                                       {"parameters", "equal", "parameters_equal"},
                                       {"buffers", "equal", "buffers_equal"},
                                       {"random", "equal", "random_state_equal"},
                                       {"plan", "from", "source"},
                                       {"", "", "status"},
                                       {"", "", "planned_recomputes"},
                                       {"", "", "executed_recomputes"},
                                       {"", "", "planned_transfers"},
                                       {"", "", "executed_transfers"},
                                       {"", "", "plan"},
                                       {"", "", "solver"},
                                       {"", "", "faults"}};
  return *kColumns;
}

Cells RowOf(const Verified& one) {
  const Plan& plan = one.adopted.plan;
  const std::string status = ToString(plan.status);
  Cells cells = {Listing::Text(ToString(one.budget)), Size(plan.budget)};
  if (!one.found()) {
    cells.push_back(OnlyText(status));
    cells.resize(16, Listing::Nothing());
    cells.push_back(Listing::Text(status));
    return cells;
  }
  const int planned = plan.prediction.recomputed_forwards;
  const int executed = one.run.steps.front().recomputed_forwards;
  const Cells more = {Size(plan.prediction.peak),
                      Size(one.run.peak()),
                      Size(one.memory.reserved_peak),
                      one.memory.served ? Size(one.memory.fragmentation) : Listing::Nothing(),
                      Time(plan.prediction.makespan),
                      Time(one.run.median_time()),
                      PlannedAndExecuted(planned, executed),
                      PlannedAndExecuted(one.planned_transfers, one.executed_transfers),
                      Holds(one.equal.loss),
                      Holds(one.equal.gradients),
                      Holds(one.equal.parameters),
                      Holds(one.equal.buffers),
                      Holds(one.equal.random),
                      Listing::Text(ToString(one.adopted.source)),
                      Listing::Text(status),
                      Listing::Integer(planned),
                      Listing::Integer(executed),
                      Listing::Integer(one.planned_transfers),
                      Listing::Integer(one.executed_transfers),
                      Listing::Text(one.adopted.digest.ToHex()),
                      Listing::Text(plan.provenance.solver),
                      Listing::Text(absl::StrJoin(one.faults, "; "))};
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

const std::vector<Listing::Column>& StepColumns() {
  static const auto* const kColumns =
      new std::vector<Listing::Column>{{"", "", "budget"},
                                       {"", "", "budget_bytes"},
                                       {"", "", "status"},
                                       {"", "", "plan"},
                                       {"", "", "solver"},
                                       {"", "", "source"},
                                       {"", "", "predicted_step_time_ns"},
                                       {"", "", "predicted_peak_bytes"},
                                       {"", "", "step"},
                                       {"", "", "step_time_ns"},
                                       {"", "", "peak_bytes"},
                                       {"", "", "recomputed_forwards"},
                                       {"", "", "offloaded_bytes"},
                                       {"", "", "prefetched_bytes"},
                                       {"", "", "loss"}};
  return *kColumns;
}

// A row for each step, behind what all of them share.
void AddSteps(const Cells& shared, const Trajectory& run, Listing* listing) {
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const StepReport& step = run.steps[i];
    Cells cells = shared;
    for (const Listing::Cell& cell :
         {Listing::Integer(static_cast<int64_t>(i) + 1), Time(step.wall_time), Size(step.peak),
          Listing::Integer(step.recomputed_forwards), Size(step.offloaded), Size(step.prefetched),
          Listing::Number("", step.loss.Get())}) {
      cells.push_back(cell);
    }
    listing->AddRow(std::move(cells));
  }
}

}  // namespace

Listing BudgetsOf(const VerificationReport& report) {
  Listing listing(BudgetColumns());
  const Listing::Cell no = Listing::Nothing();
  AddRow({Listing::Text("none"), no, no, Size(report.plain.peak()), no, no,
          Time(report.plain_prediction), Time(report.plain.median_time())},
         BudgetColumns().size(), &listing);
  for (const Verified& one : report.budgets) {
    AddRow(RowOf(one), BudgetColumns().size(), &listing);
  }
  return listing;
}

Listing StepsOf(const VerificationReport& report) {
  Listing listing(StepColumns());
  const Listing::Cell no = Listing::Nothing();
  AddSteps({Listing::Text("none"), no, no, no, no, no, Time(report.plain_prediction), no},
           report.plain, &listing);
  for (const Verified& one : report.budgets) {
    const Plan& plan = one.adopted.plan;
    Cells shared = {Listing::Text(ToString(one.budget)), Size(plan.budget),
                    Listing::Text(ToString(plan.status))};
    if (one.found()) {
      for (const Listing::Cell& cell :
           {Listing::Text(one.adopted.digest.ToHex()), Listing::Text(plan.provenance.solver),
            Listing::Text(ToString(one.adopted.source)), Time(plan.prediction.makespan),
            Size(plan.prediction.peak)}) {
        shared.push_back(cell);
      }
      AddSteps(shared, one.run, &listing);
    } else {
      AddRow(std::move(shared), StepColumns().size(), &listing);
    }
  }
  return listing;
}

std::string ToText(const VerificationReport& report) {
  std::string faults;
  for (const Verified& one : report.budgets) {
    for (const std::string& fault : one.faults) {
      absl::StrAppend(&faults, ToString(one.budget), ": ", fault, "\n");
    }
  }
  std::string spread;
  if (report.plain_spread) {
    spread = absl::StrCat(
        "runs of plain training differ here, by shares of ", report.plain_spread->loss,
        " of the loss and ", report.plain_spread->parameters,
        " of the parameters: planned runs are held to that, not to be equal bit for bit\n");
  }
  return absl::StrCat(report.model, " as a ", report.form(), ", ", report.steps,
                      report.steps == 1 ? " step each\n" : " steps each\n",
                      BudgetsOf(report).Table(), spread, faults);
}

}  // namespace stowage

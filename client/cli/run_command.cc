#include <iostream>
#include <optional>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/agent/agent.h"
#include "client/cli/cells.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/known_profile.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"
#include "client/cli/table.h"
#include "client/cli/training_comparison.h"
#include "client/cli/training_flags.h"
#include "client/rpc/server_flags.h"
#include "client/torch/plain_step.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

std::string Steps(int steps) { return absl::StrCat(steps, steps == 1 ? " step" : " steps"); }

// One line of the table, and what is wrong with it.
struct Row {
  std::vector<std::string> cells;
  std::vector<std::string> faults;
};

class BudgetRuns {
 public:
  BudgetRuns(Workload workload, AgentOptions options, uint64_t seed, int steps)
      : workload_(std::move(workload)),
        agent_(&workload_.model, std::move(options)),
        training_(&workload_.model, &workload_.sample, seed,
                  [this](const at::Tensor& input, const at::Tensor& target) {
                    return PlainStep(workload_.model, input, target);
                  }),
        steps_(steps) {}

  const Agent& agent() const { return agent_; }

  absl::Status Prepare(std::optional<Profile> known) {
    absl::StatusOr<Trajectory> reference = training_.TrainPlain(steps_);
    if (!reference.ok()) return reference.status();
    plain_ = *std::move(reference);
    return KnowOrProfile(&agent_, workload_.sample, std::move(known));
  }

  Row PlainRow() {
    const Chain& chain = std::get<Chain>(agent_.profile()->problem);
    return {{"none", "", "", Mebibytes(plain_.peak()), Seconds(chain.ideal_time()),
             Seconds(plain_.median_time()), "", "", "", "", "", "", ""},
            {}};
  }

  absl::StatusOr<Row> RunBudget(const Budget& budget) {
    absl::StatusOr<AdoptedPlan> adopted =
        agent_.Plan(workload_.sample.input, workload_.sample.target, budget);
    if (!adopted.ok()) return adopted.status();
    if (adopted->plan.status != PlanStatus::kFound) return InfeasibleRow(budget, *adopted);
    const StepFunction step = [this](const at::Tensor& input, const at::Tensor& target) {
      return agent_.Step(input, target);
    };
    absl::StatusOr<Trajectory> run = training_.Train(steps_, step);
    if (!run.ok()) return run.status();
    const absl::Status limit = training_.CheckLimit(run->peak(), step);
    TellServer();
    return FoundRow(budget, *adopted, *run, limit);
  }

 private:
  // What the steps took goes into the service's figures; planning here keeps none.
  void TellServer() {
    const absl::StatusOr<ExecutionVerdict> verdict = agent_.Report();
    if (verdict.ok()) {
      Say(absl::StrCat("reported what the steps took: ", ToString(*verdict)));
    } else if (!absl::IsUnimplemented(verdict.status())) {
      Say(absl::StrCat("could not report what the steps took: ",
                       std::string(verdict.status().message())));
    }
  }

  static Row InfeasibleRow(const Budget& budget, const AdoptedPlan& adopted) {
    Row row;
    row.cells = {ToString(budget), Mebibytes(adopted.plan.budget), ToString(adopted.plan.status)};
    row.cells.resize(13);
    return row;
  }

  Row FoundRow(const Budget& budget, const AdoptedPlan& adopted, const Trajectory& run,
               const absl::Status& limit) const {
    const Simulation& predicted = adopted.plan.prediction;
    const Equality equal = Compare(run, plain_);
    const int executed = run.steps.front().recomputed_forwards;
    Row row;
    row.cells = {ToString(budget),
                 Mebibytes(adopted.plan.budget),
                 Mebibytes(predicted.peak),
                 Mebibytes(run.peak()),
                 Seconds(predicted.makespan),
                 Seconds(run.median_time()),
                 absl::StrCat(predicted.recomputed_forwards),
                 absl::StrCat(executed),
                 YesNo(equal.loss),
                 YesNo(equal.gradients && equal.parameters && equal.buffers && equal.random),
                 YesNo(limit.ok()),
                 ToString(adopted.source),
                 absl::StrFormat("%.1f", static_cast<double>(adopted.request_time.value()) / 1e6)};
    const auto expect = [&row, &budget](bool holds, const std::string& what) {
      if (!holds) row.faults.push_back(absl::StrCat(ToString(budget), ": ", what));
    };
    expect(run.peak() <= adopted.plan.budget, "the measured peak exceeds the budget");
    for (const StepReport& step : run.steps) {
      expect(step.recomputed_forwards == predicted.recomputed_forwards,
             "not as many recomputes as planned");
    }
    expect(adopted.plan.budget >= adopted.plan.bounds.store_all_peak || executed > 0,
           "nothing was recomputed");
    expect(equal.all(), "the training differs from plain training");
    expect(limit.ok(), std::string(limit.message()));
    return row;
  }

  Workload workload_;
  Agent agent_;
  TrainingComparison training_;
  int steps_;
  Trajectory plain_;
};

Table MakeTable() {
  return Table({{"budget", ""},
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
                {"plan", "ms"}});
}

int Report(const Table& table, const std::vector<std::string>& faults, bool all_found) {
  std::cout << table.ToString() << std::flush;
  for (const std::string& fault : faults) Say(fault);
  if (!faults.empty()) return kExitFailure;
  return all_found ? kExitOk : kExitInfeasible;
}

int Run() {
  const int steps = absl::GetFlag(FLAGS_steps);
  if (steps < 1) return Fail(FieldError("--steps", steps, "must be >= 1"));
  const absl::StatusOr<std::vector<Budget>> budgets = BudgetsFromFlag();
  if (!budgets.ok()) return Fail(budgets.status());
  const absl::StatusOr<AgentOptions> options = AgentOptionsFromFlags();
  if (!options.ok()) return Fail(options.status());
  absl::StatusOr<std::optional<Profile>> known = KnownProfileFromFlag();
  if (!known.ok()) return Fail(known.status());
  absl::StatusOr<Workload> workload = WorkloadFromFlags();
  if (!workload.ok()) return Fail(workload.status());

  Say(absl::StrCat(workload->model.name(), ": ", workload->model.length(), " stages; training ",
                   Steps(steps), " without a budget", *known ? "" : ", then profiling"));
  BudgetRuns runs(*std::move(workload), *options, absl::GetFlag(FLAGS_seed), steps);
  absl::Status status = runs.Prepare(*std::move(known));
  if (!status.ok()) return Fail(status);
  Say(absl::StrCat("plans from ", runs.agent().connection().name()));

  Table table = MakeTable();
  table.AddRow(runs.PlainRow().cells);
  std::vector<std::string> faults;
  bool all_found = true;
  for (const Budget& budget : *budgets) {
    Say(absl::StrCat("training ", Steps(steps), " within ", ToString(budget)));
    absl::StatusOr<Row> row = runs.RunBudget(budget);
    if (!row.ok()) return Fail(row.status());
    all_found &= !row->cells.back().empty();
    faults.insert(faults.end(), row->faults.begin(), row->faults.end());
    table.AddRow(std::move(row->cells));
  }
  return Report(table, faults, all_found);
}

}  // namespace

Command RunCommand() {
  return {"run",
          "train a network without a budget and within budgets, and compare",
          WithServerFlags({"model", "batch", "image_size", "classes", "seed", "threads", "repeats",
                           "profile", "steps", "budgets", "solver", "slots", "timeout"}),
          Run,
          {"run --model=resnet18 --image_size=64 --budgets=80%,least"}};
}

}  // namespace stowage

#include <cstddef>
#include <iostream>
#include <memory>
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
#include "client/cli/trace_file.h"
#include "client/cli/training_comparison.h"
#include "client/cli/training_flags.h"
#include "client/cli/verification.h"
#include "client/rpc/server_flags.h"
#include "client/torch/plain_step.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

std::string Steps(int steps) { return absl::StrCat(steps, steps == 1 ? " step" : " steps"); }

// One line of the table, and what is wrong with it.
struct Row {
  bool found = true;
  std::vector<std::string> cells;
  std::vector<std::string> faults;
};

class BudgetRuns {
 public:
  BudgetRuns(Workload workload, const AgentOptions& options, uint64_t seed, int steps)
      : workload_(std::move(workload)),
        links_(options.device != nullptr),
        reserves_(options.arena.has_value()),
        agent_(&workload_.model, Quieter(options)),
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

  Table MakeTable() const {
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
    if (links_) {
      head.push_back({"sent MiB", "planned"});
      head.push_back({"sent MiB", "executed"});
    }
    if (reserves_) head.push_back({"reserved", "MiB"});
    return Table(std::move(head));
  }

  Row PlainRow() {
    const Chain& chain = std::get<Chain>(agent_.profile()->problem);
    Row row;
    row.cells = {"none",
                 "",
                 "",
                 Mebibytes(plain_.peak()),
                 Seconds(chain.ideal_time()),
                 Seconds(plain_.median_time())};
    return row;
  }

  // Budget `number` of `budgets`.
  absl::StatusOr<Row> RunBudget(const Budget& budget, size_t number, size_t budgets) {
    absl::StatusOr<AdoptedPlan> adopted =
        agent_.Plan(workload_.sample.input, workload_.sample.target, budget);
    if (!adopted.ok()) return adopted.status();
    if (adopted->plan.status != PlanStatus::kFound) return InfeasibleRow(budget, *adopted);
    const StepFunction step = [this](const at::Tensor& input, const at::Tensor& target) {
      return agent_.Step(input, target);
    };
    absl::StatusOr<Trajectory> run = training_.Train(steps_, step);
    if (!run.ok()) return run.status();
    const absl::Status traced = WriteTrace(agent_.measured(), number, budgets);
    if (!traced.ok()) return traced;
    memory_ = agent_.memory();
    // What is in a region is reserved already: no limit keeps a step from it.
    const bool limits = !memory_.served;
    runs_out_ = true;
    const absl::Status limit = limits ? training_.CheckLimit(run->peak(), step) : absl::OkStatus();
    runs_out_ = false;
    TellServer();
    return FoundRow(budget, *adopted, *run, limit);
  }

 private:
  // The limit check runs out of memory on purpose.
  AgentOptions Quieter(AgentOptions options) {
    options.on_event = [this, say = options.on_event](const AgentEvent& event) {
      if (!(runs_out_ && std::holds_alternative<OutOfMemoryEvent>(event))) say(event);
    };
    return options;
  }

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
    row.found = false;
    row.cells = {ToString(budget), Mebibytes(adopted.plan.budget), ToString(adopted.plan.status)};
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
                 memory_.served ? "" : YesNo(limit.ok()),
                 ToString(adopted.source),
                 absl::StrFormat("%.1f", static_cast<double>(adopted.request_time.value()) / 1e6)};
    const auto expect = [&row, &budget](bool holds, const std::string& what) {
      if (!holds) row.faults.push_back(absl::StrCat(ToString(budget), ": ", what));
    };
    if (links_) {
      row.cells.push_back(Mebibytes(predicted.sent));
      row.cells.push_back(Mebibytes(run.steps.front().sent));
    }
    if (reserves_) row.cells.push_back(Mebibytes(memory_.reserved_peak));
    expect(run.peak() <= adopted.plan.budget, "the measured peak exceeds the budget");
    for (const std::string& fault : Faults(memory_)) expect(false, fault);
    for (const StepReport& step : run.steps) {
      expect(step.recomputed_forwards == predicted.recomputed_forwards,
             "not as many recomputes as planned");
      expect(step.sent == predicted.sent, "not as much was copied as planned");
    }
    expect(adopted.plan.budget >= adopted.plan.bounds.store_all_peak || executed > 0 ||
               predicted.sent > Bytes(0),
           "nothing was recomputed or copied");
    expect(equal.all(), "the training differs from plain training");
    expect(limit.ok(), std::string(limit.message()));
    return row;
  }

  Workload workload_;
  const bool links_;     // to host memory
  const bool reserves_;  // a region
  bool runs_out_ = false;
  Agent agent_;
  TrainingComparison training_;
  int steps_;
  Trajectory plain_;
  StepMemory memory_;  // of the last step
};

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
  absl::StatusOr<AgentOptions> options = AgentOptionsFromFlags();
  if (!options.ok()) return Fail(options.status());
  const absl::StatusOr<std::optional<TransferModel>> link = LinkFromFlag();
  if (!link.ok()) return Fail(link.status());
  absl::StatusOr<std::optional<Profile>> known = KnownProfileFromFlag();
  if (!known.ok()) return Fail(known.status());
  absl::StatusOr<Workload> workload = WorkloadFromFlags();
  if (!workload.ok()) return Fail(workload.status());
  const absl::StatusOr<std::unique_ptr<SimulatedDevice>> device = DeviceWith(*link);
  if (!device.ok()) return Fail(device.status());
  options->device = device->get();

  Say(absl::StrCat(workload->model.name(), ": ", workload->model.length(), " stages; training ",
                   Steps(steps), " without a budget", *known ? "" : ", then profiling"));
  BudgetRuns runs(*std::move(workload), *options, absl::GetFlag(FLAGS_seed), steps);
  absl::Status status = runs.Prepare(*std::move(known));
  if (!status.ok()) return Fail(status);
  Say(absl::StrCat("plans from ", runs.agent().connection().name()));

  Table table = runs.MakeTable();
  table.AddRow(runs.PlainRow().cells);
  std::vector<std::string> faults;
  bool all_found = true;
  size_t number = 0;
  for (const Budget& budget : *budgets) {
    Say(absl::StrCat("training ", Steps(steps), " within ", ToString(budget)));
    absl::StatusOr<Row> row = runs.RunBudget(budget, number++, budgets->size());
    if (!row.ok()) return Fail(row.status());
    all_found &= row->found;
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
                           "profile", "steps", "budgets", "solver", "slots", "link", "timeout",
                           "arena", "trace"}),
          Run,
          {"run --model=resnet18 --image_size=64 --budgets=80%,least"}};
}

}  // namespace stowage

#include "client/cli/verification.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/deterministic_mode.h"
#include "client/cli/known_profile.h"
#include "client/torch/base/tensor_storage.h"

namespace stowage {
namespace {

using Counts = decltype(StepReport::counts);

Counts CountsOf(const Schedule& schedule) {
  Counts counts{};
  for (const Instruction& instruction : schedule) ++counts[static_cast<size_t>(instruction.op)];
  return counts;
}

// What the step did against the plan; empty if it is that.
std::string Deviation(const Plan& plan, const StepReport& step) {
  if (step.recomputed_forwards != plan.prediction.recomputed_forwards) {
    return absl::StrCat(step.recomputed_forwards, " forwards were repeated, ",
                        plan.prediction.recomputed_forwards, " were planned");
  }
  const Counts planned = CountsOf(plan.schedule);
  for (size_t op = 0; op < planned.size(); ++op) {
    if (step.counts[op] == planned[op]) continue;
    return absl::StrCat(step.counts[op], " times ", ToString(static_cast<Op>(op)), ", ",
                        planned[op], " were planned");
  }
  const Simulation& predicted = plan.prediction;
  if (step.offloaded != predicted.offloaded || step.prefetched != predicted.prefetched) {
    return absl::StrCat(ToString(step.offloaded), " to the host and ", ToString(step.prefetched),
                        " back, planned ", ToString(predicted.offloaded), " and ",
                        ToString(predicted.prefetched));
  }
  if (step.host_peak > predicted.host_peak) {
    return absl::StrCat(ToString(step.host_peak), " of host memory, planned ",
                        ToString(predicted.host_peak));
  }
  return "";
}

}  // namespace

int Transfers(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.begin(), schedule.end(), [](const Instruction& i) {
    return i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart;
  }));
}

int Transfers(const StepReport& report) {
  return report.count(Op::kOffloadStart) + report.count(Op::kPrefetchStart);
}

std::vector<std::string> Faults(const Plan& plan, const Trajectory& run, const Equality& equal) {
  std::vector<std::string> faults;
  const auto expect = [&faults](bool holds, const std::string& what) {
    if (!holds) faults.push_back(what);
  };
  expect(equal.loss, "the loss differs from plain training");
  expect(equal.gradients, "gradients differ from plain training");
  expect(equal.parameters, "parameters differ from plain training");
  expect(equal.buffers, "buffers differ from plain training");
  expect(equal.random, "the random state differs from plain training");
  expect(run.peak() <= plan.budget,
         absl::StrCat("the measured peak, ", ToString(run.peak()), ", exceeds the budget"));
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const std::string deviation = Deviation(plan, run.steps[i]);
    expect(deviation.empty(), absl::StrCat("step ", i + 1, ": ", deviation));
  }
  return faults;
}

std::vector<std::string> Faults(const StepMemory& memory) {
  if (!memory.served || memory.reserved_peak <= memory.budget) return {};
  return {
      absl::StrCat("what is reserved, ", ToString(memory.reserved_peak), ", exceeds the budget")};
}

Verification::Verification(Agent* agent, const TrainedModel* plain, const Batch* batch,
                           uint64_t seed, int steps, const StepMeters& meters)
    : agent_(agent),
      batch_(batch),
      steps_(steps),
      planned_([agent](Batch own) { return agent->Step(std::move(own)); }),
      training_(&plain->tensors(), batch, seed,
                [plain, meters](Batch own) { return plain->PlainStep(std::move(own), meters); }) {}

absl::Status Verification::Prepare(std::optional<Profile> known) {
  const c10::Device device = DeviceOf(batch_->inputs);
  const auto train = [this] {
    absl::StatusOr<Trajectory> plain = training_.TrainPlain(steps_);
    if (plain.ok()) plain_runs_.push_back(*std::move(plain));
    return plain.status();
  };
  absl::Status status = BeDeterministic(device, train);
  for (int i = 1; status.ok() && i < (device.is_cpu() ? 1 : kPlainRuns); ++i) status = train();
  if (!status.ok()) return status;
  const auto equal = [this](const Trajectory& run) { return Compare(run, plain()).all(); };
  if (!std::all_of(plain_runs_.begin(), plain_runs_.end(), equal)) {
    plain_spread_ = SpreadOf(plain_runs_);
  }
  return KnowOrProfile(agent_, *batch_, std::move(known));
}

absl::StatusOr<Verified> Verification::Verify(const Budget& budget) {
  absl::StatusOr<AdoptedPlan> adopted = agent_->Plan(*batch_, budget);
  if (!adopted.ok()) return adopted.status();
  Verified verified;
  verified.budget = budget;
  verified.adopted = *std::move(adopted);
  if (!verified.found()) return verified;
  absl::StatusOr<Trajectory> run = training_.Train(steps_, planned_);
  if (!run.ok()) return run.status();
  verified.run = *std::move(run);
  verified.equal = Compare(verified.run, plain());
  verified.planned_transfers = Transfers(verified.adopted.plan.schedule);
  verified.executed_transfers = Transfers(verified.run.steps.front());
  verified.memory = agent_->memory();
  Equality held_to = verified.equal;
  if (plain_spread_) {
    held_to.loss = held_to.gradients = held_to.parameters = held_to.buffers = true;
  }
  verified.faults = Faults(verified.adopted.plan, verified.run, held_to);
  if (plain_spread_ && !LiesWithin(*plain_spread_, plain_runs_, verified.run)) {
    verified.faults.emplace_back(
        "it is further from plain training than runs of that are from each other");
  }
  for (std::string& fault : Faults(verified.memory)) verified.faults.push_back(std::move(fault));
  return verified;
}

void Verification::CheckLimit(Verified* verified) {
  if (verified->memory.served) return;
  const absl::Status held = training_.CheckLimit(verified->run.peak(), planned_);
  verified->limit_held = held.ok();
  if (!held.ok()) verified->faults.emplace_back(held.message());
}

bool VerificationReport::equal() const {
  return std::all_of(budgets.begin(), budgets.end(),
                     [](const Verified& one) { return one.faults.empty(); });
}

bool VerificationReport::all_found() const {
  return ended.ok() && std::all_of(budgets.begin(), budgets.end(),
                                   [](const Verified& one) { return one.found(); });
}

}  // namespace stowage

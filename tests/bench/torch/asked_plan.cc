#include "tests/bench/torch/asked_plan.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "solvers/planner.h"
#include "solvers/schedule/simulation.h"

namespace stowage {
namespace {

// The last is within a thousandth of all: where gradients of parameters are most of a step, little is to be
// saved.
constexpr int kNearerShares = 10;

absl::StatusOr<Plan> PlanAt(const Instance& instance, double share, PlanOptions options,
                            std::chrono::milliseconds patience) {
  const absl::StatusOr<Bytes> budget = ResolveBudget(instance, ShareOfStoreAll{share}, options);
  if (!budget.ok()) return budget.status();
  const StopToken stop(std::chrono::steady_clock::now() + patience);
  options.solve.stop = &stop;
  return MakePlan(instance, *budget, options);
}

}  // namespace

TransferModel LinkFor(const Problem& problem) {
  const absl::StatusOr<Simulation> plain = Instance(problem).store_all();
  const Bytes peak = plain.ok() ? plain->peak : Bytes(1);
  const double half_step = std::max(1e-6, static_cast<double>(IdealTime(problem).value()) / 2e9);
  CopyCost cost;
  cost.bytes_per_second =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(peak.value()) / half_step));
  cost.latency = Nanos(10000);
  return {cost, cost, /*full_duplex=*/true, /*host_memory=*/Bytes(2 * peak.value())};
}

absl::StatusOr<Plan> PlanFor(const Problem& problem, const AskedPlan& asked,
                             const TransferModel& link, std::chrono::milliseconds patience) {
  PlanOptions options;
  options.solver = asked.solver;
  const Instance instance(problem,
                          asked.may_move ? std::optional<TransferModel>(link) : std::nullopt);
  double share = asked.share;
  for (int i = 0; i < kNearerShares; ++i, share = (1 + share) / 2) {
    absl::StatusOr<Plan> plan = PlanAt(instance, share, options, patience);
    if (plan.ok() && plan->status == PlanStatus::kFound) return plan;
    if (!plan.ok() && !absl::IsDeadlineExceeded(plan.status())) return plan;
  }
  absl::StatusOr<Plan> plan = PlanAt(instance, 1, options, patience);
  if (absl::IsDeadlineExceeded(plan.status())) return Plan();
  return plan;
}

int Copies(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.begin(), schedule.end(), [](const Instruction& i) {
    return i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart;
  }));
}

}  // namespace stowage

#include "tests/solvers/transfer/each_alone.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/solvers.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage::testing {
namespace {

constexpr int64_t kPcie3 = 12200000000;

TransferModel Link(int64_t bytes_per_second) {
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = bytes_per_second;
  link.host_memory = Bytes(int64_t{1} << 42);
  return link;
}

// The makespan of offloading alone by a strategy; nothing if it finds no way.
std::optional<Nanos> OffloadingAlone(const Instance& instance, Bytes budget,
                                     const OffloadStrategy& strategy) {
  const auto found = OffloadFrom(instance, instance.store_all_schedule(), budget, strategy, {});
  EXPECT_TRUE(found.ok()) << found.status();
  if (!found.ok() || !found->has_value()) return std::nullopt;
  return (*found)->prediction.makespan;
}

}  // namespace

void ExpectFasterThanEachAlone(const std::string& name, const Chain& chain) {
  const Instance instance(chain, Link(kPcie3));
  const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
  const int64_t least = JointSolver().LeastBudget(instance, {})->value();
  // Per cent of the way from the least budget to store-all.
  for (const int percent : {20, 50}) {
    const Bytes budget(least + (all - least) / 100 * percent);
    const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, budget, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    const absl::StatusOr<Simulation> s = Evaluator(instance).Run(plan->schedule);
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_LE(s->peak, budget);
    EXPECT_GE(s->makespan, MakespanLowerBound(instance, budget));
    Nanos alone(kMaxTotal);
    for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
      const auto time = OffloadingAlone(instance, budget, *strategy);
      if (time) alone = std::min(alone, *time);
    }
    const absl::StatusOr<Plan> recomputing = ChosenChainSolver().Solve(chain, budget, {});
    ASSERT_TRUE(recomputing.ok()) << recomputing.status();
    if (recomputing->status == PlanStatus::kFound) {
      alone = std::min(alone, Evaluator(chain).Run(recomputing->schedule)->makespan);
    }
    const double ideal = static_cast<double>(chain.ideal_time().value());
    std::cout << name << " at " << percent
              << "%: " << static_cast<double>(s->makespan.value()) / ideal
              << " of the ideal time, alone " << static_cast<double>(alone.value()) / ideal << "\n";
    if (alone == chain.ideal_time()) {
      EXPECT_EQ(s->makespan, alone);
    } else {
      EXPECT_LT(s->makespan, alone) << name << " at " << percent << "%";
    }
  }
}

}  // namespace stowage::testing

// The joint solver against exhaustive search over all schedules with transfers, on tiny chains.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <random>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/solvers.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer_search.h"

namespace stowage::testing {
namespace {

// Budgets from the least to just below store-all's peak, where something has to be done. `least_compared` of the chains have such.
void Compare(int chains, int length, uint64_t seed, int least_compared) {
  int compared = 0;
  std::mt19937_64 rng(seed);
  for (int i = 0; i < chains; ++i) {
    const Chain chain = RandomChain(length, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
    // In every third the host is too small for some schedules, or for all.
    if (i % 3 == 2) link.host_memory = Bytes(all / (1 + i % 4));
    const Instance instance(chain, link);
    const int64_t least = PeakLowerBound(chain).value();
    if (least >= all) continue;
    const int64_t budget = std::uniform_int_distribution<int64_t>(least, all - 1)(rng);
    const std::optional<FoundSchedule> fastest = SearchTransfers(chain, link, budget);
    const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, Bytes(budget), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ++compared;
    if (!fastest) {
      EXPECT_NE(plan->status, PlanStatus::kFound) << Describe(chain) << " budget " << budget;
      continue;
    }
    ASSERT_EQ(plan->status, PlanStatus::kFound) << Describe(chain) << " budget " << budget;
    const Simulation s = *Evaluator(instance).Run(plan->schedule);
    ASSERT_LE(s.peak.value(), budget);
    ASSERT_EQ(s.makespan.value(), fastest->makespan) << Describe(chain) << " budget " << budget;
    // Flags make some stages collectives, whose ops could run beside compute.
    bool collective = false;
    for (int l = 1; l <= length + 1; ++l) collective |= chain.stage(l).collective;
    EXPECT_TRUE(plan->bounds.proven_optimal || collective) << Describe(chain);
    const Plan alone = *ChosenChainSolver().Solve(chain, Bytes(budget), {});
    if (alone.status == PlanStatus::kFound) {
      EXPECT_LE(s.makespan, alone.prediction.makespan) << Describe(chain) << " budget " << budget;
    }
  }
  EXPECT_GE(compared, least_compared);
}

TEST(JointOptimum, OneStage) { Compare(300, 1, 80, 100); }

TEST(JointOptimum, TwoStages) { Compare(3000, 2, 81, 1500); }

TEST(JointOptimum, ThreeStages) { Compare(60, 3, 82, 30); }

TEST(JointOptimum, FourStages) { Compare(20, 4, 83, 10); }

Stage StageOf(int64_t forward, int64_t backward, int64_t output, int64_t saved, int64_t gradient,
              int64_t saving_overhead, int64_t overhead, int64_t backward_overhead) {
  Stage stage;
  stage.forward_time = Nanos(forward);
  stage.backward_time = Nanos(backward);
  stage.output = Bytes(output);
  stage.saved = Bytes(saved);
  stage.output_gradient = Bytes(gradient);
  stage.forward_saving_overhead = Bytes(saving_overhead);
  stage.forward_overhead = Bytes(overhead);
  stage.backward_overhead = Bytes(backward_overhead);
  return stage;
}

// Plans are proven though tables may take little: few labels are needed.
void ExpectProvenIn(Bytes table_limit, const ChainSpec& spec, const TransferModel& link,
                    int64_t budget, int64_t makespan) {
  const Instance instance(*Chain::Create(spec), link);
  SolveOptions options;
  options.table_limit = table_limit;
  const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, Bytes(budget), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->prediction.makespan, Nanos(makespan));
  EXPECT_TRUE(plan->bounds.proven_optimal);
}

constexpr Bytes kAnyHost = Bytes(std::numeric_limits<int64_t>::max());

// While copies take many times what compute takes, any number of them could be waiting for the channel, in any order.
TEST(JointOptimum, CopiesThatWaitForASlowChannelTakeFewLabels) {
  ChainSpec spec;
  spec.input = Bytes(1);
  spec.stages = {StageOf(3, 0, 0, 1, 2, 0, 2, 1), StageOf(6, 3, 4, 7, 3, 5, 3, 2),
                 StageOf(3, 3, 1, 2, 1, 0, 3, 5), StageOf(4, 3, 0, 5, 1, 3, 5, 4)};
  ExpectProvenIn(Bytes(16 << 20), spec,
                 {{1000000000, Nanos(8)}, {200000000, Nanos(0)}, true, kAnyHost}, 13, 81);
}

// Saved tensors that there is no room to make again, whatever leaves, stay or are copied.
TEST(JointOptimum, WhatCannotBeMadeAgainIsKnown) {
  ChainSpec spec;
  spec.input = Bytes(5);
  spec.stages = {StageOf(5, 0, 4, 7, 1, 5, 2, 3), StageOf(3, 2, 2, 3, 3, 5, 5, 3),
                 StageOf(0, 4, 1, 1, 4, 4, 2, 5)};
  spec.stages[0].recompute_saving_time = Nanos(2);
  spec.stages[1].recompute_saving_time = Nanos(1);
  spec.stages[0].recompute_saving_overhead = Bytes(9);
  spec.stages[1].recompute_saving_overhead = Bytes(1);
  spec.loss = StageOf(0, 3, 0, 1, 0, 2, 5, 5);
  ExpectProvenIn(Bytes(2 << 20), spec,
                 {{333333333, Nanos(0)}, {1000000000, Nanos(0)}, true, kAnyHost}, 17, 56);
}

}  // namespace
}  // namespace stowage::testing

// The joint solver against exhaustive search over all schedules with transfers, on tiny chains.
#include <gtest/gtest.h>

#include <cstdint>
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
    const std::optional<FastestSchedule> fastest = SearchTransfers(chain, link, budget);
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

}  // namespace
}  // namespace stowage::testing

// The joint solver against exhaustive search over all schedules with transfers, on tiny chains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/solvers.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer_search.h"

namespace stowage::testing {
namespace {

struct Gaps {
  int pairs = 0;
  int equal = 0;
  double sum = 0;
  double worst = 0;

  void Add(int64_t found, int64_t optimum) {
    const double gap =
        static_cast<double>(found) / static_cast<double>(std::max<int64_t>(optimum, 1)) - 1.0;
    ++pairs;
    equal += found == optimum ? 1 : 0;
    sum += gap;
    worst = std::max(worst, gap);
  }
  double Mean() const { return sum / pairs; }
  double Share() const { return static_cast<double>(equal) / pairs; }
};

// Budgets from the least to just below store-all's peak, where something has to be done.
void Compare(int chains, int length, uint64_t seed, Gaps* gaps) {
  std::mt19937_64 rng(seed);
  for (int i = 0; i < chains; ++i) {
    const Chain chain = RandomChain(length, VariedOptions(i), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Instance instance(chain, link);
    const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
    const int64_t least = PeakLowerBound(chain).value();
    if (least >= all) continue;
    const int64_t budget = std::uniform_int_distribution<int64_t>(least, all - 1)(rng);
    const std::optional<FastestSchedule> fastest = SearchTransfers(chain, link, budget);
    ASSERT_TRUE(fastest.has_value()) << Describe(chain);
    const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, Bytes(budget), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound) << Describe(chain) << " budget " << budget;
    const Simulation s = *Evaluator(instance).Run(plan->schedule);
    ASSERT_LE(s.peak.value(), budget);
    ASSERT_GE(s.makespan.value(), fastest->makespan) << Describe(chain) << " budget " << budget;
    if (plan->bounds.proven_optimal) {
      EXPECT_EQ(s.makespan.value(), fastest->makespan);
    }
    gaps->Add(s.makespan.value(), fastest->makespan);
  }
}

void Report(const char* what, const Gaps& gaps) {
  std::cout << what << ": " << gaps.equal << " of " << gaps.pairs << " optimal, "
            << 100 * gaps.Mean() << "% above on average, " << 100 * gaps.worst << "% at worst\n";
}

TEST(JointOptimum, TwoStages) {
  Gaps gaps;
  Compare(400, 2, 81, &gaps);
  Report("two stages", gaps);
  EXPECT_GT(gaps.pairs, 200);
  EXPECT_GE(gaps.Share(), 0.93);
  EXPECT_LE(gaps.Mean(), 0.04);
}

TEST(JointOptimum, ThreeStages) {
  Gaps gaps;
  Compare(40, 3, 82, &gaps);
  Report("three stages", gaps);
  EXPECT_GT(gaps.pairs, 20);
  EXPECT_GE(gaps.Share(), 0.9);
  EXPECT_LE(gaps.Mean(), 0.03);
}

}  // namespace
}  // namespace stowage::testing

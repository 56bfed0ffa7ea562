// What the joint solver holds at once is within SolveOptions::table_limit, and what it answers within
// little is never worse than each alone within as little.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <random>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/solvers.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/transfer/heap_peak.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage::testing {
namespace {

constexpr int64_t kMega = 1000000;

// Beside the limit, whatever it is: schedules, their replays and the points of frontiers.
constexpr int64_t Allowance(int stages) { return kMega + int64_t{16384} * stages; }

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

struct Case {
  int stages;
  int64_t limit;
};

Chain ChainOf(int stages) {
  std::mt19937_64 rng(7);
  return RandomChain(stages, {1000000, 60000000}, &rng);
}

Instance Linked(const Chain& chain) {
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = 10000000;
  link.host_memory = Bytes(int64_t{1} << 40);
  return Instance(chain, link);
}

SolveOptions OptionsOf(int64_t limit) {
  SolveOptions options;
  options.table_limit = Bytes(limit);
  return options;
}

class JointMemory : public ::testing::TestWithParam<Case> {};

int64_t MakespanOf(const Instance& instance, const absl::StatusOr<Plan>& plan) {
  if (!plan.ok() || plan->status != PlanStatus::kFound) return kNone;
  return Evaluator(instance).Run(plan->schedule)->makespan.value();
}

TEST_P(JointMemory, IsWithinTheLimitAndNotWorseThanEachAlone) {
  const auto [stages, limit] = GetParam();
  const Chain chain = ChainOf(stages);
  const Instance instance = Linked(chain);
  const SolveOptions options = OptionsOf(limit);
  const Bytes budget(Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value() * 2 / 5);
  const HeapPeak peak;
  const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, budget, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(peak.bytes(), limit + Allowance(stages));
  const int64_t joint = MakespanOf(instance, plan);
  ASSERT_NE(joint, kNone);
  EXPECT_LE(joint, MakespanOf(instance, ChosenChainSolver().Solve(chain, budget, options)));
  for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
    const auto alone = OffloadFrom(instance, StoreAllSchedule(chain), budget, *strategy, options);
    ASSERT_TRUE(alone.ok()) << alone.status();
    if (!alone->has_value()) continue;
    EXPECT_LE(joint, (*alone)->prediction.makespan.value());
  }
}

INSTANTIATE_TEST_SUITE_P(All, JointMemory,
                         ::testing::Values(Case{20, kMega / 2}, Case{20, 5 * kMega},
                                           Case{60, 2 * kMega}, Case{60, 10 * kMega},
                                           Case{100, 5 * kMega}, Case{100, 30 * kMega},
                                           Case{300, kMega}, Case{300, 20 * kMega},
                                           Case{200, 30 * kMega}, Case{1000, 60 * kMega}));

TEST(JointMemory, OfAFrontierIsWithinTheLimit) {
  constexpr int kStages = 40;
  const Chain chain = ChainOf(kStages);
  for (const int64_t limit : {kMega, 8 * kMega}) {
    const HeapPeak peak;
    const absl::StatusOr<Frontier> frontier =
        JointSolver().SolveFrontier(Linked(chain), OptionsOf(limit));
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_LE(peak.bytes(), limit + Allowance(kStages));
  }
}

// The tests could not fail if nothing were counted, or if no limit were ever in the way.
TEST(HeapPeak, CountsEveryAllocation) {
  constexpr std::align_val_t kPage{4096};
  const HeapPeak peak;
  // Calls, not expressions: those may be left out where nobody sees the memory.
  void* const some = ::operator new(kMega);
  void* const more = ::operator new(kMega, kPage, std::nothrow);
  ::operator delete(some);
  ::operator delete(more, kPage);
  EXPECT_GE(peak.bytes(), 2 * kMega);
  EXPECT_LT(peak.bytes(), 2 * kMega + kMega / 10);
}

TEST(JointMemory, WouldBeMoreWithoutALimit) {
  const Chain chain = ChainOf(40);
  const Bytes budget(Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value() * 2 / 5);
  const HeapPeak peak;
  ASSERT_TRUE(JointSolver().Solve(chain, budget, OptionsOf(int64_t{1} << 32)).ok());
  EXPECT_GT(peak.bytes(), 8 * kMega + Allowance(40));
}

}  // namespace
}  // namespace stowage::testing

// The strategies of offloading against every schedule with recomputation and transfers there is.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"
#include "tests/solvers/transfer_search.h"

namespace stowage::testing {
namespace {

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

struct Counts {
  int found = 0, equal = 0;
};

// At a memory in which `compute` does not fit without transfers.
void Check(const Chain& chain, const Schedule& compute, TransferModel transfers, int i,
           std::mt19937_64* rng, Counts* counts) {
  const int peak = static_cast<int>(Evaluator(chain).Run(compute)->peak.value());
  const Bytes memory(Draw(peak / 2, peak - 1, rng));
  if (i % 4 == 0) transfers.host_memory = Bytes(Draw(0, 12, rng));
  std::optional<FoundSchedule> fastest;
  for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
    const auto plan =
        OffloadFrom(Instance(chain, transfers), compute, memory, *strategy, SolveOptions());
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (!plan->has_value()) continue;
    if (!fastest) fastest = SearchTransfers(chain, transfers, memory.value());
    ASSERT_TRUE(fastest) << strategy->info().name << Describe(chain);
    ++counts->found;
    const Nanos makespan = (*plan)->prediction.makespan;
    EXPECT_GE(makespan.value(), fastest->makespan) << strategy->info().name << Describe(chain);
    counts->equal += makespan.value() == fastest->makespan ? 1 : 0;
  }
}

TEST(OffloadOptimum, NoStrategyIsFasterOnStoreAll) {
  std::mt19937_64 rng(1);
  Counts counts;
  for (int i = 0; i < 600 && !HasFatalFailure(); ++i) {
    const Chain chain = RandomChain(1 + i % 3, VariedOptions(i), &rng);
    if (Evaluator(chain).Run(StoreAllSchedule(chain))->peak == Bytes(0)) continue;
    Check(chain, StoreAllSchedule(chain), RandomTransferModel(&rng), i, &rng, &counts);
  }
  EXPECT_GT(counts.found, 500);
  EXPECT_GT(counts.equal, 100);
}

TEST(OffloadOptimum, NoStrategyIsFasterOnSchedulesThatRecompute) {
  std::mt19937_64 rng(2);
  Counts counts;
  for (int i = 0; i < 600 && !HasFatalFailure(); ++i) {
    const Chain chain = RandomChain(1 + i % 3, VariedOptions(i), &rng);
    const Schedule compute = RandomSchedule(chain, &rng);
    if (Evaluator(chain).Run(compute)->peak == Bytes(0)) continue;
    Check(chain, compute, RandomTransferModel(&rng), i, &rng, &counts);
  }
  EXPECT_GT(counts.found, 300);
  EXPECT_GT(counts.equal, 20);
}

}  // namespace
}  // namespace stowage::testing

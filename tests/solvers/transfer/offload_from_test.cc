#include "tests/solvers/transfer/offload_from.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/random_offload.h"

namespace stowage::testing {
namespace {

Bytes PeakWithout(const Chain& chain, const Schedule& schedule) {
  return Evaluator(chain).Run(schedule)->peak;
}

TEST(TraceProblem, HasTheReplayOfStoreAll) {
  std::mt19937_64 rng(1);
  int offloaded = 0;
  for (int i = 0; i < 400; ++i) {
    const Chain chain = RandomChain(1 + i % 5, VariedOptions(i), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule store_all = StoreAllSchedule(chain);
    const ComputeTrace trace = *TraceOf(chain, store_all);
    const Bytes peak = PeakWithout(chain, store_all);
    for (Bytes memory = peak; memory >= Bytes(0); memory -= Bytes(1)) {
      const OffloadProblem direct = *MakeOffloadProblem(chain, link, memory);
      const TraceProblem traced = *MakeTraceProblem(trace, link, memory);
      ASSERT_EQ(traced.problem.peak(), peak) << Describe(chain);
      ASSERT_EQ(traced.problem.ideal_time(), direct.ideal_time());
      const OffloadPlan a = *GreedyOffload().Solve(direct, SolveOptions());
      const OffloadPlan b = *GreedyOffload().Solve(traced.problem, SolveOptions());
      // The trace leaves out what has no bytes, and what is read again at once.
      if (a.status != PlanStatus::kFound || b.status != PlanStatus::kFound) continue;
      if (!a.set.empty() && a.set.back() == chain.length()) continue;
      ASSERT_EQ(a.timeline.host_peak, b.timeline.host_peak) << Describe(chain) << memory.value();
      ASSERT_EQ(a.timeline.makespan, b.timeline.makespan) << Describe(chain) << memory.value();
      offloaded += !a.set.empty();
    }
  }
  EXPECT_GT(offloaded, 1000);
}

TEST(WithTransfers, IsAcceptedWithinTheMemoryAndTheTimeline) {
  std::mt19937_64 rng(2);
  int offloaded = 0;
  for (int i = 0; i < 4000; ++i) {
    const Chain chain = RandomChain(1 + i % 6, VariedOptions(i), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule compute = RandomSchedule(chain, &rng);
    const ComputeTrace trace = *TraceOf(chain, compute);
    const Simulation plain = *Evaluator(chain).Run(compute);
    for (int k = 0; k < 4; ++k) {
      const Bytes memory(
          static_cast<int64_t>(rng() % static_cast<uint64_t>(plain.peak.value() + 1)));
      const TraceProblem problem = *MakeTraceProblem(trace, link, memory);
      ASSERT_EQ(problem.problem.peak(), plain.peak) << Describe(chain);
      ASSERT_EQ(problem.problem.ideal_time(), plain.makespan) << Describe(chain);
      const std::optional<OffloadTimeline> timeline =
          ReplaySet(problem.problem, RandomSet(problem, &rng));
      if (!timeline) continue;
      ASSERT_LE(timeline->peak, memory);
      const Schedule schedule = WithTransfers(compute, trace, problem, *timeline);
      const absl::StatusOr<Simulation> simulation = Evaluator(Instance(chain, link)).Run(schedule);
      ASSERT_TRUE(simulation.ok()) << simulation.status() << Describe(chain);
      EXPECT_LE(simulation->peak, memory) << Describe(chain);
      EXPECT_EQ(simulation->offloaded, timeline->host_peak);
      EXPECT_EQ(simulation->prefetched, simulation->offloaded);
      EXPECT_EQ(simulation->recompute_time, plain.recompute_time);
      offloaded += !timeline->offloads.empty();
      if (simulation->makespan <= timeline->makespan) continue;
      EXPECT_TRUE(OffloadsMeetPrefetches(problem.problem, *timeline)) << Describe(chain);
    }
  }
  EXPECT_GT(offloaded, 2000);
}

TEST(OffloadFrom, KeepsAScheduleThatFits) {
  std::mt19937_64 rng(3);
  const Chain chain = RandomChain(4, RandomChainOptions(), &rng);
  const Schedule compute = RandomSchedule(chain, &rng);
  const Simulation plain = *Evaluator(chain).Run(compute);
  const auto found = OffloadFrom(Instance(chain, RandomTransferModel(&rng)), compute, plain.peak,
                                 GreedyOffload(), SolveOptions());
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->schedule, compute);
  EXPECT_EQ((*found)->prediction.makespan, plain.makespan);
}

TEST(OffloadFrom, RefusesASchedulesTransfers) {
  std::mt19937_64 rng(4);
  const Chain chain = RandomChain(2, RandomChainOptions(), &rng);
  const Schedule schedule = {OffloadStart(TensorKind::kActivation, 0)};
  EXPECT_EQ(OffloadFrom(Instance(chain, RandomTransferModel(&rng)), schedule, Bytes(100),
                        GreedyOffload(), SolveOptions())
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage::testing

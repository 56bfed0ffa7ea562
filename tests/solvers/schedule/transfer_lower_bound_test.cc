#include "solvers/schedule/lower_bound.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/schedule/text.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

// At the loss, 50 bytes too much for a budget of 150; computing the 100 of stage 1 again takes 1000.
Chain Crowded() {
  ChainSpec spec;
  Stage s;
  s.forward_time = Nanos(1000);
  s.backward_time = Nanos(10);
  s.saved = Bytes(100);
  spec.stages = {s};
  spec.loss.saved = Bytes(100);
  return *Chain::Create(spec);
}

TransferModel Link(int64_t nanos_per_byte_there, int64_t nanos_per_byte_back) {
  TransferModel link;
  link.to_host.bytes_per_second = 1000000000 / nanos_per_byte_there;
  link.to_device.bytes_per_second = 1000000000 / nanos_per_byte_back;
  link.host_memory = Bytes(1000);
  return link;
}

TEST(TransferLowerBound, WeighsTransfersAgainstRecomputing) {
  const Chain chain = Crowded();
  EXPECT_EQ(MakespanLowerBound(chain, Bytes(150)), Nanos(1010 + 500));
  // The 50 bytes are there and back in 150 ns.
  EXPECT_EQ(MakespanLowerBound(Instance(chain, Link(1, 2)), Bytes(150)), Nanos(1010));
  // At 30 ns a byte, 38 are in 1140; without 13 of the 50, 130 ns are computed again.
  EXPECT_EQ(MakespanLowerBound(Instance(chain, Link(10, 20)), Bytes(150)), Nanos(1010 + 130));
  // At 26 ns a byte, 42 are in 1092; with 41, 90 ns are computed again.
  EXPECT_EQ(MakespanLowerBound(Instance(chain, Link(25, 1)), Bytes(150)), Nanos(1092));
  TransferModel narrow = Link(1, 2);
  narrow.host_memory = Bytes(20);
  EXPECT_EQ(MakespanLowerBound(Instance(chain, narrow), Bytes(150)), Nanos(1010 + 300));
  narrow.host_memory = Bytes(0);
  EXPECT_EQ(MakespanLowerBound(Instance(chain, narrow), Bytes(150)), Nanos(1010 + 500));
}

TEST(TransferLowerBound, IsNeverAboveARandomSchedule) {
  std::mt19937_64 rng(1);
  int above_ideal = 0, below_without = 0, stronger = 0;
  for (int i = 0; i < 2000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 7, testing::VariedOptions(i), &rng);
    TransferModel link = testing::RandomTransferModel(&rng);
    const Schedule schedule =
        testing::WithRandomTransfers(chain, testing::RandomSchedule(chain, &rng), link, &rng);
    const Simulation s = *Evaluator(Instance(chain, link)).Run(schedule);
    if (i % 2 == 0) link.host_memory = s.host_peak;
    const Nanos bound = MakespanLowerBound(Instance(chain, link), s.peak);
    ASSERT_LE(bound, s.makespan) << testing::Describe(chain) << '\n' << ScheduleText(schedule);
    const Nanos strongest = StrongestMakespanLowerBound(Instance(chain, link), s.peak);
    ASSERT_LE(strongest, s.makespan) << testing::Describe(chain) << '\n' << ScheduleText(schedule);
    EXPECT_GE(strongest, bound);
    stronger += strongest > bound ? 1 : 0;
    EXPECT_GE(bound, chain.ideal_time());
    EXPECT_LE(bound, MakespanLowerBound(chain, s.peak));
    above_ideal += bound > chain.ideal_time() ? 1 : 0;
    below_without += bound < MakespanLowerBound(chain, s.peak) ? 1 : 0;
  }
  EXPECT_GT(above_ideal, 20);
  EXPECT_GT(below_without, 20);
  EXPECT_GT(stronger, 20);
}

TEST(TransferLowerBound, IsNeverAboveARandomScheduleOfAGraph) {
  std::mt19937_64 rng(3);
  int above_ideal = 0, below_without = 0, stronger = 0, strongest_below_without = 0;
  for (int i = 0; i < 2000; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + i % 8;
    options.with_aliases = i % 3 == 0;
    options.with_overheads = false;
    options.reach = 1 + i % 2;
    const Graph graph = testing::RandomGraph(options, &rng);
    TransferModel link = testing::RandomTransferModel(&rng);
    const Schedule base = WithDiscards(graph, testing::RandomSchedule(graph, &rng));
    const Schedule schedule = testing::WithRandomTransfers(graph, base, link, &rng);
    const absl::StatusOr<Simulation> s = Evaluator(Instance(graph, link)).Run(schedule);
    if (!s.ok()) continue;
    if (i % 2 == 0) link.host_memory = s->host_peak;
    const Nanos bound = MakespanLowerBound(Instance(graph, link), s->peak);
    ASSERT_LE(bound, s->makespan) << testing::Describe(graph) << '\n' << ScheduleText(schedule);
    const Nanos strongest = StrongestMakespanLowerBound(Instance(graph, link), s->peak);
    const Nanos strongest_without = StrongestMakespanLowerBound(graph, s->peak);
    ASSERT_LE(strongest, s->makespan) << testing::Describe(graph) << '\n' << ScheduleText(schedule);
    ASSERT_GE(strongest, bound);
    EXPECT_LE(strongest, strongest_without);
    stronger += strongest > bound ? 1 : 0;
    strongest_below_without += strongest < strongest_without ? 1 : 0;
    EXPECT_GE(bound, graph.ideal_time());
    EXPECT_LE(bound, MakespanLowerBound(graph, s->peak));
    above_ideal += bound > graph.ideal_time() ? 1 : 0;
    below_without += bound < MakespanLowerBound(graph, s->peak) ? 1 : 0;
  }
  EXPECT_GT(above_ideal, 20);
  EXPECT_GT(below_without, 20);
  EXPECT_GT(stronger, 5);
  EXPECT_GT(strongest_below_without, 20);
}

using BoundOf = Nanos(const Instance&, Bytes);

TEST(TransferLowerBound, NeverRisesWithTheBudget) {
  std::mt19937_64 rng(2);
  for (BoundOf* const bound_of : {MakespanLowerBound, StrongestMakespanLowerBound}) {
    for (int i = 0; i < 100; ++i) {
      const Chain chain = testing::RandomChain(1 + i % 12, testing::VariedOptions(i), &rng);
      const Instance instance = Instance(chain, testing::RandomTransferModel(&rng)).Remembering();
      const Bytes most = instance.store_all()->peak;
      Nanos before = bound_of(instance, Bytes(0));
      for (Bytes budget(1); budget <= most; budget += Bytes(1)) {
        const Nanos bound = bound_of(instance, budget);
        ASSERT_LE(bound, before) << budget.value() << '\n' << testing::Describe(chain);
        before = bound;
      }
      EXPECT_EQ(before, chain.ideal_time());
    }
  }
}

// What leaves before the loss does so beside the forwards, once it is made; what returns, beside the backwards, before its own.
TEST(StrongestTransferLowerBound, CopiesEachWayTakeTheirSideOfTheLoss) {
  ChainSpec spec;
  Stage s;
  s.forward_time = Nanos(100);
  s.backward_time = Nanos(200);
  s.saved = Bytes(100);
  spec.stages.assign(4, s);
  spec.input = Bytes(100);
  const Chain chain = *Chain::Create(spec);
  const auto above_ideal = [&chain](const TransferModel& link, int64_t budget) {
    const Instance instance(chain, link);
    return (StrongestMakespanLowerBound(instance, Bytes(budget)) - chain.ideal_time()).value();
  };
  EXPECT_EQ(MakespanLowerBound(Instance(chain, Link(4, 1)), Bytes(300)), chain.ideal_time());
  // 200 bytes leave in 400 ns at 2 ns each, beside the forwards.
  EXPECT_EQ(above_ideal(Link(2, 2), 300), 0);
  // At 4 ns each 100 bytes do, and the next one before the loss is held up; the rest is computed again, 1 ns each.
  EXPECT_EQ(above_ideal(Link(4, 1), 300), 99);
  // At 5 ns each 120 bytes return beside the backwards but the first, and 13 or 14 beside the 67 that are computed again.
  EXPECT_EQ(above_ideal(Link(1, 5), 300), 67);
  // Without an input to copy the link waits for the first stage: 75 bytes leave beside the others.
  spec.input = Bytes(0);
  const Chain without_input = *Chain::Create(spec);
  EXPECT_EQ((StrongestMakespanLowerBound(Instance(without_input, Link(4, 1)), Bytes(200)) -
             without_input.ideal_time())
                .value(),
            124);
}

TEST(TransferLowerBound, HoldsForTheLargestNumbers) {
  ChainSpec spec;
  spec.stages.resize(2);
  spec.stages[0].output = spec.stages[0].saved = Bytes(kMaxTotal / 4);
  spec.stages[0].forward_time = Nanos(kMaxTimeTotal / 8);
  const Chain chain = *Chain::Create(spec);
  TransferModel link;
  link.to_host = link.to_device = {1, Nanos(std::numeric_limits<int64_t>::max())};
  link.host_memory = Bytes(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(MakespanLowerBound(Instance(chain, link), Bytes(0)),
            MakespanLowerBound(chain, Bytes(0)));
  EXPECT_EQ(MakespanLowerBound(Instance(chain, link), link.host_memory), chain.ideal_time());
  link.to_host = link.to_device = {std::numeric_limits<int64_t>::max(), Nanos(0)};
  EXPECT_EQ(MakespanLowerBound(Instance(chain, link), link.host_memory), chain.ideal_time());
  EXPECT_EQ(MakespanLowerBound(Instance(chain, link), Bytes(0)), chain.ideal_time());
}

Schedule Offloading() {
  const TensorKind saved = TensorKind::kSaved;
  return {ForwardSave(1),          ForwardNoSave(1),       OffloadStart(saved, 1),
          OffloadWait(saved, 1),   ForwardSave(2),         Backward(2),
          PrefetchStart(saved, 1), PrefetchWait(saved, 1), Backward(1)};
}

TEST(TransferEvaluator, AcceptsTransfersOfItsLinkOnly) {
  const Chain chain = Crowded();
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = Offloading();
  plan.budget = Bytes(100);
  EXPECT_EQ(ValidatePlan(chain, &plan).code(), absl::StatusCode::kInvalidArgument);
  TransferModel link = Link(1, 2);
  EXPECT_TRUE(ValidatePlan(Instance(chain, link), &plan).ok());
  // One forward more than store-all, and the two waits.
  EXPECT_EQ(plan.prediction.makespan, Nanos(2010 + 100 + 200));
  EXPECT_EQ(plan.prediction.offloaded, Bytes(100));
  EXPECT_EQ(plan.bounds.lower_bound, chain.ideal_time());
  EXPECT_EQ(plan.bounds.store_all_makespan, chain.ideal_time());
  plan.budget = Bytes(99);
  EXPECT_EQ(ValidatePlan(Instance(chain, link), &plan).code(),
            absl::StatusCode::kFailedPrecondition);
  link.to_host.bytes_per_second = 0;
  EXPECT_EQ(ValidatePlan(Instance(chain, link), &plan).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TransferEvaluator, FrontiersTakeItsSchedules) {
  const Chain chain = Crowded();
  FrontierBuilder without(chain);
  EXPECT_FALSE(without.Add(Offloading()).ok());
  FrontierBuilder with(Instance(chain, Link(1, 2)));
  ASSERT_TRUE(with.Add(Offloading()).ok());
  ASSERT_TRUE(with.Add(StoreAllSchedule(chain)).ok());
  const Frontier frontier = with.Build({});
  ASSERT_EQ(frontier.points().size(), 2u);
  EXPECT_EQ(frontier.PlanAt(Bytes(100)).schedule, Offloading());
}

}  // namespace
}  // namespace stowage

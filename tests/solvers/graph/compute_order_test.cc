#include "solvers/graph/internal/compute_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "solvers/graph/internal/order_search.h"
#include "solvers/graph/internal/proposals.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

constexpr int64_t kNoTarget = INT64_MAX;

ComputeOrder OrderOf(const Schedule& schedule) {
  ComputeOrder order;
  for (const Instruction& i : schedule) {
    if (i.op == Op::kDiscard) continue;
    order.push_back({i.stage - 1, i.op == Op::kBackward});
  }
  return order;
}

Simulation Replay(const Graph& graph, const ComputeOrder& order) {
  const absl::StatusOr<Simulation> simulation =
      Evaluator(graph).Run(WithDiscards(graph, ToSchedule(graph, order)));
  EXPECT_TRUE(simulation.ok()) << simulation.status() << "\n" << testing::Describe(graph);
  return simulation.ok() ? *simulation : Simulation();
}

int64_t BackwardTime(const Graph& graph) {
  int64_t time = 0;
  for (int p = 0; p < graph.size(); ++p) time += graph.vertex(p).backward_time.value();
  return time;
}

Graph Draw(int i, bool with_flags, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = 1 + i % 12;
  options.density = 0.1 + 0.1 * (i % 5);
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  options.with_flags = with_flags;
  options.with_stops = i % 5 > 2;
  return testing::RandomGraph(options, rng);
}

TEST(OrderEvaluator, SaysWhatTheEvaluatorSays) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 2000; ++i) {
    const Graph graph = Draw(i, i % 2 == 0, &rng);
    const OpGraph ops(graph);
    OrderEvaluator evaluator(ops);
    const ComputeOrder drawn = OrderOf(testing::RandomSchedule(graph, &rng));
    OrderProfile profile;
    const OrderCost cost = evaluator.EvaluateWithProfile(drawn, kNoTarget, &profile);
    const Simulation simulation = Replay(graph, profile.order);
    EXPECT_EQ(cost.peak, simulation.peak.value()) << testing::Describe(graph);
    EXPECT_EQ(cost.forward_time + BackwardTime(graph), simulation.makespan.value());
    EXPECT_LE(simulation.makespan, Replay(graph, drawn).makespan);
    OrderProfile beside;
    EXPECT_EQ(evaluator.EvaluateWithRunning(drawn, kNoTarget, &beside).peak, cost.peak);
    std::vector<int64_t> running = beside.running;
    ASSERT_EQ(running.size(), drawn.size());
    EXPECT_EQ(evaluator.WithoutDead(drawn), profile.order);
    running.erase(std::remove(running.begin(), running.end(), 0), running.end());
    std::vector<int64_t> expected = profile.running;
    expected.erase(std::remove(expected.begin(), expected.end(), 0), expected.end());
    EXPECT_EQ(running, expected);
    EXPECT_EQ(evaluator.Evaluate(drawn, kNoTarget).peak, cost.peak);
    EXPECT_LE(PeakLowerBound(graph), simulation.peak) << testing::Describe(graph);
  }
}

TEST(OrderEvaluator, SumsWhatIsOverTheTarget) {
  std::mt19937_64 rng(4);
  const Graph graph = Draw(7, false, &rng);
  const OpGraph ops(graph);
  OrderEvaluator evaluator(ops);
  OrderProfile profile;
  const OrderCost cost = evaluator.EvaluateWithProfile(StoreAllOrder(ops), 0, &profile);
  int64_t sum = 0, peak = 0;
  for (const int64_t running : profile.running) {
    sum += running;
    peak = std::max(peak, running);
  }
  EXPECT_EQ(cost.overload, sum);
  EXPECT_EQ(cost.peak, peak);
  EXPECT_EQ(evaluator.Evaluate(StoreAllOrder(ops), peak).overload, 0);
  EXPECT_GE(evaluator.Evaluate(StoreAllOrder(ops), peak - 1).overload, 1);
}

TEST(Proposals, OutputByOutputIsValidAndRepeatsNothing) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 500; ++i) {
    const Graph graph = Draw(i, i % 2 == 0, &rng);
    for (const bool last_first : {false, true}) {
      const ComputeOrder order = OutputByOutputOrder(OpGraph(graph), last_first);
      EXPECT_EQ(order.size(), 2 * static_cast<size_t>(graph.size()));
      EXPECT_EQ(Replay(graph, order).makespan, graph.ideal_time());
    }
  }
}

TEST(Proposals, CheckpointsRunEverySegmentTwiceAtMost) {
  std::mt19937_64 rng(6);
  for (int i = 0; i < 500; ++i) {
    const Graph graph = Draw(i, i % 2 == 0, &rng);
    const OpGraph ops(graph);
    // Segments of two neighbours: no cycles between them.
    std::vector<int> segment_of;
    for (int v = 0; v < graph.size(); ++v) segment_of.push_back(v % 3 == 0 ? -1 : v / 3);
    const ComputeOrder order = CheckpointOrder(ops, segment_of);
    std::vector<int> runs(static_cast<size_t>(graph.size()), 0);
    for (const Compute& c : order) {
      if (!c.backward) ++runs[static_cast<size_t>(c.vertex)];
    }
    for (int v = 0; v < graph.size(); ++v) {
      const bool again = v % 3 != 0 && ops.costs(v).recomputable;
      EXPECT_EQ(runs[static_cast<size_t>(v)], again ? 2 : 1);
    }
    Replay(graph, order);
  }
}

TEST(OrderMoves, LeaveValidOrdersAndKeepTheirWord) {
  std::mt19937_64 rng(8);
  int evicted = 0;
  for (int i = 0; i < 600; ++i) {
    const Graph graph = Draw(i, i % 2 == 0, &rng);
    const OpGraph ops(graph);
    OrderMoves moves(ops, nullptr);
    ComputeOrder order = StoreAllOrder(ops);
    const OrderCost all = moves.Cost(order, kNoTarget);
    const int64_t target = all.peak * 3 / 4;
    const int64_t before = moves.Cost(order, target).overload;
    ASSERT_TRUE(moves.Reorder(target, kNoTarget / 2, &order).ok());
    const OrderCost reordered = moves.Cost(order, target);
    EXPECT_LE(reordered.overload, before);
    EXPECT_EQ(reordered.forward_time, all.forward_time);
    ASSERT_TRUE(moves.Evict(target, kNoTarget / 2, &order).ok());
    const OrderCost fitted = moves.Cost(order, target);
    EXPECT_LE(fitted.overload, reordered.overload);
    evicted += fitted.overload == 0 ? 1 : 0;
    ASSERT_TRUE(moves.Retain(target, kNoTarget / 2, &order).ok());
    const OrderCost retained = moves.Cost(order, target);
    EXPECT_LE(retained.overload, fitted.overload);
    EXPECT_LE(retained.forward_time, fitted.forward_time);
    EXPECT_EQ(Replay(graph, order).peak.value(), retained.peak);
    // With memory for everything nothing is repeated.
    ASSERT_TRUE(moves.Retain(kNoTarget, kNoTarget / 2, &order).ok());
    EXPECT_EQ(moves.Cost(order, kNoTarget).forward_time, all.forward_time);
  }
  EXPECT_GT(evicted, 200);
}

// On a path the chain knows what a repeat takes, early stops among it.
TEST(ChainOfCuts, APathRepeatsInNoMoreTimeThanItsChain) {
  std::mt19937_64 rng(9);
  int stopping = 0, equal = 0;
  for (int i = 0; i < 1000; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 3 + i % 8;
    options.reach = 1;
    options.with_stops = true;
    const Graph graph = testing::RandomGraph(options, &rng);
    const OpGraph ops(graph);
    const std::vector<int> cuts = ChooseCuts(ops, 1 + i % 5);
    const absl::StatusOr<Chain> chain = ChainOfCuts(ops, cuts, Crossing::kOfItsMaker);
    ASSERT_TRUE(chain.ok()) << chain.status();
    std::vector<bool> recomputable;
    for (int v = 0; v < graph.size(); ++v) recomputable.push_back(ops.costs(v).recomputable);
    for (size_t l = 0; l + 1 < cuts.size(); ++l) {
      const Vertex& last = graph.vertex(cuts[l]);
      const Stage& stage = chain->stage(static_cast<int>(l) + 1);
      EXPECT_EQ(stage.stops(), ops.costs(cuts[l]).stops && !last.backward_needs_output);
      stopping += stage.stops() ? 1 : 0;
    }
    const Schedule schedule = testing::RandomSchedule(*chain, &rng);
    const absl::StatusOr<Simulation> run = Evaluator(*chain).Run(schedule);
    ASSERT_TRUE(run.ok()) << run.status();
    const Simulation expanded =
        Replay(graph, ExpandStages(schedule, StagesOfCuts(cuts), recomputable));
    const Nanos repeats = run->makespan - chain->ideal_time();
    EXPECT_LE(expanded.makespan - graph.ideal_time(), repeats) << testing::Describe(graph);
    equal += expanded.makespan - graph.ideal_time() == repeats ? 1 : 0;
  }
  EXPECT_GT(stopping, 200);
  EXPECT_GT(equal, 200);
}

}  // namespace
}  // namespace stowage

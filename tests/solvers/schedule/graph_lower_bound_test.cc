#include "solvers/schedule/lower_bound.h"

#include <gtest/gtest.h>

#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/chain_as_graph.h"
#include "tests/solvers/graph_ops.h"
#include "tests/solvers/graph_search.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

using testing::MakeGraph;

Vertex Op(int64_t k, std::vector<GraphInput> inputs, int64_t bytes, int64_t time) {
  Vertex v = testing::MakeOp(k, std::move(inputs));
  v.output = Bytes(bytes);
  v.forward_time = Nanos(time);
  return v;
}

int64_t BoundAboveIdeal(const Graph& graph, int64_t budget) {
  return (MakespanLowerBound(graph, Bytes(budget)) - graph.ideal_time()).value();
}

// Source 1 -> 2, whose output and extras backward needs -> 3 with an overhead.
std::vector<Vertex> Small() {
  std::vector<Vertex> ops = {Op(0, {}, 1, 100), Op(1, {{0, false}}, 4, 10),
                             Op(2, {{1, false}}, 0, 100)};
  ops[1].backward_needs_output = true;
  ops[1].extra_saved = Bytes(6);
  ops[2].backward_overhead = Bytes(20);
  return ops;
}

TEST(GraphLowerBound, OneRunBringsBackOutputAndExtras) {
  const Graph graph = MakeGraph(Small());
  EXPECT_EQ(BoundAboveIdeal(graph, 30), 0);
  EXPECT_EQ(BoundAboveIdeal(graph, 29), 1);
  EXPECT_EQ(BoundAboveIdeal(graph, 25), 5);
  EXPECT_EQ(BoundAboveIdeal(graph, 20), 10);
  EXPECT_EQ(BoundAboveIdeal(graph, 0), 10);  // there is no more to give up
}

TEST(GraphLowerBound, CountsWhatAMomentTakes) {
  // Gradients, each storage once, though 3 reads it twice.
  std::vector<Vertex> ops = Small();
  ops[1].output_gradient = Bytes(7);
  ops[2].output_gradient = Bytes(8);
  ops[2].inputs = {{1, false}, {1, false}};
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 45), 0);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 44), 1);
  // What 3 needs and nobody later does: its extras, its output, its input's other version.
  ops = Small();
  ops[2].extra_saved = Bytes(3);
  ops[2].output = Bytes(5);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 33), 0);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 32), 1);
  ops[2].backward_needs_output = true;
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 38), 0);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 37), 1);
  // The forward of 3 in the cheaper way, or in the one that makes its extras.
  ops = Small();
  ops[2].output = Bytes(5);
  ops[2].forward_saving_overhead = Bytes(30);
  ops[2].forward_overhead = Bytes(25);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 40), 0);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 39), 1);
  ops[2].extra_saved = Bytes(1);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 46), 0);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 45), 1);
}

TEST(GraphLowerBound, WhatCannotBeMadeAgainIsHeld) {
  std::vector<Vertex> ops = Small();
  ops[1].inputs[0].backward_needs = true;
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 31), 0);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 30), 1);
  ops[1].must_keep = true;
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(ops), 0), 0);
}

// Of two branches the cheaper one is given up first, though the path goes through the other.
TEST(GraphLowerBound, TakesFromAllThatIsBelow) {
  std::vector<Vertex> ops = {Op(0, {}, 0, 0), Op(1, {{0, false}}, 10, 50),
                             Op(2, {{0, false}}, 10, 20), Op(3, {{1, true}, {2, true}}, 1, 0),
                             Op(4, {{3, false}}, 0, 0)};
  ops[4].backward_overhead = Bytes(10);
  const Graph graph = MakeGraph(ops);
  EXPECT_EQ(BoundAboveIdeal(graph, 30), 0);
  EXPECT_EQ(BoundAboveIdeal(graph, 25), 10);
  EXPECT_EQ(BoundAboveIdeal(graph, 20), 20);
  EXPECT_EQ(BoundAboveIdeal(graph, 15), 45);
}

// The chain's bound knows one thing more: the least gradient that is held while a forward runs.
TEST(GraphLowerBound, IsTheChainsOnAChain) {
  std::mt19937_64 rng(31);
  int above_ideal = 0;
  for (int round = 0; round < 500; ++round) {
    const bool no_overhead = round % 2 == 0;
    const Chain chain = testing::ComparableChain(
        testing::RandomChain(1 + round % 9, {}, &rng), [no_overhead](Stage* s) {
          if (no_overhead) s->forward_saving_overhead = s->forward_overhead = Bytes(0);
        });
    const Graph graph = testing::ChainAsGraph(chain);
    for (int64_t budget = 0; budget < 60; budget += 3) {
      const Nanos of_chain = MakespanLowerBound(chain, Bytes(budget));
      const Nanos of_graph = MakespanLowerBound(graph, Bytes(budget));
      EXPECT_LE(of_graph, of_chain);
      EXPECT_TRUE(!no_overhead || of_graph == of_chain) << testing::Describe(chain);
      above_ideal += of_graph > graph.ideal_time() ? 1 : 0;
    }
  }
  EXPECT_GT(above_ideal, 1000);
}

TEST(GraphLowerBound, IsNeverAboveTheOptimum) {
  std::mt19937_64 rng(4);
  int above_ideal = 0, tight = 0;
  for (int round = 0; round < 240; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 1 + round % 6;
    options.with_flags = round % 3 == 0;
    options.with_stops = round % 5 > 2;
    options.sources = round % 4 == 0 ? 0.2 : 0.0;
    const Graph graph = testing::RandomGraph(options, &rng);
    for (const auto& [peak, makespan] : testing::GraphScheduleFrontier(graph)) {
      const int64_t bound = MakespanLowerBound(graph, Bytes(peak)).value();
      EXPECT_LE(bound, makespan) << "budget " << peak << testing::Describe(graph);
      if (makespan == graph.ideal_time().value()) continue;
      above_ideal += bound > graph.ideal_time().value() ? 1 : 0;
      tight += bound == makespan ? 1 : 0;
    }
  }
  EXPECT_GT(above_ideal, 40);
  EXPECT_GT(tight, 5);
}

// With aliases too, where there is no exhaustive search.
TEST(GraphLowerBound, IsNeverAboveARandomSchedule) {
  std::mt19937_64 rng(33);
  int above_ideal = 0;
  for (int round = 0; round < 3000; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + round % 8;
    options.with_aliases = true;
    options.with_flags = round % 4 == 0;
    options.with_stops = round % 5 > 2;
    options.sources = round % 3 == 0 ? 0.2 : 0.0;
    const Graph graph = testing::RandomGraph(options, &rng);
    const absl::StatusOr<Simulation> drawn =
        Evaluator(graph).Run(WithDiscards(graph, testing::RandomSchedule(graph, &rng)));
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const Nanos bound = MakespanLowerBound(graph, drawn->peak);
    EXPECT_LE(bound, drawn->makespan) << testing::Describe(graph);
    EXPECT_GE(bound, graph.ideal_time());
    above_ideal += bound > graph.ideal_time() ? 1 : 0;
    EXPECT_GE(MakespanLowerBound(graph, drawn->peak - Bytes(3)), bound);
    const absl::StatusOr<Simulation> store_all = Evaluator(graph).Run(StoreAllSchedule(graph));
    EXPECT_EQ(MakespanLowerBound(graph, store_all->peak), graph.ideal_time());
  }
  EXPECT_GT(above_ideal, 15);
}

TEST(GraphLowerBound, HoldsForTheLargestSizesAndTimes) {
  std::vector<Vertex> ops = Small();
  ops[1].output = Bytes(int64_t{1} << 60);
  ops[1].extra_saved = Bytes(int64_t{1} << 60);
  ops[2].backward_overhead = Bytes(int64_t{1} << 60);
  ops[1].forward_time = Nanos(int64_t{1} << 58);
  const Graph graph = MakeGraph(ops);
  EXPECT_EQ(BoundAboveIdeal(graph, int64_t{3} << 60), 0);
  EXPECT_EQ(BoundAboveIdeal(graph, int64_t{2} << 60), int64_t{1} << 57);
  EXPECT_EQ(BoundAboveIdeal(graph, 0), int64_t{1} << 58);
}

// Neither width nor length may cost quadratic time.
TEST(GraphLowerBound, StaysFastOnLargeGraphs) {
  constexpr int kSize = 200000;
  std::vector<Vertex> path = {Op(0, {}, 1, 1)}, star = {Op(0, {}, 1, 1)};
  std::vector<GraphInput> all;
  for (int64_t k = 1; k < kSize; ++k) {
    path.push_back(Op(k, {{k - 1, true}}, 1, 1));
    star.push_back(Op(k, {{0, true}}, 1, 1));
    all.push_back({k, true});
  }
  star.push_back(Op(kSize, all, 1, 1));
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(path), kSize / 2), kSize / 2);
  EXPECT_EQ(BoundAboveIdeal(MakeGraph(star), kSize), 0);
}

}  // namespace
}  // namespace stowage

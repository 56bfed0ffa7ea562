#include "solvers/graph/linearize.h"

#include <gtest/gtest.h>

#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/graph_ops.h"

namespace stowage {
namespace {

using testing::MakeOp;

LinearizedGraph LinearizeOk(std::vector<Vertex> vertices) {
  absl::StatusOr<LinearizedGraph> linear = Linearize(testing::MakeGraph(std::move(vertices)));
  EXPECT_TRUE(linear.ok()) << linear.status();
  return *std::move(linear);
}

using Ids = std::vector<std::vector<int>>;

// The vertices of every stage, by position; ids are positions in these tests.
Ids StagesOf(const LinearizedGraph& linear) {
  Ids stages;
  for (size_t l = 1; l < linear.stage_begin.size(); ++l) {
    stages.emplace_back();
    for (int p = linear.stage_begin[l - 1]; p < linear.stage_begin[l]; ++p) {
      stages.back().push_back(p);
    }
  }
  return stages;
}

// A chain is the graph whose every stage is one op: the accounting of both is the same.
TEST(Linearize, APathIsItsOwnChain) {
  Vertex input = MakeOp(0, {}, 100);
  input.output_gradient = Bytes(0);
  Vertex conv = MakeOp(1, {{0, true}}, 30);
  conv.extra_saved = Bytes(7);
  conv.forward_saving_overhead = Bytes(11);
  conv.forward_overhead = Bytes(13);
  conv.backward_overhead = Bytes(17);
  Vertex relu = MakeOp(2, {{1, false}}, 30);
  relu.backward_needs_output = true;
  const LinearizedGraph linear = LinearizeOk({input, conv, relu});
  EXPECT_EQ(StagesOf(linear), (Ids{{1}, {2}}));
  EXPECT_EQ(linear.chain.activation(0), Bytes(100));
  EXPECT_EQ(linear.chain.gradient(0), Bytes(0));
  const Stage& s = linear.chain.stage(1);
  EXPECT_EQ(s.forward_time, Nanos(11));
  EXPECT_EQ(s.backward_time, Nanos(21));
  EXPECT_EQ(s.output, Bytes(30));
  EXPECT_EQ(s.saved, Bytes(37));
  EXPECT_EQ(s.output_gradient, Bytes(30));
  EXPECT_EQ(s.forward_saving_overhead, Bytes(11));
  EXPECT_EQ(s.forward_overhead, Bytes(13));
  EXPECT_EQ(s.backward_overhead, Bytes(17));
  // The gradient of the first op's output is part of what the second one's backward holds.
  EXPECT_EQ(linear.chain.stage(2).backward_overhead, Bytes(30));
}

// x -> a -> b -> add(x, b): the skip keeps the block in one stage.
TEST(Linearize, ASkipConnectionIsOneStage) {
  const Vertex input = MakeOp(0, {}, 8);
  const Vertex a = MakeOp(1, {{0, true}}, 16);
  const Vertex b = MakeOp(2, {{1, true}}, 32);
  Vertex sum = MakeOp(3, {{0, false}, {2, false}}, 64);
  sum.linear_multi_input = true;
  const LinearizedGraph linear = LinearizeOk({input, a, b, sum, MakeOp(4, {{3, true}}, 128)});
  EXPECT_EQ(StagesOf(linear), (Ids{{1, 2, 3}, {4}}));
  const Stage& s = linear.chain.stage(1);
  EXPECT_EQ(s.output, Bytes(64));
  EXPECT_EQ(s.saved, Bytes(16 + 64));               // b is not needed by any backward
  EXPECT_EQ(s.forward_saving_overhead, Bytes(32));  // b until the sum has run
  EXPECT_EQ(s.forward_overhead, Bytes(32));         // b beside the sum
  // The most is at the sum: gradients of x and b beside its own. That one (64) has gone when a's
  // (16) comes.
  EXPECT_EQ(s.backward_overhead, Bytes(8 + 32));
  EXPECT_EQ(s.forward_time, Nanos(11 + 12 + 13));
}

TEST(Linearize, AliasesAddNoBytes) {
  const Vertex input = MakeOp(0, {}, 8);
  const Vertex conv = MakeOp(1, {{0, true}}, 16);
  Vertex relu = MakeOp(2, {{1, false}}, 16);
  relu.alias = AliasKind::kInPlace;
  relu.backward_needs_output = true;
  const Vertex last = MakeOp(3, {{2, true}}, 4);
  const LinearizedGraph linear = LinearizeOk({input, conv, relu, last});
  // No cut between conv and what writes over it: recomputing the relu alone would apply it twice.
  EXPECT_EQ(StagesOf(linear), (Ids{{1, 2}, {3}}));
  EXPECT_EQ(linear.chain.stage(1).output, Bytes(16));
  EXPECT_EQ(linear.chain.stage(1).saved, Bytes(16));
  EXPECT_EQ(linear.chain.stage(1).forward_overhead, Bytes(0));
}

// A view writes nothing, so the cut before it stays.
TEST(Linearize, ViewsDoNotMoveTheCut) {
  Vertex view = MakeOp(2, {{1, false}}, 16);
  view.alias = AliasKind::kView;
  const LinearizedGraph linear =
      LinearizeOk({MakeOp(0, {}, 8), MakeOp(1, {{0, true}}, 16), view, MakeOp(3, {{2, true}}, 4)});
  EXPECT_EQ(StagesOf(linear), (Ids{{1}, {2, 3}}));
  EXPECT_EQ(linear.chain.stage(2).saved, Bytes(4));
}

// x -> a -> b -> end, the skip from x to b making a and b one stage.
std::vector<Vertex> StoppingSegment() {
  Vertex a = MakeOp(1, {{0, true}}, 16);
  a.forward_saving_overhead = Bytes(3);
  Vertex b = MakeOp(2, {{1, true}, {0, false}}, 64);
  b.extra_saved = Bytes(5);
  b.forward_saving_overhead = Bytes(9);
  b.recompute_saving_time = Nanos(4);
  b.recompute_saving_overhead = Bytes(2);
  return {MakeOp(0, {}, 8), a, b, MakeOp(3, {{2, true}}, 4)};
}

TEST(Linearize, ASegmentStopsWhereItsLastVertexDoes) {
  const Stage s = LinearizeOk(StoppingSegment()).chain.stage(1);
  EXPECT_EQ(s.saved, Bytes(16 + 5 + 64));
  EXPECT_EQ(s.recompute_saving_time, Nanos(11 + 4));
  EXPECT_EQ(s.recompute_saving_overhead, Bytes(2));
  // The most may be at a vertex before it.
  std::vector<Vertex> early = StoppingSegment();
  early[1].forward_saving_overhead = Bytes(30);
  EXPECT_EQ(LinearizeOk(early).chain.stage(1).recompute_saving_overhead, Bytes(30 - 5));
  // What is not said is what a whole forward takes.
  std::vector<Vertex> unsaid = StoppingSegment();
  unsaid[2].recompute_saving_overhead.reset();
  EXPECT_EQ(LinearizeOk(unsaid).chain.stage(1).recompute_saving_overhead, Bytes(64 + 9));
}

TEST(Linearize, ASegmentRunsToItsEndWhereItsOutputIsNeeded) {
  std::vector<Vertex> needed = StoppingSegment();
  needed[2].backward_needs_output = true;
  EXPECT_FALSE(LinearizeOk(needed).chain.stage(1).stops());
  // A vertex that stops before the last one has its reader in the segment.
  std::vector<Vertex> inside = StoppingSegment();
  inside[1].extra_saved = Bytes(1);
  inside[1].recompute_saving_time = Nanos(4);
  inside[2].recompute_saving_time.reset();
  inside[2].recompute_saving_overhead.reset();
  EXPECT_FALSE(LinearizeOk(inside).chain.stage(1).stops());
  // The output is made before the last vertex, which reads it in place.
  std::vector<Vertex> viewed = StoppingSegment();
  viewed[3].alias = AliasKind::kView;
  viewed[3].inputs[0].backward_needs = false;
  viewed[3].output = viewed[2].output;
  viewed.push_back(MakeOp(4, {{3, true}, {2, true}}, 4));
  EXPECT_EQ(StagesOf(LinearizeOk(viewed)), (Ids{{1, 2}, {3, 4}}));
}

TEST(Linearize, EveryVertexIsInOneStageAndTimesAddUp) {
  const LinearizedGraph linear =
      LinearizeOk({MakeOp(0, {}, 1), MakeOp(1, {{0, true}}, 2), MakeOp(2, {{0, true}}, 3),
                   MakeOp(3, {{1, true}, {2, true}}, 4), MakeOp(4, {{3, true}}, 5)});
  EXPECT_EQ(StagesOf(linear), (Ids{{1, 2, 3}, {4}}));
  EXPECT_EQ(linear.chain.ideal_time(), Nanos(11 + 12 + 13 + 14 + 21 + 22 + 23 + 24));
  EXPECT_TRUE(Evaluator(linear.chain).Run(StoreAllSchedule(linear.chain)).ok());
}

TEST(Linearize, FlagsOfAnyVertexHoldForTheStage) {
  Vertex a = MakeOp(1, {{0, true}}, 2), b = MakeOp(2, {{0, true}}, 2);
  a.random = true;
  b.collective = true;
  const LinearizedGraph linear =
      LinearizeOk({MakeOp(0, {}, 1), a, b, MakeOp(3, {{1, true}, {2, true}}, 2)});
  EXPECT_TRUE(linear.chain.stage(1).random);
  EXPECT_FALSE(linear.chain.stage(1).recomputable());
  EXPECT_FALSE(linear.chain.stage(1).stateful);
}

// Outputs of the network that nothing reads live to the end, so nothing after them is a cut.
TEST(Linearize, UnreadOutputsStayAlive) {
  const LinearizedGraph linear =
      LinearizeOk({MakeOp(0, {}, 1), MakeOp(1, {{0, true}}, 2), MakeOp(2, {{0, true}}, 3),
                   MakeOp(3, {{2, true}}, 4), MakeOp(4, {{3, true}}, 5)});
  EXPECT_EQ(StagesOf(linear), (Ids{{1, 2, 3, 4}}));
}

// Their gradients are there together from the first backward on, though nothing inside makes them.
TEST(Linearize, UnreadOutputsHaveGradients) {
  const LinearizedGraph inside =
      LinearizeOk({MakeOp(0, {}, 1), MakeOp(1, {{0, true}}, 2), MakeOp(2, {{0, true}}, 4),
                   MakeOp(3, {{2, true}}, 8)});
  EXPECT_EQ(StagesOf(inside), (Ids{{1, 2, 3}}));
  EXPECT_EQ(inside.chain.stage(1).backward_overhead, Bytes(2 + 4));
  // 1 is the last segment's input.
  const LinearizedGraph before = LinearizeOk(
      {MakeOp(0, {}, 1), MakeOp(1, {{0, true}}, 2), MakeOp(2, {}, 4), MakeOp(3, {{2, true}}, 8)});
  EXPECT_EQ(StagesOf(before), (Ids{{1}, {2, 3}}));
  EXPECT_EQ(before.chain.stage(2).backward_overhead, Bytes(2 + 4));
}

// A second input of the network comes from outside once.
TEST(Linearize, AStageWithASourceMustBeKept) {
  const LinearizedGraph linear =
      LinearizeOk({MakeOp(0, {}, 1), MakeOp(1, {{0, true}}, 2), MakeOp(2, {}, 4),
                   MakeOp(3, {{1, true}, {2, true}}, 8), MakeOp(4, {{3, true}}, 16)});
  EXPECT_EQ(StagesOf(linear), (Ids{{1}, {2, 3}, {4}}));
  EXPECT_TRUE(linear.chain.stage(1).recomputable());
  EXPECT_FALSE(linear.chain.stage(2).recomputable());
  EXPECT_TRUE(linear.chain.stage(3).recomputable());
}

// a^0 is bytes and nothing else.
TEST(Linearize, AnInputThatTakesMoreThanItsOutputIsAStage) {
  for (Bytes Vertex::*field : {&Vertex::extra_saved, &Vertex::forward_saving_overhead,
                               &Vertex::forward_overhead, &Vertex::backward_overhead}) {
    Vertex input = MakeOp(0, {}, 1);
    input.*field = Bytes(3);
    const LinearizedGraph linear = LinearizeOk({input, MakeOp(1, {{0, true}}, 2)});
    EXPECT_EQ(StagesOf(linear), (Ids{{0}, {1}}));
    EXPECT_EQ(linear.stage_begin, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(linear.chain.activation(0), Bytes(0));
    EXPECT_FALSE(linear.chain.stage(1).recomputable());
  }
}

TEST(Linearize, ASingleVertexIsAChain) {
  EXPECT_EQ(StagesOf(LinearizeOk({MakeOp(0, {}, 3)})), (Ids{{0}}));
}

// Wide and long graphs must not take quadratic time.
TEST(Linearize, StaysFastOnWideGraphs) {
  constexpr int64_t kWidth = 200000;
  std::vector<Vertex> vertices = {MakeOp(0, {}, 1)};
  std::vector<GraphInput> all;
  for (int64_t i = 1; i <= kWidth; ++i) {
    vertices.push_back(MakeOp(i, {{0, true}}, 1));
    all.push_back({i, true});
  }
  vertices.push_back(MakeOp(kWidth + 1, all, 1));
  EXPECT_EQ(LinearizeOk(std::move(vertices)).chain.length(), 1);
}

}  // namespace
}  // namespace stowage

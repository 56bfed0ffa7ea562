#include "solvers/schedule/graph_liveness.h"

#include <gtest/gtest.h>

#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/graph_ops.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

using testing::MakeGraph;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

Vertex Op(int64_t k, std::vector<GraphInput> inputs) {
  Vertex v = testing::MakeOp(k, std::move(inputs));
  v.output = Bytes(1);
  v.forward_time = Nanos(1);
  return v;
}

// 1 -> 2 -> 3 -> 4, where backward 3 needs tensor 2 and extras, backward 4 its output.
std::vector<Vertex> Path() {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}}), Op(2, {{1, true}}),
                             Op(3, {{2, false}})};
  ops[2].extra_saved = Bytes(8);
  ops[3].backward_needs_output = true;
  return ops;
}

TEST(WithDiscards, DropsEachTensorAfterItsLastUse) {
  EXPECT_EQ(
      StoreAllSchedule(MakeGraph(Path())),
      (Schedule{ForwardNoSave(1), ForwardNoSave(2), Discard(kActivation, 1), ForwardSave(3),
                ForwardNoSave(4), Discard(kActivation, 3), Backward(4), Discard(kActivation, 4),
                Backward(3), Discard(kActivation, 2), Backward(2), Backward(1)}));
}

// Tensor 2 is not held from where the next use is of a new one; the unread 4 goes at once.
TEST(WithDiscards, ATensorThatIsMadeAgainIsNotHeldBefore) {
  std::vector<Vertex> ops = Path();
  ops[3].backward_needs_output = false;
  const Schedule order = {ForwardSave(1), ForwardSave(2),   ForwardNoSave(3), ForwardNoSave(4),
                          Backward(4),    ForwardNoSave(2), ForwardSave(3),   Backward(3),
                          Backward(2),    Backward(1)};
  const Schedule want = {ForwardNoSave(1),
                         ForwardNoSave(2),
                         ForwardNoSave(3),
                         Discard(kActivation, 2),
                         ForwardNoSave(4),
                         Discard(kActivation, 3),
                         Discard(kActivation, 4),
                         Backward(4),
                         ForwardNoSave(2),
                         Discard(kActivation, 1),
                         ForwardSave(3),
                         Discard(kActivation, 3),
                         Backward(3),
                         Discard(kActivation, 2),
                         Backward(2),
                         Backward(1)};
  EXPECT_EQ(WithDiscards(MakeGraph(ops), order), want);
  // Discards in the order do not count.
  Schedule with_discards = order;
  with_discards.insert(with_discards.begin() + 3, Discard(kSaved, 3));
  EXPECT_EQ(WithDiscards(MakeGraph(ops), with_discards), want);
}

TEST(WithDiscards, LeavesOutRepeatsThatNothingUses) {
  const Graph graph = MakeGraph(Path());
  Schedule order = {ForwardSave(1), ForwardSave(2), ForwardSave(3), ForwardSave(4)};
  const Schedule backwards = {Backward(4), Backward(3), Backward(2), Backward(1)};
  // 2 would be used by 3 alone, and what that makes is made anew by the last line.
  const Schedule repeats = {ForwardNoSave(2), ForwardSave(3), ForwardNoSave(2), ForwardSave(3)};
  for (const Schedule& part : {repeats, backwards}) {
    order.insert(order.end(), part.begin(), part.end());
  }
  const Schedule result = WithDiscards(graph, order);
  int forwards = 0;
  for (const Instruction& i : result) forwards += IsForward(i.op) ? 1 : 0;
  EXPECT_EQ(forwards, 6);
  const absl::StatusOr<Simulation> simulation = Evaluator(graph).Run(result);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  EXPECT_EQ(simulation->recomputed_forwards, 2);
}

TEST(WithDiscards, ExtrasThatNothingUsesAreMadeOnlyWhereThatIsCheaper) {
  std::vector<Vertex> ops = Path();
  const Schedule order = {ForwardSave(1), ForwardSave(2),   ForwardSave(3), ForwardNoSave(4),
                          Backward(4),    ForwardNoSave(2), ForwardSave(3), Backward(3),
                          Backward(2),    Backward(1)};
  EXPECT_EQ(WithDiscards(MakeGraph(ops), order)[2], ForwardNoSave(3));
  ops[2].forward_overhead = Bytes(8);
  EXPECT_EQ(WithDiscards(MakeGraph(ops), order)[2], ForwardNoSave(3));
  ops[2].forward_overhead = Bytes(9);
  const Schedule result = WithDiscards(MakeGraph(ops), order);
  EXPECT_EQ(result[2], ForwardSave(3));
  EXPECT_EQ(result[4], Discard(kSaved, 3));
  EXPECT_TRUE(Evaluator(MakeGraph(ops)).Run(result).ok());
  ops[1].forward_overhead = Bytes(1);  // 2 has no extras to drop
  EXPECT_EQ(WithDiscards(MakeGraph(ops), order)[1], ForwardSave(2));
  EXPECT_TRUE(Evaluator(MakeGraph(ops)).Run(WithDiscards(MakeGraph(ops), order)).ok());
}

// 2 is needed as the relu in place left it; 4 is a view of that.
TEST(WithDiscards, VersionsAndViewsOfWhatIsMadeAgain) {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}}), Op(2, {{1, false}}),
                             Op(3, {{2, false}}), Op(4, {{3, true}})};
  ops[2].alias = AliasKind::kInPlace;
  ops[2].backward_needs_output = true;
  ops[3].alias = AliasKind::kView;
  const Graph graph = MakeGraph(ops);
  const Schedule order = {ForwardSave(1), ForwardSave(2),   ForwardSave(3), ForwardSave(4),
                          ForwardSave(5), ForwardNoSave(2), ForwardSave(3), ForwardNoSave(4),
                          Backward(5),    Backward(4),      Backward(3),    Backward(2),
                          Backward(1)};
  EXPECT_EQ(
      WithDiscards(graph, order),
      (Schedule{ForwardNoSave(1), ForwardNoSave(2), ForwardNoSave(3), ForwardNoSave(4),
                ForwardNoSave(5), Discard(kActivation, 2), Discard(kActivation, 5),
                ForwardNoSave(2), Discard(kActivation, 1), ForwardNoSave(3), Backward(5),
                Backward(4), Backward(3), Discard(kActivation, 2), Backward(2), Backward(1)}));
}

TEST(WithDiscards, LeavesToTheEvaluatorWhatItDoesNotKnow) {
  const Graph graph = MakeGraph({Op(0, {})});
  for (const Instruction& i :
       {DropSavedKeepOutput(1), ForwardNoSaveFreeInput(1), ForwardSave(2), Backward(0)}) {
    EXPECT_EQ(WithDiscards(graph, {i}), Schedule{i});
  }
}

// Any placement of discards that the evaluator accepts is no better than the pass's for the same order
// of forwards and backwards.
TEST(WithDiscards, IsNoWorseThanAnyOtherPlacement) {
  std::mt19937_64 rng(11);
  int better = 0, faster = 0, drawn = 0;
  for (int round = 0; round < 6000; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + round % 8;
    options.with_aliases = round % 3 > 0;
    options.with_flags = round % 3 > 1;
    options.with_stops = round % 5 > 2;
    options.sources = round % 2 == 0 ? 0.2 : 0.0;
    const Graph graph = testing::RandomGraph(options, &rng);
    const Schedule schedule = testing::RandomSchedule(graph, &rng);
    const absl::StatusOr<Simulation> before = Evaluator(graph).Run(schedule);
    if (!before.ok()) continue;
    ++drawn;
    const Schedule result = WithDiscards(graph, schedule);
    const absl::StatusOr<Simulation> after = Evaluator(graph).Run(result);
    ASSERT_TRUE(after.ok()) << after.status() << testing::Describe(graph) << "\n"
                            << testing::Describe(schedule) << "\n"
                            << testing::Describe(result);
    EXPECT_LE(after->peak, before->peak) << testing::Describe(graph) << "\n"
                                         << testing::Describe(schedule) << "\n"
                                         << testing::Describe(result);
    EXPECT_LE(after->makespan, before->makespan);
    EXPECT_EQ(WithDiscards(graph, result), result);
    better += after->peak < before->peak ? 1 : 0;
    faster += after->makespan < before->makespan ? 1 : 0;
  }
  EXPECT_GT(drawn, 5000);
  EXPECT_GT(better, 2000);
  EXPECT_GT(faster, 1000);
}

TEST(StoreAllSchedule, OfAGraphRepeatsNothing) {
  std::mt19937_64 rng(12);
  for (int round = 0; round < 500; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 1 + round % 12;
    options.with_aliases = options.with_flags = round % 2 == 0;
    options.sources = 0.1;
    const Graph graph = testing::RandomGraph(options, &rng);
    const absl::StatusOr<Simulation> result = Evaluator(graph).Run(StoreAllSchedule(graph));
    ASSERT_TRUE(result.ok()) << result.status() << testing::Describe(graph);
    EXPECT_EQ(result->makespan, graph.ideal_time());
  }
}

}  // namespace
}  // namespace stowage

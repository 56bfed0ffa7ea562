#include "solvers/schedule/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "solvers/schedule/instance.h"
#include "tests/solvers/graph_ops.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

using ::stowage::testing::MakeGraph;
using ::testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

// Every size of vertex k is another power of 16: peaks say what they are made of.
Vertex Op(int64_t k, std::vector<GraphInput> inputs) {
  Vertex v = testing::MakeOp(k, std::move(inputs));
  v.output = Bytes(int64_t{1} << (4 * k));
  v.output_gradient = Bytes(int64_t{2} << (4 * k));
  v.forward_time = Nanos(int64_t{1} << (2 * k));
  v.backward_time = Nanos(int64_t{2} << (2 * k));
  return v;
}

// Source 1, vertex 2 with extras reads it, vertex 3 reads 2. Backward 2 needs tensor 1, backward 3
// its own output.
std::vector<Vertex> ThreeOps() {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, true}}), Op(2, {{1, false}})};
  ops[1].extra_saved = Bytes(4 << 4);
  ops[2].backward_needs_output = true;
  return ops;
}

Schedule ForwardsOf(int n) {
  Schedule schedule;
  for (int v = 1; v <= n; ++v) schedule.push_back(ForwardSave(v));
  return schedule;
}

Schedule operator+(Schedule a, const Schedule& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<TimelinePoint> Timeline(const Graph& graph, const Schedule& schedule) {
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> result = Evaluator(graph).Run(schedule, &timeline);
  EXPECT_TRUE(result.ok()) << result.status();
  return timeline;
}

// Why the schedule is refused; "" if it is not.
std::string Refusal(const Graph& graph, const Schedule& schedule) {
  const absl::StatusOr<Simulation> result = Evaluator(graph).Run(schedule);
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(SimulateGraph, MemoryIsWhatTheTableSays) {
  std::vector<Vertex> ops = ThreeOps();
  ops[1].forward_saving_overhead = Bytes(0x1000);
  ops[1].forward_overhead = Bytes(0x2000);
  ops[1].backward_overhead = Bytes(0x3000);
  const Graph graph = MakeGraph(ops);
  const Schedule schedule = {ForwardSave(1), ForwardNoSave(2),
                             ForwardSave(3), Discard(kActivation, 2),
                             Backward(3),    Discard(kActivation, 3),
                             ForwardSave(2), Discard(kSaved, 2),
                             ForwardSave(2), Backward(2),
                             Backward(1)};
  const std::vector<TimelinePoint> t = Timeline(graph, schedule);
  const std::vector<std::pair<int64_t, int64_t>> want = {
      {0x001, 0x001},                  // forward 1
      {0x2011, 0x011},                 // forward 2, saving nothing
      {0x111, 0x111},                  // forward 3 has no extras
      {0x111, 0x101},                  // discard 2
      {0x101 + 0x220, 0x101 + 0x020},  // backward 3: its gradient and the new one of 2
      {0x121, 0x021},                  // discard 3
      {0x1000 + 0x071, 0x071},         // forward 2 again, saving extras
      {0x071, 0x031},                  // discard its extras
      {0x1000 + 0x081, 0x071},         // and renew them: a second output for the moment
      {0x3000 + 0x073, 0x013},         // backward 2: the gradient of 1 comes, extras and 2's own go
      {0x013, 0x011}};                 // backward 1
  ASSERT_EQ(t.size(), want.size());
  for (size_t i = 0; i < t.size(); ++i) {
    EXPECT_EQ(t[i].running, Bytes(want[i].first)) << i;
    EXPECT_EQ(t[i].held, Bytes(want[i].second)) << i;
  }
}

TEST(SimulateGraph, TimesAndPeak) {
  const Schedule schedule =
      ForwardsOf(3) + Schedule{Backward(3),        Discard(kActivation, 2), ForwardNoSave(2),
                               Discard(kSaved, 2), ForwardSave(2),          Backward(2),
                               Backward(1)};
  const absl::StatusOr<Simulation> result = Evaluator(MakeGraph(ThreeOps())).Run(schedule);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->makespan, Nanos(3 * (1 + 4 + 16) + 2 * 4));
  EXPECT_EQ(result->recompute_time, Nanos(2 * 4));
  EXPECT_EQ(result->recomputed_forwards, 2);
  EXPECT_EQ(result->idle_time, Nanos(0));
  EXPECT_EQ(result->peak, Bytes(0x371));
  EXPECT_EQ(result->peak_instruction, 3u);
}

struct BadSchedule {
  Schedule schedule;
  std::string reason;
};

TEST(SimulateGraph, RefusesWhatTheTableDoesNotAllow) {
  const Graph graph = MakeGraph(ThreeOps());
  Instruction elsewhere = ForwardSave(1);
  elsewhere.stream = Stream::kToHost;
  const Schedule all = ForwardsOf(3);
  const std::vector<BadSchedule> cases = {
      {{}, "ends before backward 3"},
      {all + Schedule{Backward(3), Backward(2)}, "ends before backward 1"},
      {{ForwardSave(0)}, "vertices are 1 to 3"},
      {{Discard(kActivation, 0)}, "vertices are 1 to 3"},
      {{ForwardSave(4)}, "vertices are 1 to 3"},
      {{ForwardSave(std::numeric_limits<int32_t>::min())}, "vertices are 1 to 3"},
      {{elsewhere}, "compute stream"},
      {{ForwardNoSaveFreeInput(1)}, "no place in the accounting of a graph"},
      {all + Schedule{DropSavedKeepOutput(2)}, "no place in the accounting of a graph"},
      {{{stowage::Op::kOffloadStart, 1}}, "transfers need a transfer model"},
      {{ForwardSave(2)}, "instruction 0 (forward-save 2): its input, vertex 1, is not held"},
      {{ForwardSave(1), ForwardSave(2), Discard(kActivation, 2), ForwardSave(3)},
       "instruction 3 (forward-save 3): its input, vertex 2, is not held"},
      {all + Schedule{ForwardSave(3)}, "its output is held already"},
      {all + Schedule{ForwardNoSave(3)}, "its output is held already"},
      {all + Schedule{ForwardNoSave(2)}, "its output is held already"},
      {all + Schedule{ForwardSave(2)}, "its extras are held already"},
      {all + Schedule{Discard(kActivation, 2), ForwardSave(2)}, "its extras are held already"},
      {all + Schedule{Discard(kActivation, 1), ForwardSave(1)}, "must not be recomputed"},
      {all + Schedule{Discard(kSaved, 1)}, "its extras are not held"},
      {all + Schedule{Discard(kSaved, 2), Discard(kSaved, 2)}, "its extras are not held"},
      {all + Schedule{Discard(kActivation, 2), Discard(kActivation, 2)}, "tensor is not held"},
      {all + Schedule{Backward(2)}, "a vertex that reads it has not run backward"},
      {all + Schedule{Backward(3), Backward(3)}, "it has run already"},
      {{ForwardSave(1), Backward(3)}, "its forward has not run"},
      {all + Schedule{Discard(kActivation, 3), Backward(3)}, "its output, vertex 3, is not held"},
      {all + Schedule{Backward(3), Discard(kActivation, 1), Backward(2)},
       "its input, vertex 1, is not held"},
      {all + Schedule{Backward(3), Discard(kSaved, 2), Backward(2)}, "its extras are not held"},
      {all + Schedule{Backward(3), Backward(2), Discard(kSaved, 2)}, "its extras are not held"},
  };
  for (const BadSchedule& bad : cases) {
    EXPECT_THAT(Refusal(graph, bad.schedule), HasSubstr(bad.reason))
        << testing::Describe(bad.schedule);
  }
  // What it refuses is not needed: the plain one passes, and tensor 2 is no backward's.
  EXPECT_EQ(Refusal(graph,
                    all + Schedule{Discard(kActivation, 2), Backward(3), Backward(2), Backward(1)}),
            "");
}

// A branch whose forward comes after another branch's backward; the loss's seed is there all along.
TEST(SimulateGraph, SeveralOutputsSeedTheirGradientsAtTheFirstBackward) {
  const Graph graph = MakeGraph({Op(0, {}), Op(1, {{0, false}}), Op(2, {{0, false}})});
  const std::vector<TimelinePoint> t = Timeline(graph, {ForwardSave(1), ForwardSave(2), Backward(2),
                                                        ForwardSave(3), Backward(3), Backward(1)});
  EXPECT_EQ(t[1].held, Bytes(0x011));             // no gradient yet
  EXPECT_EQ(t[2].running, Bytes(0x011 + 0x222));  // both seeds, and what 1 gets
  EXPECT_EQ(t[2].held, Bytes(0x011 + 0x202));
  EXPECT_EQ(t[4].running, Bytes(0x111 + 0x202));  // 1 has its gradient already
  EXPECT_EQ(t[5].held, Bytes(0x111));
}

TEST(SimulateGraph, FirstRunsOfFlaggedVerticesKeepTheProgramsOrder) {
  const std::vector<std::function<void(Vertex*)>> flags = {[](Vertex* v) { v->random = true; },
                                                           [](Vertex* v) { v->stateful = true; },
                                                           [](Vertex* v) { v->collective = true; }};
  for (const auto& first : flags) {
    for (const auto& second : flags) {
      std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}}), Op(2, {{0, false}})};
      const Schedule swapped = {ForwardSave(1), ForwardSave(3), ForwardSave(2),
                                Backward(2),    Backward(3),    Backward(1)};
      first(&ops[1]);
      EXPECT_EQ(Refusal(MakeGraph(ops), swapped), "");
      second(&ops[2]);
      EXPECT_THAT(Refusal(MakeGraph(ops), swapped), HasSubstr("vertex 2 has not run"));
    }
  }
  // Later runs are in any order.
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}}), Op(2, {{0, false}})};
  ops[1].random = ops[2].random = true;
  EXPECT_EQ(Refusal(MakeGraph(ops),
                    ForwardsOf(3) + Schedule{Discard(kActivation, 2), Discard(kActivation, 3),
                                             ForwardSave(3), ForwardSave(2), Backward(2),
                                             Backward(3), Backward(1)}),
            "");
}

TEST(SimulateGraph, WhatMustNotBeRecomputedRunsOnce) {
  const Schedule twice =
      ForwardsOf(2) + Schedule{Discard(kActivation, 2), ForwardSave(2), Backward(2), Backward(1)};
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}})};
  EXPECT_EQ(Refusal(MakeGraph(ops), twice), "");
  ops[1].stateful = ops[1].random = true;
  EXPECT_EQ(Refusal(MakeGraph(ops), twice), "");
  ops[1].collective = true;
  EXPECT_THAT(Refusal(MakeGraph(ops), twice), HasSubstr("must not be recomputed"));
  ops[1].collective = false;
  ops[1].must_keep = true;
  EXPECT_THAT(Refusal(MakeGraph(ops), twice), HasSubstr("must not be recomputed"));
}

// 1 source, 2 conv, 3 relu in place over it, 4 reads the result. Written as reading `conv`, which
// holds what the relu left.
std::vector<Vertex> InPlace() {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, true}}), Op(2, {{1, false}}),
                             Op(3, {{1, true}})};
  ops[2].alias = AliasKind::kInPlace;
  ops[2].backward_needs_output = true;
  return ops;
}

TEST(SimulateGraph, InPlaceConsumesTheOldVersionAndCostsNothing) {
  const Graph graph = MakeGraph(InPlace());
  const Schedule backwards = {Backward(4), Backward(3), Backward(2), Backward(1)};
  const std::vector<TimelinePoint> t = Timeline(graph, ForwardsOf(4) + backwards);
  EXPECT_EQ(t[2].running, Bytes(0x11));
  EXPECT_EQ(t[3].held, Bytes(0x1011));
  // Backward 4 makes the gradient of the storage, which 3 passes on and 2 drops.
  EXPECT_EQ(t[4].held, Bytes(0x1031));
  EXPECT_EQ(t[5].held, Bytes(0x1031));
  EXPECT_EQ(t[6].held, Bytes(0x1013));

  const Schedule early = {ForwardSave(1), ForwardSave(2), ForwardSave(4)};
  EXPECT_THAT(Refusal(graph, early), HasSubstr("held as vertex 2 left it"));
  EXPECT_THAT(
      Refusal(graph, ForwardsOf(4) + Schedule{ForwardSave(3)}),
      HasSubstr("its input, vertex 2, is held as vertex 3 left it, and needed as vertex 2"));
  EXPECT_THAT(Refusal(graph, ForwardsOf(4) + Schedule{ForwardSave(2)}),
              HasSubstr("its output is held already"));
  EXPECT_THAT(Refusal(graph, ForwardsOf(4) + Schedule{Discard(kActivation, 3)}),
              HasSubstr("its tensor belongs to vertex 2"));
  // Made again, the storage has its first version until the relu runs over it once more.
  const Schedule again = ForwardsOf(4) + Schedule{Discard(kActivation, 2), ForwardSave(2)};
  EXPECT_THAT(Refusal(graph, again + backwards),
              HasSubstr("its input, vertex 2, is held as vertex 2 left it"));
  EXPECT_EQ(Refusal(graph, again + Schedule{ForwardSave(3)} + backwards), "");
  std::vector<Vertex> output_only = InPlace();
  output_only[3].inputs[0].backward_needs = false;
  EXPECT_THAT(Refusal(MakeGraph(output_only), again + backwards),
              HasSubstr("its output, vertex 3, is held as vertex 2 left it"));
}

// A backward that needs what has been written over has to have it made again.
TEST(SimulateGraph, AVersionThatIsGoneIsMissed) {
  const Graph graph = MakeGraph({Op(0, {}), Op(1, {{0, false}}), Op(2, {{1, true}}), [] {
                                   Vertex v = Op(3, {{1, false}});
                                   v.alias = AliasKind::kInPlace;
                                   return v;
                                 }()});
  EXPECT_THAT(Refusal(graph, StoreAllSchedule(graph)), HasSubstr("needed as vertex 2 did"));
  EXPECT_EQ(
      Refusal(graph, ForwardsOf(4) + Schedule{Discard(kActivation, 2), ForwardSave(2), Backward(4),
                                              Backward(3), Backward(2), Backward(1)}),
      "");
}

TEST(SimulateGraph, AViewIsThereWithItsStorage) {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}}), Op(2, {{1, false}}),
                             Op(3, {{2, true}})};
  ops[2].alias = AliasKind::kView;
  const Graph graph = MakeGraph(ops);
  const Schedule backwards = {Backward(4), Backward(3), Backward(2), Backward(1)};
  const std::vector<TimelinePoint> t = Timeline(graph, ForwardsOf(4) + backwards);
  EXPECT_EQ(t[2].running, Bytes(0x11));
  EXPECT_EQ(t[4].running, Bytes(0x1011 + 0x2020));  // the storage's gradient, not the view's
  EXPECT_EQ(t[5].held, Bytes(0x1031));
  EXPECT_EQ(t[6].held, Bytes(0x1013));

  EXPECT_THAT(Refusal(graph, {ForwardSave(1), ForwardSave(2), ForwardSave(4)}),
              HasSubstr("its input, vertex 3, is not held"));
  EXPECT_THAT(Refusal(graph, ForwardsOf(4) + Schedule{ForwardSave(3)}),
              HasSubstr("its output is held already"));
  const Schedule dropped = ForwardsOf(4) + Schedule{Discard(kActivation, 2)};
  EXPECT_THAT(Refusal(graph, dropped + backwards), HasSubstr("its input, vertex 3, is not held"));
  EXPECT_EQ(Refusal(graph, dropped + Schedule{ForwardSave(2)} + backwards), "");
}

// A storage that only its own views read is an output of the network.
TEST(SimulateGraph, AViewDoesNotReadItsStorageAsAnotherWould) {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}}), Op(2, {{1, false}}),
                             Op(3, {{0, false}})};
  ops[2].alias = AliasKind::kView;
  const std::vector<TimelinePoint> t = Timeline(
      MakeGraph(ops), ForwardsOf(4) + Schedule{Backward(4), Backward(3), Backward(2), Backward(1)});
  EXPECT_EQ(t[4].running, Bytes(0x1011 + 0x2022));
}

TEST(SimulateGraph, RefusesAMakespanThatOverflows) {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}})};
  ops[1].forward_time = Nanos(int64_t{1} << 58);
  Schedule schedule = ForwardsOf(2);
  for (int i = 0; i < 40; ++i) {
    schedule = schedule + Schedule{Discard(kActivation, 2), ForwardSave(2)};
  }
  EXPECT_THAT(Refusal(MakeGraph(ops), schedule), HasSubstr("the makespan overflows"));
}

// All but the last instruction at once would be one copy of everything: sums stay in range.
TEST(SimulateGraph, LargestSizesDoNotOverflow) {
  std::vector<Vertex> ops = {Op(0, {}), Op(1, {{0, false}})};
  for (Vertex& v : ops) v.output = v.output_gradient = Bytes(int64_t{1} << 56);
  ops[1].output = Bytes((int64_t{1} << 61));
  ops[1].extra_saved = Bytes(int64_t{1} << 60);
  const Schedule schedule =
      ForwardsOf(2) + Schedule{Discard(kSaved, 2), ForwardSave(2), Backward(2), Backward(1)};
  const absl::StatusOr<Simulation> result = Evaluator(MakeGraph(ops)).Run(schedule);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->peak, Bytes((int64_t{1} << 62) + (int64_t{1} << 60) + (int64_t{1} << 56)));
}

}  // namespace
}  // namespace stowage

// The rules of transfers on graphs, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/plan.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

Vertex Op(int64_t k, std::vector<GraphInput> inputs, int64_t bytes) {
  Vertex v;
  v.id = v.program_order = k;
  v.inputs = std::move(inputs);
  v.output = Bytes(bytes);
  v.forward_time = Nanos(10);
  v.backward_time = Nanos(100);
  return v;
}

// Vertex 1 is fed from outside. 2 reads it, 3 writes over 2 in place, 4 is a view of that, and 5
// reads the view, again in its backward. 2 and 5 have extras. Sizes are distinct powers of ten.
Graph Digits() {
  GraphSpec spec;
  spec.vertices = {Op(1, {}, 1), Op(2, {{1, true}}, 10), Op(3, {{2, false}}, 10),
                   Op(4, {{3, false}}, 10), Op(5, {{4, true}}, 1000)};
  spec.vertices[1].extra_saved = Bytes(100);
  spec.vertices[2].alias = AliasKind::kInPlace;
  spec.vertices[3].alias = AliasKind::kView;
  spec.vertices[4].extra_saved = Bytes(10000);
  return *Graph::Create(std::move(spec));
}

// To the host a byte takes 1 ns, to the device 2 ns.
TransferModel Link() {
  TransferModel transfers;
  transfers.to_host.bytes_per_second = 1000000000;
  transfers.to_device.bytes_per_second = 500000000;
  transfers.host_memory = Bytes(1000000);
  return transfers;
}

Schedule operator+(Schedule a, const Schedule& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Schedule kTo4 = {ForwardSave(1), ForwardSave(2), ForwardSave(3), ForwardSave(4)};
const Schedule kBack = {Backward(5), Backward(4), Backward(3), Backward(2), Backward(1)};

// There while it leaves, away, and back.
Schedule There(TensorKind tensor, int v) {
  return {OffloadStart(tensor, v), OffloadWait(tensor, v)};
}
Schedule Back(TensorKind tensor, int v) {
  return {PrefetchStart(tensor, v), PrefetchWait(tensor, v)};
}

std::string ErrorOf(const Schedule& schedule, const TransferModel& transfers = Link()) {
  const absl::StatusOr<Simulation> s = Evaluator(Instance(Digits(), transfers)).Run(schedule);
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(s.status().message());
}

TEST(GraphTransfers, TakeMemoryAndTimeByTheTable) {
  std::vector<TimelinePoint> t;
  const Schedule schedule = kTo4 + Schedule{OffloadStart(kSaved, 2),
                                            ForwardSave(5),
                                            OffloadWait(kSaved, 2),
                                            PrefetchStart(kSaved, 2),
                                            Backward(5),
                                            PrefetchWait(kSaved, 2),
                                            Backward(4),
                                            Backward(3),
                                            Backward(2),
                                            Backward(1)};
  const absl::StatusOr<Simulation> s = Evaluator(Instance(Digits(), Link())).Run(schedule, &t);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(t[4].start, Nanos(40));
  EXPECT_EQ(t[4].end, Nanos(140));
  EXPECT_EQ(t[4].held, Bytes(111));
  EXPECT_EQ(t[4].host, Bytes(100));
  EXPECT_EQ(t[5].end, Nanos(50));
  EXPECT_EQ(t[6].end, Nanos(140));  // it waits
  EXPECT_EQ(t[6].held, Bytes(11011));
  EXPECT_EQ(t[7].end, Nanos(340));
  EXPECT_EQ(t[7].held, Bytes(11111));
  EXPECT_EQ(t[9].end, Nanos(340));
  EXPECT_EQ(t[9].host, Bytes(0));
  EXPECT_EQ(s->idle_time, Nanos(90 + 100));
  EXPECT_EQ(s->makespan, Nanos(50 + 500 + 190));
  EXPECT_EQ(s->host_peak, Bytes(100));
  EXPECT_EQ(s->offloaded, Bytes(100));
  EXPECT_EQ(s->prefetched, Bytes(100));
}

TEST(GraphTransfers, BringATensorBackAsItLeft) {
  const Schedule moved = There(kActivation, 2) + Back(kActivation, 2);
  // Written over already, with its view: 5 reads that.
  EXPECT_TRUE(Evaluator(Instance(Digits(), Link()))
                  .Run(kTo4 + moved + Schedule{ForwardSave(5)} + kBack)
                  .ok());
  // Before: 3 has still to run.
  const Schedule early = Schedule{ForwardSave(1), ForwardSave(2)} + moved;
  EXPECT_TRUE(Evaluator(Instance(Digits(), Link()))
                  .Run(early + Schedule{ForwardSave(3), ForwardSave(4), ForwardSave(5)} + kBack)
                  .ok());
  EXPECT_THAT(ErrorOf(early + Schedule{ForwardSave(4)}), HasSubstr("is not held"));
  // Made anew it is not what 5 reads.
  EXPECT_THAT(ErrorOf(kTo4 + There(kActivation, 2) +
                      Schedule{Discard(kActivation, 2), ForwardNoSave(2), ForwardSave(5)}),
              HasSubstr("is held as vertex 2 left it"));
}

TEST(GraphTransfers, LeaveATensorReadableUntilTheWait) {
  const Schedule leaving = kTo4 + Schedule{OffloadStart(kActivation, 2)};
  EXPECT_THAT(ErrorOf(leaving + Schedule{ForwardSave(5), Backward(5)} + There(kSaved, 1)),
              HasSubstr("instruction 7 (offload-start saved 1): the tensor is not held"));
  EXPECT_THAT(ErrorOf(leaving + Schedule{OffloadWait(kActivation, 2), ForwardSave(5)}),
              HasSubstr("its input, vertex 4, is not held"));
}

TEST(GraphTransfers, AreInTheWayOfWhatDropsOrWritesOrMakesAnew) {
  const Schedule to2 = {ForwardSave(1), ForwardSave(2)};
  const std::string leaves = "activation 2 is on its way to the host";
  EXPECT_THAT(ErrorOf(to2 + Schedule{OffloadStart(kActivation, 2), ForwardSave(3)}),
              HasSubstr("instruction 3 (forward-save 3): " + leaves));
  EXPECT_THAT(ErrorOf(to2 + Schedule{OffloadStart(kActivation, 2), Discard(kActivation, 2)}),
              HasSubstr(leaves));
  EXPECT_THAT(ErrorOf(to2 + There(kActivation, 2) + Schedule{ForwardNoSave(2)}),
              HasSubstr("activation 2 is on the host"));
  EXPECT_THAT(ErrorOf(to2 + There(kActivation, 2) +
                      Schedule{PrefetchStart(kActivation, 2), ForwardNoSave(2)}),
              HasSubstr("activation 2 is on the host"));
  EXPECT_THAT(ErrorOf(to2 + There(kSaved, 2) + Schedule{ForwardSave(2)}),
              HasSubstr("saved 2 is on the host"));
  EXPECT_THAT(ErrorOf(kTo4 + Schedule{ForwardSave(5), Backward(5), Backward(4), Backward(3),
                                      OffloadStart(kSaved, 2), Backward(2)}),
              HasSubstr("saved 2 is on its way to the host"));
  // What the host has is discarded first.
  EXPECT_TRUE(Evaluator(Instance(Digits(), Link()))
                  .Run(to2 + There(kActivation, 2) +
                       Schedule{Discard(kActivation, 2), Discard(kSaved, 2), ForwardSave(2),
                                ForwardSave(3), ForwardSave(4), ForwardSave(5)} +
                       kBack)
                  .ok());
}

TEST(GraphTransfers, MoveWhatIsThereAndOwnsItsBytes) {
  EXPECT_THAT(ErrorOf(kTo4 + There(kActivation, 4)), HasSubstr("its tensor belongs to vertex 2"));
  EXPECT_THAT(ErrorOf(kTo4 + There(kActivation, 5)), HasSubstr("the tensor is not held"));
  EXPECT_THAT(ErrorOf(kTo4 + There(kActivation, 6)), HasSubstr("the graph's vertices are 1 to 5"));
  EXPECT_THAT(ErrorOf({OffloadStart(kActivation, 0)}), HasSubstr("vertices are 1 to 5"));
  EXPECT_THAT(ErrorOf(kTo4 + Back(kActivation, 2)), HasSubstr("the tensor is not on the host"));
  EXPECT_THAT(
      ErrorOf(kTo4 + Schedule{ForwardSave(5)} + kBack + Schedule{OffloadStart(kActivation, 2)}),
      HasSubstr("the schedule ends before the wait for activation 2"));
}

TEST(GraphTransfers, AreBoundedByHostMemory) {
  TransferModel narrow = Link();
  narrow.host_memory = Bytes(109);
  EXPECT_THAT(ErrorOf(kTo4 + There(kActivation, 2) + There(kSaved, 2), narrow),
              HasSubstr("host memory of 109 bytes cannot hold 100 beside 10"));
  narrow.to_device.bytes_per_second = 0;
  EXPECT_EQ(Evaluator(Instance(Digits(), narrow)).Run(kTo4).status().message(),
            FieldError("transfers.to_device.bytes_per_second", 0, "must be > 0").message());
}

TEST(GraphTransfers, AreValidatedInPlansAndFrontiers) {
  const Graph graph = Digits();
  // While 5 runs forward the extras of 2 are away.
  const Schedule schedule =
      kTo4 + There(kSaved, 2) +
      Schedule{ForwardSave(5), Backward(5), Discard(kActivation, 5), Backward(4), Backward(3)} +
      Back(kSaved, 2) + Schedule{Backward(2), Backward(1)};
  const Simulation s = *Evaluator(Instance(graph, Link())).Run(schedule);
  EXPECT_EQ(s.peak, Bytes(11011));
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = schedule;
  plan.budget = s.peak;
  for (const Problem& problem : {Problem(graph)}) {
    EXPECT_EQ(Evaluator(problem).Run(schedule).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Evaluator(Instance(problem, Link())).Run(schedule)->makespan, s.makespan);
    EXPECT_EQ(ValidatePlan(problem, &plan).code(), absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(ValidatePlan(Instance(problem, Link()), &plan).ok());
  }
  EXPECT_EQ(plan.prediction.makespan, s.makespan);
  EXPECT_EQ(plan.bounds.store_all_peak, Bytes(11111));
  EXPECT_EQ(plan.bounds.lower_bound, MakespanLowerBound(Instance(Problem(graph), Link()), s.peak));
  EXPECT_LE(plan.bounds.lower_bound, s.makespan);
  plan.budget -= Bytes(1);
  EXPECT_EQ(ValidatePlan(Instance(graph, Link()), &plan).code(),
            absl::StatusCode::kFailedPrecondition);
  FrontierBuilder without(graph), with(Instance(graph, Link()));
  EXPECT_FALSE(without.Add(schedule).ok());
  ASSERT_TRUE(with.Add(schedule).ok());
  EXPECT_EQ(with.MakespanAt(s.peak), s.makespan);
}

}  // namespace
}  // namespace stowage

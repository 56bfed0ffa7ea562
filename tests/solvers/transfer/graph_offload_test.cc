// Offloading from compute schedules of graphs: their traces, and what becomes of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/text.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/chain_as_graph.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"
#include "tests/solvers/transfer/random_offload.h"

namespace stowage::testing {
namespace {

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

struct Drawn {
  Graph graph;
  Schedule compute;
  Simulation plain;
};

// Nothing for a graph that plain training cannot run.
std::optional<Drawn> DrawSchedule(int i, std::mt19937_64* rng) {
  RandomGraphOptions options;
  options.vertices = 3 + i % 7;
  options.with_aliases = i % 3 != 0;
  options.with_flags = i % 5 == 0;
  options.sources = i % 4 == 0 ? 0.2 : 0.0;
  const Graph graph = RandomGraph(options, rng);
  Schedule compute = RandomSchedule(graph, rng);
  if (i % 2 == 0) compute = WithDiscards(graph, compute);
  const absl::StatusOr<Simulation> plain = Evaluator(graph).Run(compute);
  if (!plain.ok()) return std::nullopt;
  return Drawn{graph, compute, *plain};
}

// Steps after which the four parts of a transfer are.
struct Places {
  int start, left, come, back;
};

// The schedule with a transfer of the tensor: each part before the step of its place.
Schedule WithOne(const Schedule& compute, const ComputeTrace::Tensor& t, const Places& places) {
  Schedule schedule;
  for (int step = 0; step <= static_cast<int>(compute.size()); ++step) {
    if (step == places.start) schedule.push_back(OffloadStart(t.kind, t.stage));
    if (step == places.left) schedule.push_back(OffloadWait(t.kind, t.stage));
    if (step == places.come) schedule.push_back(PrefetchStart(t.kind, t.stage));
    if (step == places.back) schedule.push_back(PrefetchWait(t.kind, t.stage));
    if (step < static_cast<int>(compute.size())) {
      schedule.push_back(compute[static_cast<size_t>(step)]);
    }
  }
  return schedule;
}

TEST(GraphTrace, HasEveryTensorsLife) {
  // 1 -> 2, written over by 3 in place, viewed as 4 -> 5, which reads the view again.
  GraphSpec spec;
  for (int64_t k = 1; k <= 5; ++k) {
    Vertex v;
    v.id = v.program_order = k;
    v.output = Bytes(k == 1 ? 1 : 10);
    v.forward_time = Nanos(k);
    if (k > 1) v.inputs = {{k - 1, k == 2 || k == 5}};
    spec.vertices.push_back(std::move(v));
  }
  spec.vertices[1].extra_saved = Bytes(100);
  spec.vertices[2].alias = AliasKind::kInPlace;
  spec.vertices[3].alias = AliasKind::kView;
  spec.vertices[4].extra_saved = Bytes(1000);
  const Graph graph = *Graph::Create(std::move(spec));
  Schedule compute;
  for (int v = 1; v <= 5; ++v) compute.push_back(ForwardSave(v));
  compute.push_back(Discard(kActivation, 5));
  for (int v = 5; v >= 1; --v) compute.push_back(Backward(v));
  const ComputeTrace trace = *TraceOf(graph, compute);
  EXPECT_EQ(trace.first_backward, 6);
  ASSERT_EQ(trace.steps.size(), compute.size());
  EXPECT_EQ(trace.steps[2].time, Nanos(3));
  EXPECT_EQ(trace.steps[5].need, Bytes(1121));
  ASSERT_EQ(trace.tensors.size(), 4u);
  // Vertex 1: read by 2, and again by its backward, the tenth step; nothing drops it.
  EXPECT_EQ(trace.tensors[0].stage, 1);
  EXPECT_EQ(trace.tensors[0].made, 0);
  EXPECT_EQ(trace.tensors[0].last_read, 1);
  EXPECT_EQ(trace.tensors[0].next_read, 9);
  EXPECT_EQ(trace.tensors[0].dropped, 11);
  // The extras of 2, which its backward drops.
  EXPECT_EQ(trace.tensors[1].kind, kSaved);
  EXPECT_EQ(trace.tensors[1].stage, 2);
  EXPECT_EQ(trace.tensors[1].bytes, Bytes(100));
  EXPECT_EQ(trace.tensors[1].made, 1);
  EXPECT_EQ(trace.tensors[1].dropped, 9);
  // The tensor of 2 as 3 has left it, read through its view.
  EXPECT_EQ(trace.tensors[2].kind, kActivation);
  EXPECT_EQ(trace.tensors[2].stage, 2);
  EXPECT_EQ(trace.tensors[2].made, 2);
  EXPECT_EQ(trace.tensors[2].last_read, 4);
  EXPECT_EQ(trace.tensors[2].next_read, 6);
  // The extras of 5 have a step in between.
  EXPECT_EQ(trace.tensors[3].kind, kSaved);
  EXPECT_EQ(trace.tensors[3].stage, 5);
  EXPECT_EQ(trace.tensors[3].made, 4);
  EXPECT_EQ(trace.tensors[3].next_read, 6);
}

TEST(GraphTrace, IsTightAboutWhenATensorMayBeAway) {
  std::mt19937_64 rng(1);
  int tensors = 0, read_late = 0, recomputing = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::optional<Drawn> d = DrawSchedule(i, &rng);
    if (!d) continue;
    const TransferModel link = RandomTransferModel(&rng);
    const ComputeTrace trace = *TraceOf(d->graph, d->compute);
    for (const ComputeTrace::Tensor& t : trace.tensors) {
      const Places tight = {t.made + 1, t.last_read + 1, t.next_read, t.next_read};
      const auto valid = [&](const Places& places) {
        return Evaluator(Instance(d->graph, link)).Run(WithOne(d->compute, t, places)).ok();
      };
      ASSERT_TRUE(valid(tight)) << Describe(d->graph) << '\n' << ScheduleText(d->compute);
      Places late = tight;
      ++late.back;
      EXPECT_FALSE(valid(late)) << Describe(d->graph) << '\n' << ScheduleText(d->compute);
      ++tensors;
      recomputing += d->plain.recomputed_forwards > 0 ? 1 : 0;
      if (t.last_read == t.made) continue;
      Places early = tight;
      --early.left;
      EXPECT_FALSE(valid(early)) << Describe(d->graph) << '\n' << ScheduleText(d->compute);
      ++read_late;
    }
  }
  EXPECT_GT(tensors, 3000);
  EXPECT_GT(read_late, 1000);
  EXPECT_GT(recomputing, 1000);
}

TEST(GraphOffload, IsAcceptedWithinTheMemoryAndTheTimeline) {
  std::mt19937_64 rng(2);
  int offloaded = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::optional<Drawn> d = DrawSchedule(i, &rng);
    if (!d) continue;
    const TransferModel link = RandomTransferModel(&rng);
    const ComputeTrace trace = *TraceOf(d->graph, d->compute);
    for (int k = 0; k < 4; ++k) {
      const Bytes memory(
          static_cast<int64_t>(rng() % static_cast<uint64_t>(d->plain.peak.value() + 1)));
      const TraceProblem problem = *MakeTraceProblem(trace, link, memory);
      ASSERT_EQ(problem.problem.peak(), d->plain.peak) << Describe(d->graph);
      ASSERT_EQ(problem.problem.ideal_time(), d->plain.makespan);
      const std::optional<OffloadTimeline> timeline =
          ReplaySet(problem.problem, RandomSet(problem, &rng));
      if (!timeline) continue;
      const Schedule schedule = WithTransfers(d->compute, trace, problem, *timeline);
      const absl::StatusOr<Simulation> simulation =
          Evaluator(Instance(d->graph, link)).Run(schedule);
      ASSERT_TRUE(simulation.ok()) << simulation.status() << Describe(d->graph) << '\n'
                                   << ScheduleText(schedule);
      EXPECT_LE(simulation->peak, memory) << Describe(d->graph) << '\n' << ScheduleText(schedule);
      EXPECT_EQ(simulation->offloaded, timeline->host_peak);
      EXPECT_EQ(simulation->prefetched, simulation->offloaded);
      EXPECT_EQ(simulation->recompute_time, d->plain.recompute_time);
      offloaded += !timeline->offloads.empty();
      if (simulation->makespan <= timeline->makespan) continue;
      EXPECT_TRUE(OffloadsMeetPrefetches(problem.problem, *timeline)) << Describe(d->graph);
    }
  }
  EXPECT_GT(offloaded, 1500);
}

TEST(GraphOffload, TakesEveryStrategysSet) {
  std::mt19937_64 rng(3);
  int found = 0, moved = 0;
  for (int i = 0; i < 300; ++i) {
    const std::optional<Drawn> d = DrawSchedule(i, &rng);
    if (!d) continue;
    const TransferModel link = RandomTransferModel(&rng);
    for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
      for (Bytes memory = d->plain.peak; memory > Bytes(0); memory -= Bytes(2)) {
        const auto offloaded =
            OffloadFrom(Instance(d->graph, link), d->compute, memory, *strategy, SolveOptions());
        ASSERT_TRUE(offloaded.ok()) << offloaded.status();
        if (!offloaded->has_value()) continue;
        EXPECT_LE((*offloaded)->prediction.peak, memory);
        EXPECT_GE((*offloaded)->prediction.makespan, d->plain.makespan);
        ++found;
        moved += (*offloaded)->prediction.offloaded > Bytes(0) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(found, 2000);
  EXPECT_GT(moved, 500);
}

TEST(GraphOffload, KeepsAScheduleThatFitsAndRefusesOneWithTransfers) {
  std::mt19937_64 rng(4);
  const Graph graph = RandomGraph(RandomGraphOptions(), &rng);
  const Schedule compute = StoreAllSchedule(graph);
  const Simulation plain = *Evaluator(graph).Run(compute);
  const TransferModel link = RandomTransferModel(&rng);
  const auto found =
      OffloadFrom(Instance(graph, link), compute, plain.peak, GreedyOffload(), SolveOptions());
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->schedule, compute);
  const Schedule transfers = {OffloadStart(kActivation, 1)};
  EXPECT_EQ(
      OffloadFrom(Instance(graph, link), transfers, plain.peak, GreedyOffload(), SolveOptions())
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(GraphTrace, RefusesWhatCommunicatesBesideCompute) {
  std::mt19937_64 rng(4);
  RandomGraphOptions options;
  options.collectives = 1.0;
  const Graph graph = RandomGraph(options, &rng);
  Schedule compute = StoreAllSchedule(graph);
  EXPECT_TRUE(TraceOf(graph, compute).ok());
  compute[1].stream = Stream::kCommunication;
  ASSERT_TRUE(Evaluator(graph).Run(compute).ok());
  const absl::Status status = TraceOf(graph, compute).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status, CheckNoCommunication(compute));
}

// A stage of the chain saves two tensors of the graph, at least as fine to move.
TEST(GraphOffload, NeedsNoMoreThanTheChain) {
  std::mt19937_64 rng(5);
  int compared = 0;
  for (int i = 0; i < 500; ++i) {
    RandomChainOptions options;
    const Chain chain = ComparableChain(RandomChain(2 + i % 6, options, &rng));
    const Graph graph = ChainAsGraph(chain);
    const Schedule compute = RandomSchedule(chain, &rng);
    const Schedule translated = ScheduleAsGraph(chain, compute);
    if (translated.empty()) continue;
    const TransferModel link = RandomTransferModel(&rng);
    const ComputeTrace chain_trace = *TraceOf(chain, compute);
    const ComputeTrace graph_trace = *TraceOf(graph, translated);
    const Bytes most(1000);
    EXPECT_EQ(MakeTraceProblem(graph_trace, link, most)->problem.peak(),
              MakeTraceProblem(chain_trace, link, most)->problem.peak());
    EXPECT_LE(MakeTraceProblem(graph_trace, link, most)->problem.least_memory(),
              MakeTraceProblem(chain_trace, link, most)->problem.least_memory())
        << Describe(chain) << ScheduleText(compute);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace stowage::testing

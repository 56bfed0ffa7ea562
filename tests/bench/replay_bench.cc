// The fast replays inside searches against the evaluator, on the same schedules: CPU time of one replay. That their
// numbers are the evaluator's is for tests (compute_order_test, segment_replay_test, segments_test, offload_from_test).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>

#include "solvers/chain/segments.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/segment_costs.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "tests/bench/bench_chains.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage {
namespace {

using testing::BenchRandomChain;

constexpr uint64_t kSeed = 1;

Chain ChainOf(const benchmark::State& state) {
  return BenchRandomChain(static_cast<int>(state.range(0)), kSeed);
}

void RunEvaluator(const Instance& instance, const Schedule& schedule, benchmark::State* state) {
  const Evaluator evaluator(instance);
  for (auto _ : *state) benchmark::DoNotOptimize(evaluator.Run(schedule)->peak);
}

// Plain training of a graph as an order.
Graph GraphNamed(const char* name) {
  return *testing::ReadGraphFile(std::string(STOWAGE_SOURCE_DIR "/tests/data/") + name + ".graph");
}

void BM_OrderByEvaluator(benchmark::State& state, const char* name) {
  const Graph graph = GraphNamed(name);
  const OpGraph ops(graph);
  RunEvaluator(graph, WithDiscards(graph, ToSchedule(graph, StoreAllOrder(ops))), &state);
}

void BM_OrderByOrderEvaluator(benchmark::State& state, const char* name) {
  const Graph graph = GraphNamed(name);
  const OpGraph ops(graph);
  const ComputeOrder order = StoreAllOrder(ops);
  OrderEvaluator evaluator(ops);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.Evaluate(order, 0).peak);
}

BENCHMARK_CAPTURE(BM_OrderByEvaluator, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_OrderByOrderEvaluator, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_OrderByEvaluator, densenet121, "densenet121")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_OrderByOrderEvaluator, densenet121, "densenet121")
    ->Unit(benchmark::kMicrosecond);

// Ten segments.
SegmentEnds Ends(const Chain& chain) { return SequentialSegments(chain, 10); }

void BM_SegmentsByEvaluator(benchmark::State& state) {
  const Chain chain = ChainOf(state);
  RunEvaluator(chain, SegmentedSchedule(chain, Ends(chain)), &state);
}

void BM_SegmentsBySegmentedCosts(benchmark::State& state) {
  const Chain chain = ChainOf(state);
  const TailPeaks tails(chain);
  const SegmentEnds ends = Ends(chain);
  for (auto _ : state) {
    SegmentedCosts costs(tails);
    for (const int end : ends) benchmark::DoNotOptimize(costs.Add(end));
    benchmark::DoNotOptimize(costs.Cost().peak);
  }
}

BENCHMARK(BM_SegmentsByEvaluator)->Arg(50)->Arg(339)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_SegmentsBySegmentedCosts)->Arg(50)->Arg(339)->Unit(benchmark::kMicrosecond);

// One segment of all stages but the loss, kept whole in its second run.
Schedule WholeSegment(const Chain& chain) {
  Schedule segment;
  for (int l = 1; l <= chain.length(); ++l) segment.push_back(ForwardSave(l));
  for (int l = chain.length(); l >= 1; --l) segment.push_back(Backward(l));
  return segment;
}

void BM_SegmentByEvaluator(benchmark::State& state) {
  const Chain chain = ChainOf(state);
  Schedule step;
  for (int l = 1; l <= chain.length(); ++l) {
    step.push_back(l == 1 ? ForwardNoSave(l) : ForwardNoSaveFreeInput(l));
  }
  const int loss = chain.length() + 1;
  step.insert(step.end(), {ForwardSave(loss), Backward(loss)});
  const Schedule segment = WholeSegment(chain);
  step.insert(step.end(), segment.begin(), segment.end());
  RunEvaluator(chain, step, &state);
}

void BM_SegmentBySegmentReplay(benchmark::State& state) {
  const Chain chain = ChainOf(state);
  const Schedule segment = WholeSegment(chain);
  SegmentReplay replay(chain, 0.1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(replay.Run(1, chain.length(), false, segment).need);
  }
}

BENCHMARK(BM_SegmentByEvaluator)->Arg(50)->Arg(339)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_SegmentBySegmentReplay)->Arg(50)->Arg(339)->Unit(benchmark::kMicrosecond);

// Plain training with half of what is too much on the host. The evaluator replays times that are given, ReplaySet finds
// the best ones.
struct Offloaded {
  explicit Offloaded(const benchmark::State& state) : chain(ChainOf(state)) {
    link.to_host.bytes_per_second = link.to_device.bytes_per_second = 12200000000;
    link.host_memory = Bytes(int64_t{1} << 50);
    const OffloadProblem whole = *testing::MakeOffloadProblem(chain, link, Bytes(0));
    memory = Bytes((whole.least_memory().value() + whole.peak().value()) / 2);
  }

  Chain chain;
  TransferModel link;
  Bytes memory;
};

void BM_SetByEvaluator(benchmark::State& state) {
  const Offloaded offloaded(state);
  const Instance instance(offloaded.chain, offloaded.link);
  const auto found = testing::OffloadFrom(instance, instance.store_all_schedule(), offloaded.memory,
                                          GreedyOffload(), {});
  RunEvaluator(instance, (*found)->schedule, &state);
}

void BM_SetByReplaySet(benchmark::State& state) {
  const Offloaded offloaded(state);
  const OffloadProblem problem =
      *testing::MakeOffloadProblem(offloaded.chain, offloaded.link, offloaded.memory);
  const OffloadSet set = EagerSet(problem);
  for (auto _ : state) benchmark::DoNotOptimize(ReplaySet(problem, set)->makespan);
}

BENCHMARK(BM_SetByEvaluator)->Arg(50)->Arg(339)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_SetByReplaySet)->Arg(50)->Arg(339)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stowage

BENCHMARK_MAIN();

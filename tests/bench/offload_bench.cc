// Strategies of offloading: CPU time of one solve. Names say stages, the memory in per cent of the
// way from the least to the peak and, of DynProg, the slots (0: exact). Counters: the plan's makespan
// over its lower bound, 0 where there is none, and the slots that it took in the end.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>

#include "solvers/transfer/strategies.h"
#include "tests/bench/bench_chains.h"
#include "tests/solvers/transfer/offload_from.h"

namespace {

using stowage::Bytes;
using stowage::Chain;
using stowage::OffloadProblem;
using stowage::OffloadStrategy;
using stowage::TransferModel;
using stowage::testing::BenchRandomChain;
using stowage::testing::MakeOffloadProblem;

constexpr uint64_t kSeed = 1;

// Ops of these chains take 20 to 120 us and save some 130 MB.
OffloadProblem Problem(int64_t stages, int64_t percent, int64_t bandwidth) {
  const Chain chain = BenchRandomChain(static_cast<int>(stages), kSeed);
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = bandwidth;
  link.host_memory = Bytes(int64_t{1} << 50);
  const OffloadProblem whole = *MakeOffloadProblem(chain, link, Bytes(0));
  const int64_t least = whole.least_memory().value();
  const int64_t range = whole.peak().value() - least;
  return *MakeOffloadProblem(chain, link, Bytes(least + range * percent / 100));
}

void Solve(benchmark::State& state, const OffloadStrategy& strategy, int64_t slots,
           int64_t bandwidth) {
  const OffloadProblem problem = Problem(state.range(0), state.range(1), bandwidth);
  stowage::SolveOptions options;
  options.slots = slots;
  stowage::OffloadPlan plan;
  for (auto _ : state) plan = *strategy.Solve(problem, options);
  state.counters["over_bound"] =
      static_cast<double>(plan.timeline.makespan.value()) /
      static_cast<double>(std::max<int64_t>(plan.lower_bound.value(), 1));
  state.counters["slots"] = static_cast<double>(plan.slots);
}

// Beside the ops the first moves a fraction of what is saved, the second about all of it.
constexpr int64_t kSlow = 12200000000;
constexpr int64_t kFast = 1500000000000;

void BM_Greedy(benchmark::State& state) { Solve(state, stowage::GreedyOffload(), 0, kFast); }
void BM_DynProg500(benchmark::State& state) {
  Solve(state, stowage::DynProgOffload(), 500, state.range(2) == 0 ? kSlow : kFast);
}
void BM_DynProgExact(benchmark::State& state) {
  Solve(state, stowage::DynProgOffload(), 0, state.range(2) == 0 ? kSlow : kFast);
}
void BM_Vdnn(benchmark::State& state) { Solve(state, stowage::VdnnOffload(), 0, kFast); }
void BM_Tflms(benchmark::State& state) { Solve(state, stowage::TflmsOffload(), 0, kFast); }
void BM_AutoSwap(benchmark::State& state) { Solve(state, stowage::AutoSwapOffload(), 0, kFast); }

#define STOWAGE_OFFLOAD_BENCH(name, ...) \
  BENCHMARK(name)->ArgsProduct(__VA_ARGS__)->Unit(benchmark::kMillisecond)

STOWAGE_OFFLOAD_BENCH(BM_Greedy, {{100, 339}, {10, 50, 90}});
STOWAGE_OFFLOAD_BENCH(BM_DynProg500, {{100}, {10, 30, 50, 70, 90}, {0, 1}});
STOWAGE_OFFLOAD_BENCH(BM_DynProgExact, {{20, 50, 100}, {10, 30, 50, 70, 90}, {0, 1}});
STOWAGE_OFFLOAD_BENCH(BM_Vdnn, {{100}, {50}});
STOWAGE_OFFLOAD_BENCH(BM_Tflms, {{100}, {50}});
STOWAGE_OFFLOAD_BENCH(BM_AutoSwap, {{100}, {50}});

}  // namespace

BENCHMARK_MAIN();

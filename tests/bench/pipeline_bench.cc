// Plans of pipelines: CPU time of one PlanPipeline, for 8 devices, 96 layers and 64 microbatches. Names say stages per
// device, each device's budget in per cent of what the whole chain takes where one device stores all of one
// microbatch, and whether stages are chosen (1) or have 96 / stages layers each (0). Counters: the makespan over the
// lower bound, and over that of the plan with stages of equal length in which every layer runs again.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/pipeline/pipeline.h"
#include "solvers/schedule/instance.h"
#include "tests/bench/bench_chains.h"

namespace {

using stowage::Bytes;
using stowage::Chain;
using stowage::Nanos;
using stowage::PipelinePlan;
using stowage::PipelineRequest;

constexpr int kLayers = 96, kDevices = 8, kMicrobatches = 64;

// Stages of equal length; every layer keeps its input alone, and runs again.
double EveryLayerAgain(const Chain& chain, const PipelineRequest& request) {
  const int stages = request.shape.stages();
  std::vector<Nanos> forward, backward;
  for (int s = 0; s < stages; ++s) {
    Nanos f, b;
    for (int l = kLayers * s / stages + 1; l <= kLayers * (s + 1) / stages; ++l) {
      f += chain.stage(l).forward_time;
      b += chain.stage(l).backward_time + chain.stage(l).forward_time;
    }
    if (s + 1 == stages) {
      f += chain.stage(kLayers + 1).forward_time;
      b += chain.stage(kLayers + 1).backward_time;
    }
    forward.push_back(f);
    backward.push_back(b);
  }
  return static_cast<double>(
      stowage::PipelineEvaluator(request.shape).Makespan(forward, backward).value());
}

void Solve(benchmark::State& state, const Chain& chain) {
  PipelineRequest request;
  request.shape = {kDevices, static_cast<int>(state.range(0)), kMicrobatches, Nanos(0)};
  const int64_t all = stowage::Instance(chain).store_all()->peak.value();
  request.budgets.assign(kDevices, Bytes(all / 100 * state.range(1)));
  const int stages = request.shape.stages();
  for (int s = 1; s <= stages && state.range(2) == 0; ++s) {
    request.last_layers.push_back(kLayers * s / stages);
  }
  PipelinePlan plan;
  for (auto _ : state) plan = *stowage::PlanPipeline(chain, request, {});
  const double makespan = static_cast<double>(plan.makespan.value());
  state.counters["over_bound"] = makespan / static_cast<double>(plan.lower_bound.value());
  state.counters["over_every_layer_again"] = makespan / EveryLayerAgain(chain, request);
}

void BM_Decoder(benchmark::State& state) {
  Solve(state, stowage::testing::BenchDecoderChain(kLayers));
}
void BM_NothingInCommon(benchmark::State& state) {
  Solve(state, stowage::testing::BenchRandomChain(kLayers, 1));
}

BENCHMARK(BM_Decoder)->ArgsProduct({{1, 2}, {30, 50, 80}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_NothingInCommon)
    ->ArgsProduct({{1, 2}, {30, 50}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

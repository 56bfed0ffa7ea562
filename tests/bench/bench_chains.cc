#include "tests/bench/bench_chains.h"

#include <algorithm>
#include <random>
#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"

namespace stowage::testing {
namespace {

Stage RandomStage(std::mt19937_64* rng) {
  const auto draw = [rng](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*rng);
  };
  Stage stage;
  stage.output = Bytes(draw(5000000, 50000000));
  stage.saved = stage.output + Bytes(draw(0, 200000000));
  stage.output_gradient = stage.output;
  if (draw(0, 2) == 0) {
    stage.forward_overhead = Bytes(draw(0, 20000000));
    stage.forward_saving_overhead = stage.forward_overhead;
  }
  stage.backward_overhead = Bytes(draw(0, 60000000));
  stage.forward_time = Nanos(draw(20000, 60000));
  stage.backward_time = stage.forward_time + Nanos(draw(0, 60000));
  return stage;
}

}  // namespace

Chain BenchRandomChain(int length, uint64_t seed) {
  std::mt19937_64 rng(seed);
  ChainSpec spec;
  spec.input = Bytes(20000000);
  for (int l = 0; l < length; ++l) spec.stages.push_back(RandomStage(&rng));
  return *Chain::Create(std::move(spec));
}

Chain BenchDecoderChain(int length) {
  std::mt19937_64 rng(1);
  ChainSpec spec;
  spec.input = Bytes(65536);
  spec.stages.push_back(RandomStage(&rng));
  const Stage layer = RandomStage(&rng);
  for (int l = 2; l < length; ++l) spec.stages.push_back(layer);
  spec.stages.push_back(RandomStage(&rng));
  return *Chain::Create(std::move(spec));
}

int64_t SlotBytes(const Chain& chain, double share, int64_t slots) {
  const absl::StatusOr<Simulation> all = Evaluator(chain).Run(StoreAllSchedule(chain));
  const auto budget = static_cast<int64_t>(share * static_cast<double>(all->peak.value()));
  return std::max<int64_t>((budget + slots - 1) / slots, 1);
}

}  // namespace stowage::testing

// How good the frontier of the optimal persistent solver is, and what it costs: against a table of
// many slots for each budget by itself, every size rounded up, as Beaumont et al. 2019 describe it.
//
// Counters: worst and mean of frontier makespan / reference makespan over the budgets, half of them
// at equal ratios and half at equal distances from the least to store-all's; `lost`: budgets that
// the reference's rounding leaves without a schedule. The time is the frontier's CPU time alone.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"
#include "solvers/planner.h"
#include "solvers/zoo/networks.h"
#include "tests/bench/bench_chains.h"

namespace stowage {
namespace {

// Overhead at the budget by a table of `slots` slots for it alone, or kInfinity.
int64_t ReferenceOverhead(const Chain& chain, Bytes budget, int64_t slots) {
  const int64_t unit = std::max<int64_t>(budget.value() / slots, 1);
  const PersistentSpace space(chain, unit);
  const absl::StatusOr<PersistentTable> table =
      PersistentTable::Compute(space, budget.value() / unit, {});
  return table.ok() ? table->Overhead(budget.value() / unit) : kInfinity;
}

std::vector<Bytes> Budgets(const Frontier& frontier, int64_t count) {
  const double least = static_cast<double>(frontier.points().front().peak.value());
  const double most = static_cast<double>(frontier.points().back().peak.value());
  std::vector<Bytes> budgets;
  for (int64_t i = 0; i < count / 2; ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(count / 2);
    budgets.push_back(Bytes(static_cast<int64_t>(std::ceil(least * std::pow(most / least, x)))));
    budgets.push_back(Bytes(static_cast<int64_t>(std::ceil(least + (most - least) * x))));
  }
  return budgets;
}

void CompareWithReference(const Chain& chain, const Frontier& frontier, int64_t count,
                          int64_t slots, benchmark::State* state) {
  double worst = 0.0, sum = 0.0, compared = 0.0, lost = 0.0;
  for (const Bytes budget : Budgets(frontier, count)) {
    const int64_t overhead = ReferenceOverhead(chain, budget, slots);
    if (overhead >= kInfinity) {
      ++lost;
      continue;
    }
    const double ratio = static_cast<double>(frontier.At(budget)->makespan.value()) /
                         static_cast<double>(chain.ideal_time().value() + overhead);
    worst = std::max(worst, ratio);
    sum += ratio;
    ++compared;
  }
  state->counters["worst"] = worst;
  state->counters["mean"] = sum / compared;
  state->counters["lost"] = lost;
  state->counters["points"] = static_cast<double>(frontier.points().size());
  state->counters["bytes"] = static_cast<double>(frontier.Encode().size());
  state->counters["table_slots"] = static_cast<double>(frontier.info().slots);
  state->counters["exact"] = frontier.info().exact ? 1 : 0;
}

void FrontierQuality(benchmark::State& state, const Chain& chain) {
  PlanOptions options;
  options.solver = "optimal_persistent";
  absl::StatusOr<Frontier> frontier = Frontier();
  for (auto _ : state) {
    const std::clock_t start = std::clock();
    frontier = MakeFrontier(chain, options);
    state.SetIterationTime(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  if (!frontier.ok()) {
    state.SkipWithError(frontier.status().ToString().c_str());
    return;
  }
  CompareWithReference(chain, *frontier, state.range(0), state.range(1), &state);
}

Chain OfNetwork(const std::string& name) {
  NetworkOptions options;
  options.name = name;
  options.batch = 32;
  return *NetworkChain(options, ModelledV100());
}

Chain OfDecoder(int64_t layers) {
  DecoderOptions options;
  options.layers = layers;
  return *ChainOf(*MakeDecoder(options), ModelledV100());
}

void Register() {
  const std::pair<std::string, std::function<Chain()>> chains[] = {
      {"resnet101", [] { return OfNetwork("resnet101"); }},
      {"densenet201", [] { return OfNetwork("densenet201"); }},
      {"decoder_339", [] { return OfDecoder(339); }},
      {"random_100", [] { return testing::BenchRandomChain(100, 1); }},
      {"random_50", [] { return testing::BenchRandomChain(50, 1); }}};
  for (const auto& [name, make] : chains) {
    benchmark::RegisterBenchmark(
        ("FrontierQuality/" + name).c_str(),
        [make = make](benchmark::State& state) { FrontierQuality(state, make()); })
        ->ArgNames({"budgets", "slots"})
        ->Args({20, 500})
        ->Args({200, 8000})
        ->Iterations(3)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  stowage::Register();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

// The discretised table against the plain recurrence, side by side in one run. Names say stages,
// slots and, where there is one, the budget in per cent of store-all. Counters, in seconds of CPU
// unless they say wall: `reference` and `ratio` (of the reference to the table), `MB` kept.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "solvers/chain/internal/min_plus_dispatch.h"
#include "solvers/chain/persistent_table.h"
#include "tests/bench/bench_chains.h"
#include "tests/solvers/reference_recurrence.h"

namespace {

using stowage::Chain;
using stowage::MinPlusKernels;
using stowage::PersistentSpace;
using stowage::PersistentTable;
using stowage::SolveOptions;
using stowage::TableTuning;
using stowage::testing::BenchDecoderChain;
using stowage::testing::BenchRandomChain;
using stowage::testing::ReferenceRecurrence;
using stowage::testing::SlotBytes;

constexpr uint64_t kSeed = 1;

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Timed(double (*clock)(), const std::function<void()>& work) {
  const double begin = clock();
  work();
  return clock() - begin;
}

PersistentTable TableOf(const PersistentSpace& space, int64_t slots, int threads,
                        const TableTuning& tuning) {
  SolveOptions options;
  options.threads = threads;
  return *PersistentTable::Compute(space, slots, options, tuning);
}

// Reference and table in turn; the counters hold the least of each. An error where they differ.
void AgainstReference(benchmark::State& state, const TableTuning& tuning) {
  const Chain chain = BenchRandomChain(static_cast<int>(state.range(0)), kSeed);
  const int64_t slots = state.range(1);
  const int64_t unit = SlotBytes(chain, static_cast<double>(state.range(2)) / 100, slots);
  const PersistentSpace space(chain, unit);
  double reference_least = std::numeric_limits<double>::infinity();
  double table_least = reference_least;
  double bytes = 0;
  for (auto _ : state) {
    int64_t expected = stowage::kInfinity;
    reference_least = std::min(reference_least, Timed(CpuSeconds, [&] {
                                 const ReferenceRecurrence reference(chain, unit, slots);
                                 expected = reference.Overhead(slots).value_or(stowage::kInfinity);
                               }));
    const double begin = CpuSeconds();
    const PersistentTable table = TableOf(space, slots, 1, tuning);
    const double seconds = CpuSeconds() - begin;
    table_least = std::min(table_least, seconds);
    state.SetIterationTime(seconds);
    bytes = static_cast<double>(table.bytes());
    if (table.Overhead(slots) != expected) state.SkipWithError("the table is not the recurrence's");
  }
  state.counters["reference"] = reference_least;
  state.counters["table"] = table_least;
  state.counters["ratio"] = reference_least / table_least;
  state.counters["MB"] = bytes / 1e6;
}

void Table(benchmark::State& state, const Chain& chain) {
  const int64_t slots = state.range(1);
  const PersistentSpace space(chain,
                              SlotBytes(chain, static_cast<double>(state.range(2)) / 100, slots));
  double bytes = 0;
  for (auto _ : state) {
    const double begin = CpuSeconds();
    const PersistentTable table = TableOf(space, slots, 1, TableTuning());
    state.SetIterationTime(CpuSeconds() - begin);
    bytes = static_cast<double>(table.bytes());
  }
  state.counters["MB"] = bytes / 1e6;
}

void RandomTable(benchmark::State& state) {
  Table(state, BenchRandomChain(static_cast<int>(state.range(0)), kSeed));
}

void DecoderTable(benchmark::State& state) {
  Table(state, BenchDecoderChain(static_cast<int>(state.range(0))));
}

void DecoderLeastMemory(benchmark::State& state) {
  const PersistentSpace space(BenchDecoderChain(static_cast<int>(state.range(0))), 1);
  for (auto _ : state)
    benchmark::DoNotOptimize(stowage::ComputeMinimumMemory(space, SolveOptions()).ok());
}

// One thread and two in turn, on an otherwise idle machine of two cores or more.
void TwoThreads(benchmark::State& state) {
  const Chain chain = BenchRandomChain(static_cast<int>(state.range(0)), kSeed);
  const int64_t slots = state.range(1);
  const PersistentSpace space(chain,
                              SlotBytes(chain, static_cast<double>(state.range(2)) / 100, slots));
  double one = std::numeric_limits<double>::infinity();
  double two = one;
  for (auto _ : state) {
    one = std::min(one, Timed(WallSeconds, [&] { TableOf(space, slots, 1, TableTuning()); }));
    const double seconds = Timed(WallSeconds, [&] { TableOf(space, slots, 2, TableTuning()); });
    two = std::min(two, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["wall_1"] = one;
  state.counters["wall_2"] = two;
  state.counters["ratio"] = one / two;
}

void RegisterAgainstReference() {
  for (const MinPlusKernels* kernels : stowage::UsableKernels()) {
    for (const bool real : {false, true}) {
      TableTuning tuning;
      tuning.kernels = kernels;
      if (real) tuning.value = TableTuning::Value::kReal;
      const std::string name =
          std::string("AgainstReference/") + kernels->name + (real ? "/double" : "/best");
      benchmark::internal::Benchmark* b = benchmark::RegisterBenchmark(
          name.c_str(), [tuning](benchmark::State& state) { AgainstReference(state, tuning); });
      b->Args({20, 50, 50})->ArgsProduct({{339}, {500}, {30, 50, 70, 90}})->Iterations(3);
      b->UseManualTime()->Unit(benchmark::kMillisecond);
    }
  }
}

BENCHMARK(RandomTable)
    ->Args({20, 50, 50})
    ->Args({50, 500, 50})
    ->Args({1000, 500, 50})
    ->Args({1000, 500, 90})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(DecoderTable)
    ->Args({20, 50, 50})
    ->Args({1000, 500, 50})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(DecoderLeastMemory)->Args({20, 50})->Args({1000, 500})->Unit(benchmark::kMillisecond);
BENCHMARK(TwoThreads)
    ->Args({20, 50, 50})
    ->ArgsProduct({{339}, {500}, {30, 50, 70, 90}})
    ->Iterations(10)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Memory stays with the process: what is timed is the work on it, not the system handing it out.
void KeepMemory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace

int main(int argc, char** argv) {
  KeepMemory();
  RegisterAgainstReference();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

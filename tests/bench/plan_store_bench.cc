// What a lookup costs in the store in a file, and where it goes: CPU time on an entry of a random
// chain. Names say stages, plans, and samples of costs. Counters: bytes of the entry, and the
// instructions of all its plans.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "server/entries/entry_codec.h"
#include "server/store/sqlite_plan_store.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "tests/bench/bench_chains.h"
#include "tests/support/temporary_folder.h"

namespace {

using namespace stowage;

// Plans at equal steps from half of store-all up.
PlanEntry BenchEntry(const benchmark::State& state) {
  const Chain chain = testing::BenchRandomChain(static_cast<int>(state.range(0)), 1);
  PlanEntry entry;
  // About what the structure takes there.
  entry.canonical.assign(static_cast<size_t>(60 * state.range(0)), 'c');
  entry.reference = std::make_shared<const Instance>(Instance{chain, std::nullopt});
  entry.store_all = *Instance(chain).store_all();
  entry.generation = 1;
  const int64_t plans = state.range(1);
  for (int64_t i = 0; i < plans; ++i) {
    const int64_t peak = entry.store_all.peak.value();
    const Bytes budget(peak / 2 + peak / 2 * i / plans);
    PlanOptions options;
    options.solver = "optimal_persistent";
    options.solve.slots = 100;
    entry.plans.push_back(
        {std::make_shared<const Plan>(*MakePlan(entry.reference->problem(), budget, options))});
  }
  for (int64_t i = 0; i < state.range(2); ++i) entry.samples.push_back({1, entry.reference});
  return entry;
}

PlanKey KeyOf(const PlanEntry& entry) { return {kEncodingVersion, Sha256(entry.canonical)}; }

void SetCounters(const PlanEntry& entry, benchmark::State* state) {
  state->counters["bytes"] = static_cast<double>(EncodeEntry(entry).size());
  size_t instructions = 0;
  for (const StoredPlan& stored : entry.plans) instructions += stored.plan->schedule.size();
  state->counters["instructions"] = static_cast<double>(instructions);
}

void Encode(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  for (auto _ : state) benchmark::DoNotOptimize(EncodeEntry(entry));
  SetCounters(entry, &state);
}

void Decode(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  const std::string bytes = EncodeEntry(entry);
  for (auto _ : state) benchmark::DoNotOptimize(DecodeEntry(KeyOf(entry), bytes));
  SetCounters(entry, &state);
}

// Of Decode: the two hashes, the replays, and Chain::Create of a copy.
void DecodeHashes(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  const std::string bytes = EncodeEntry(entry);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Sha256(bytes));
    benchmark::DoNotOptimize(Sha256(entry.canonical));
  }
}

void DecodeReplays(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Instance(entry.reference->problem()).store_all());
    for (const StoredPlan& stored : entry.plans) {
      benchmark::DoNotOptimize(Evaluator(*entry.reference).Run(stored.plan->schedule));
    }
  }
}

void DecodeCreates(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  const Chain& chain = std::get<Chain>(entry.reference->problem());
  for (auto _ : state) {
    for (size_t i = 0; i <= entry.samples.size(); ++i) {
      benchmark::DoNotOptimize(Chain::Create(chain.spec()));
    }
  }
}

// A folder of its own, and in it the file.
struct File {
  File() { options.file.path = folder / "plans"; }

  const TemporaryFolder folder;
  SqlitePlanStore::Options options;
};

void SqliteGet(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  const File file;
  NoMetrics metrics;
  const auto store = *SqlitePlanStore::Open(file.options, &metrics);
  if (!store->Put(KeyOf(entry), std::make_shared<const PlanEntry>(entry)).ok()) std::abort();
  for (auto _ : state) {
    if (store->Get(KeyOf(entry), Access::kLookup) == nullptr) std::abort();
  }
}

// Of SqliteGet: what SQLite takes.
void SqliteRead(benchmark::State& state) {
  const PlanEntry entry = BenchEntry(state);
  const File file;
  const auto entries = *SqliteEntries::Open(file.options.file);
  if (!entries->Write(KeyOf(entry), entry, EncodeEntry(entry), Bytes(1), 1).ok()) std::abort();
  for (auto _ : state) {
    if (!entries->Read(KeyOf(entry))->has_value()) std::abort();
  }
}

// Replaces the entry; wall time counts, too: checkpoints sync.
void SqlitePut(benchmark::State& state) {
  PlanEntry entry = BenchEntry(state);
  const File file;
  NoMetrics metrics;
  const auto store = *SqlitePlanStore::Open(file.options, &metrics);
  for (auto _ : state) {
    ++entry.generation;
    if (!store->Put(KeyOf(entry), std::make_shared<const PlanEntry>(entry)).ok()) std::abort();
  }
}

void Entries(benchmark::internal::Benchmark* benchmark) {
  benchmark->Unit(benchmark::kMicrosecond);
  for (const int64_t stages : {50, 339}) {
    benchmark->Args({stages, 1, 0})->Args({stages, 4, 5});
  }
}

BENCHMARK(Encode)->Apply(Entries);
BENCHMARK(Decode)->Apply(Entries);
BENCHMARK(DecodeHashes)->Apply(Entries);
BENCHMARK(DecodeReplays)->Apply(Entries);
BENCHMARK(DecodeCreates)->Apply(Entries);
BENCHMARK(SqliteGet)->Apply(Entries);
BENCHMARK(SqliteRead)->Apply(Entries);
BENCHMARK(SqlitePut)->Apply(Entries);

}  // namespace

BENCHMARK_MAIN();

// The table against the plain recurrence, for every engine, type of value, instruction set of this
// machine and number of threads.
#include "solvers/chain/persistent_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "solvers/chain/internal/min_plus_dispatch.h"
#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/reference_recurrence.h"

namespace stowage {
namespace {

using ::stowage::testing::Describe;
using ::stowage::testing::PeriodicChain;
using ::stowage::testing::RandomChain;
using ::stowage::testing::RandomChainOptions;
using ::stowage::testing::ReferenceRecurrence;

struct Way {
  TableTuning tuning;
  int threads;
  std::string name;
};

std::vector<Way> AllWays() {
  using Engine = TableTuning::Engine;
  using Value = TableTuning::Value;
  std::vector<Way> ways;
  for (const MinPlusKernels* kernels : UsableKernels()) {
    for (const Value value : {Value::kBest, Value::kReal, Value::kWide}) {
      const std::string name =
          std::string(kernels->name) + " value " + std::to_string(static_cast<int>(value));
      ways.push_back({{kernels, Engine::kRows, value}, 1, name + " rows"});
      const bool best = kernels == &BestKernels();
      for (const int threads : best ? std::vector<int>{1, 2, 5} : std::vector<int>{1, 2}) {
        ways.push_back({{kernels, Engine::kTiles, value},
                        threads,
                        name + " tiles, threads " + std::to_string(threads)});
      }
    }
  }
  return ways;
}

PersistentTable TableOf(const Chain& chain, int64_t unit, int64_t slots, const Way& way) {
  SolveOptions options;
  options.threads = way.threads;
  absl::StatusOr<PersistentTable> table =
      PersistentTable::Compute(PersistentSpace(chain, unit), slots, options, way.tuning);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

void ExpectReference(const Chain& chain, int64_t unit, int64_t slots,
                     const std::vector<Way>& ways) {
  const ReferenceRecurrence reference(chain, unit, slots);
  std::vector<int64_t> expected;
  for (int64_t m = 0; m <= slots; ++m)
    expected.push_back(reference.Overhead(m).value_or(kInfinity));
  for (const Way& way : ways) {
    const PersistentTable table = TableOf(chain, unit, slots, way);
    std::vector<int64_t> overhead;
    for (int64_t m = 0; m <= slots; ++m) overhead.push_back(table.Overhead(m));
    ASSERT_EQ(overhead, expected) << way.name << " slots " << slots << " unit " << unit << " "
                                  << Describe(chain);
  }
}

// Some slots more than keeping everything takes.
int64_t EnoughSlots(const Chain& chain) {
  int64_t sum = chain.activation(0).value();
  int64_t most = 0;
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    sum += s.saved.value();
    most = std::max(most, s.output_gradient.value() + s.forward_saving_overhead.value() +
                              s.backward_overhead.value());
  }
  return sum + 2 * most + 3;
}

TEST(PersistentTable, EqualsTheRecurrenceAtEveryMemory) {
  std::mt19937_64 rng(1);
  const std::vector<Way> ways = AllWays();
  for (int round = 0; round < 100; ++round) {
    RandomChainOptions options;
    options.max_size = round % 5 == 0 ? 0 : 1 << (round % 6);
    options.max_time = round % 7 == 0 ? 0 : 1 + round % 40;
    options.with_loss = round % 3 != 0;
    options.with_flags = round % 2 == 0;
    options.with_stops = round % 5 > 2;
    options.with_input_gradient = round % 4 == 0;
    const Chain chain = RandomChain(1 + round % 33, options, &rng);
    const int64_t slots = EnoughSlots(chain);
    ASSERT_NO_FATAL_FAILURE(ExpectReference(chain, 1, round % 3 == 1 ? slots / 2 : slots, ways));
  }
}

TEST(PersistentTable, EqualsTheRecurrenceOnLongChains) {
  std::mt19937_64 rng(2);
  for (const int length : {70, 131}) {
    RandomChainOptions options;
    options.max_size = 40;
    options.max_time = 1000;
    options.with_flags = length == 70;
    options.with_stops = length == 131;
    const Chain chain = RandomChain(length, options, &rng);
    // About a third of what keeping everything takes.
    const int64_t slots = 113;
    const int64_t unit = EnoughSlots(chain) / 3 / slots;
    ASSERT_NO_FATAL_FAILURE(ExpectReference(chain, unit, slots, AllWays()));
  }
}

// Long times: low memories are beyond 32 bits, or all are.
TEST(PersistentTable, WidensValuesWhereTheyNeedIt) {
  std::mt19937_64 rng(3);
  for (const int max_time : {30000000, 200000000, 2000000000}) {
    RandomChainOptions options;
    options.max_size = 3;
    options.max_time = max_time;
    options.with_stops = max_time < 1000000000;
    const Chain chain = RandomChain(40, options, &rng);
    ASSERT_NO_FATAL_FAILURE(ExpectReference(chain, 1, EnoughSlots(chain), AllWays()));
  }
}

// The same with times at the end of what a double holds, and past it.
TEST(PersistentTable, WidensValuesToSixtyFourBits) {
  std::mt19937_64 rng(4);
  struct Case {
    int length;
    int64_t time;
  };
  for (const Case c : {Case{30, int64_t{1} << 46}, Case{4, int64_t{1} << 51}}) {
    RandomChainOptions options;
    options.max_size = 3;
    options.with_loss = false;
    ChainSpec spec = RandomChain(c.length, options, &rng).spec();
    for (Stage& stage : spec.stages) {
      stage.forward_time = Nanos(c.time + stage.forward_time.value());
      stage.backward_time = Nanos(0);
    }
    const absl::StatusOr<Chain> chain = Chain::Create(spec);
    ASSERT_TRUE(chain.ok()) << chain.status();
    ASSERT_NO_FATAL_FAILURE(ExpectReference(*chain, 1, EnoughSlots(*chain), AllWays()));
  }
}

TEST(PersistentTable, EqualsTheRecurrenceWhereStagesRepeat) {
  std::mt19937_64 rng(5);
  for (const int period : {1, 2, 3, 5}) {
    const Chain chain = PeriodicChain(47, period, &rng);
    ASSERT_NO_FATAL_FAILURE(ExpectReference(chain, 1, EnoughSlots(chain), AllWays()));
  }
}

TEST(PersistentTable, BacktracksWhatItPromises) {
  std::mt19937_64 rng(6);
  for (int round = 0; round < 40; ++round) {
    RandomChainOptions options;
    options.max_size = 9;
    options.with_flags = round % 2 == 0;
    options.with_stops = round % 5 > 2;
    const Chain chain =
        round % 4 == 0 ? PeriodicChain(25, 2, &rng) : RandomChain(2 + round, options, &rng);
    const int64_t slots = EnoughSlots(chain);
    std::vector<Schedule> first;
    for (const Way& way : AllWays()) {
      const PersistentTable table = TableOf(chain, 1, slots, way);
      std::vector<Schedule> schedules;
      for (int64_t memory = 0; memory <= slots; memory += 7) {
        if (table.Overhead(memory) == kInfinity) continue;
        schedules.push_back(table.Backtrack(memory));
        const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(schedules.back());
        ASSERT_TRUE(simulation.ok()) << simulation.status() << Describe(chain);
        EXPECT_EQ(simulation->makespan.value(),
                  chain.ideal_time().value() + table.Overhead(memory));
        EXPECT_LE(simulation->peak.value(), std::max(memory, chain.gradient(0).value()));
      }
      if (first.empty()) first = schedules;
      ASSERT_TRUE(schedules == first) << way.name;
    }
    EXPECT_FALSE(first.empty());
  }
}

TEST(PersistentTable, TiesKeep) {
  ChainSpec spec;
  for (int l = 0; l < 30; ++l) {
    Stage stage;  // no time: recomputing would be free
    stage.output = Bytes(1);
    stage.saved = Bytes(2);
    spec.stages.push_back(stage);
  }
  const Chain chain = *Chain::Create(spec);
  const PersistentTable table = TableOf(chain, 1, 100, AllWays().back());
  EXPECT_EQ(table.Overhead(100), 0);
  for (const Instruction& instruction : table.Backtrack(100))
    EXPECT_FALSE(instruction == ForwardNoSave(instruction.stage));
}

TEST(PersistentTable, RefusesWhatIsTooLarge) {
  std::mt19937_64 rng(7);
  const Chain chain = RandomChain(100, RandomChainOptions(), &rng);
  SolveOptions options;
  options.table_limit = Bytes(300000);
  const PersistentSpace space(chain, 1);
  for (const auto engine : {TableTuning::Engine::kTiles, TableTuning::Engine::kRows}) {
    TableTuning tuning;
    tuning.engine = engine;
    const auto table = PersistentTable::Compute(space, 1000, options, tuning);
    ASSERT_EQ(table.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(table.status().message().find("the limit is 300000"), absl::string_view::npos)
        << table.status();
  }
  for (const int64_t slots : {int64_t{-1}, int64_t{1} << 60}) {
    EXPECT_EQ(PersistentTable::Compute(space, slots, SolveOptions()).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

// A table of mostly empty chunks: what lists them counts.
TEST(PersistentTable, CountsTheIndexOfItsTiles) {
  std::mt19937_64 rng(12);
  const PersistentSpace space(RandomChain(100, RandomChainOptions(), &rng), 1);
  constexpr int64_t kSlots = 1000000;
  TableTuning tuning;
  tuning.engine = TableTuning::Engine::kTiles;
  SolveOptions options;
  options.table_limit = Bytes(kSlots);  // an index takes 24 bytes per 16 slots and 4 stages
  EXPECT_EQ(PersistentTable::Compute(space, kSlots, options, tuning).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_GT(PersistentTable::Estimate(space, kSlots).bytes, kSlots);
}

TEST(PersistentTable, EstimatesWhatItTakes) {
  std::mt19937_64 rng(8);
  RandomChainOptions options;
  options.max_size = 50;
  for (const int length : {60, 200}) {
    const PersistentSpace space(RandomChain(length, options, &rng), 1);
    const TableEstimate estimate = PersistentTable::Estimate(space, 500);
    const auto table = PersistentTable::Compute(space, 500, SolveOptions());
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_GT(estimate.bytes, table->bytes());
    EXPECT_LT(estimate.bytes, table->bytes() * 3);
    EXPECT_GT(estimate.steps, 0);
  }
}

TEST(PersistentTable, StopsAndReportsProgress) {
  std::mt19937_64 rng(9);
  RandomChainOptions chain_options;
  chain_options.max_size = 50;
  const PersistentSpace space(RandomChain(150, chain_options, &rng), 1);
  for (const auto engine : {TableTuning::Engine::kTiles, TableTuning::Engine::kRows}) {
    for (const int threads : {1, 2}) {
      TableTuning tuning;
      tuning.engine = engine;
      StopToken stop;
      SolveOptions options;
      options.threads = threads;
      options.stop = &stop;
      std::vector<double> shares;
      options.progress = [&shares](double share) { shares.push_back(share); };
      EXPECT_TRUE(PersistentTable::Compute(space, 1000, options, tuning).ok());
      ASSERT_GT(shares.size(), 5u);
      EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
      EXPECT_GE(shares.front(), 0);
      EXPECT_EQ(shares.back(), 1);

      // From the middle of the work.
      options.progress = [&stop](double share) {
        if (share > 0.3) stop.RequestStop();
      };
      EXPECT_TRUE(
          absl::IsCancelled(PersistentTable::Compute(space, 4000, options, tuning).status()));
      StopToken late;
      late.PassDeadlineAtLook(20);
      options.stop = &late;
      options.progress = nullptr;
      EXPECT_TRUE(absl::IsDeadlineExceeded(
          PersistentTable::Compute(space, 40000, options, tuning).status()));
    }
  }
}

// In a process of its own, which has not chosen yet.
TEST(MinPlusDispatch, TheEnvironmentChoosesAmongWhatTheMachineRuns) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EQ(FindUsableKernels("avx1024"), nullptr);
  const auto chosen = [](const char* name) {
    setenv("STOWAGE_SIMD", name, /*overwrite=*/1);
    return &BestKernels();
  };
  for (const MinPlusKernels* kernels : UsableKernels()) {
    EXPECT_EXIT(std::exit(chosen(kernels->name) == kernels ? 0 : 1), ::testing::ExitedWithCode(0),
                "");
  }
  EXPECT_EXIT(std::exit(chosen("avx1024") == UsableKernels().back() ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stowage

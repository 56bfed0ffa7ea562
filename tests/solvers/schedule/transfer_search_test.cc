// The exhaustive search with transfers, held against the evaluator, the search without transfers, and
// schedules found in other ways; and the lower bound against it.
#include "tests/solvers/transfer_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/text.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/schedule_search.h"

namespace stowage::testing {
namespace {

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

struct Drawn {
  Chain chain;
  TransferModel transfers;
  int64_t budget;
};

// Budgets around half of store-all's peak and above; host memory for everything, or for little.
Drawn DrawInstance(int length, int i, std::mt19937_64* rng) {
  const Chain chain = RandomChain(length, VariedOptions(i), rng);
  TransferModel transfers = RandomTransferModel(rng);
  if (i % 3 == 0) transfers.host_memory = Bytes(Draw(0, 10, rng));
  const int most = static_cast<int>(Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value());
  return {chain, transfers, Draw(most / 2, most, rng)};
}

struct Counts {
  int found = 0, infeasible = 0, faster = 0, newly_feasible = 0, waits = 0, at_bound = 0,
      at_strongest = 0;
};

void Check(const Drawn& x, Counts* counts) {
  const std::optional<FoundSchedule> with = SearchTransfers(x.chain, x.transfers, x.budget);
  const std::optional<FoundSchedule> without = SearchSchedules(x.chain, x.budget);
  if (!with) {
    EXPECT_FALSE(without) << Describe(x.chain);
    ++counts->infeasible;
    return;
  }
  ++counts->found;
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(x.chain, x.transfers)).Run(with->schedule);
  ASSERT_TRUE(s.ok()) << s.status() << Describe(x.chain) << ScheduleText(with->schedule);
  EXPECT_EQ(s->makespan.value(), with->makespan);
  EXPECT_LE(s->peak.value(), x.budget);
  if (without) {
    EXPECT_LE(with->makespan, without->makespan);
  }
  counts->faster += without && with->makespan < without->makespan ? 1 : 0;
  counts->newly_feasible += without ? 0 : 1;
  counts->waits += s->idle_time > Nanos(0) ? 1 : 0;
  const Nanos bound = MakespanLowerBound(Instance(x.chain, x.transfers), Bytes(x.budget));
  EXPECT_LE(bound.value(), with->makespan) << Describe(x.chain) << ScheduleText(with->schedule);
  counts->at_bound += bound.value() == with->makespan ? 1 : 0;
  const Nanos strongest =
      StrongestMakespanLowerBound(Instance(x.chain, x.transfers), Bytes(x.budget));
  EXPECT_LE(strongest.value(), with->makespan) << Describe(x.chain) << ScheduleText(with->schedule);
  EXPECT_GE(strongest, bound);
  counts->at_strongest += strongest.value() == with->makespan ? 1 : 0;
}

TEST(TransferSearch, ReplaysAsClaimedAndKeepsTheBound) {
  std::mt19937_64 rng(1);
  Counts counts;
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i)
    Check(DrawInstance(1 + i % 2, i, &rng), &counts);
  for (int i = 0; i < 40 && !HasFatalFailure(); ++i) Check(DrawInstance(3, i, &rng), &counts);
  EXPECT_GT(counts.found, 500);
  EXPECT_GT(counts.infeasible, 100);
  EXPECT_GT(counts.faster, 40);
  EXPECT_GT(counts.newly_feasible, 100);
  EXPECT_GT(counts.waits, 150);
  EXPECT_GT(counts.at_bound, 150);
}

TEST(TransferSearch, WithoutHostMemoryIsTheSearchWithoutTransfers) {
  std::mt19937_64 rng(2);
  int found = 0;
  for (int i = 0; i < 500; ++i) {
    Drawn x = DrawInstance(1 + i % 3, i, &rng);
    x.transfers.host_memory = Bytes(0);
    const auto with = SearchTransfers(x.chain, x.transfers, x.budget);
    const auto without = SearchSchedules(x.chain, x.budget);
    ASSERT_EQ(with.has_value(), without.has_value()) << Describe(x.chain);
    if (!with) continue;
    EXPECT_EQ(with->makespan, without->makespan) << Describe(x.chain);
    ++found;
  }
  EXPECT_GT(found, 150);
}

// One instruction elsewhere, gone, or a new one.
Schedule Mutated(const Chain& chain, Schedule schedule, std::mt19937_64* rng) {
  const int size = static_cast<int>(schedule.size());
  const auto at = [&](int i) { return schedule.begin() + i; };
  const int from = Draw(0, size - 1, rng);
  const int way = Draw(0, 2, rng);
  if (way == 0) {
    const int to = Draw(0, size - 1, rng);
    if (from < to) std::rotate(at(from), at(from + 1), at(to + 1));
    if (to < from) std::rotate(at(to), at(from), at(from + 1));
  } else if (way == 1) {
    schedule.erase(at(from));
  } else {
    Instruction i;
    i.op = static_cast<Op>(Draw(0, 9, rng));
    i.stage = Draw(0, chain.length() + 1, rng);
    i.tensor = Draw(0, 1, rng) == 0 ? TensorKind::kSaved : TensorKind::kActivation;
    i.stream = StreamOf(i.op);
    schedule.insert(at(from), i);
  }
  return schedule;
}

// Walks from the schedule to ones that are no slower, within the peak that it has.
Nanos Improve(const Drawn& x, Schedule schedule, std::mt19937_64* rng) {
  Nanos best = Evaluator(Instance(x.chain, x.transfers)).Run(schedule)->makespan;
  for (int i = 0; i < 1500; ++i) {
    Schedule next = Mutated(x.chain, schedule, rng);
    if (i % 3 == 0) next = Mutated(x.chain, next, rng);
    const absl::StatusOr<Simulation> s = Evaluator(Instance(x.chain, x.transfers)).Run(next);
    if (!s.ok() || s->peak.value() > x.budget || s->makespan > best) continue;
    best = s->makespan;
    schedule = next;
  }
  return best;
}

// Everything here is at most as large as what the random schedule takes, so the search finds one.
TEST(TransferSearch, NothingFoundAtRandomIsFaster) {
  std::mt19937_64 rng(3);
  int slower = 0, reached = 0;
  for (int i = 0; i < 400; ++i) {
    Drawn x = DrawInstance(1 + i % 3 % 2 + i % 20 / 19, i, &rng);
    x.transfers.host_memory = Bytes(1000);
    const Schedule schedule =
        WithRandomTransfers(x.chain, RandomSchedule(x.chain, &rng), x.transfers, &rng);
    const Simulation s = *Evaluator(Instance(x.chain, x.transfers)).Run(schedule);
    x.budget = s.peak.value();
    x.transfers.host_memory = s.host_peak;
    const auto fastest = SearchTransfers(x.chain, x.transfers, x.budget);
    ASSERT_TRUE(fastest) << Describe(x.chain) << ScheduleText(schedule);
    const Nanos improved = Improve(x, schedule, &rng);
    EXPECT_LE(fastest->makespan, improved.value()) << Describe(x.chain) << ScheduleText(schedule);
    slower += s.makespan > improved ? 1 : 0;
    reached += improved.value() == fastest->makespan ? 1 : 0;
  }
  EXPECT_GT(slower, 100);
  EXPECT_GT(reached, 200);
}

}  // namespace
}  // namespace stowage::testing

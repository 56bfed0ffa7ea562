// The evaluator of schedules with transfers against the naive replay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/text.h"
#include "tests/solvers/naive_comparison.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

// Returns whether both call it valid.
bool ExpectEqualToNaive(const Chain& chain, const Schedule& schedule,
                        const TransferModel& transfers) {
  std::vector<TimelinePoint> timeline;
  const testing::NaiveResult naive = testing::NaiveReplay(chain, schedule, &transfers);
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(chain, transfers)).Run(schedule, &timeline);
  EXPECT_EQ(s.ok(), naive.valid) << s.status() << "\n"
                                 << testing::Describe(chain) << "\n"
                                 << ScheduleText(schedule);
  if (!s.ok() || !naive.valid) return false;
  testing::ExpectAsNaive(*s, timeline, naive);
  EXPECT_FALSE(::testing::Test::HasFailure()) << testing::Describe(chain) << "\n"
                                              << ScheduleText(schedule);
  return true;
}

struct Drawn {
  Chain chain;
  TransferModel transfers;
  Schedule schedule;
};

Drawn DrawSchedule(int i, std::mt19937_64* rng, bool in_parts = false) {
  Chain chain = testing::RandomChain(1 + i % 6, testing::VariedOptions(i), rng);
  if (in_parts) chain = testing::WithSavedTensors(chain, rng);
  const TransferModel transfers = testing::RandomTransferModel(rng);
  const Schedule base = testing::RandomSchedule(chain, rng);
  return {chain, transfers, testing::WithRandomTransfers(chain, base, transfers, rng)};
}

TEST(Transfers, AgreeWithANaiveReplayOnRandomSchedules) {
  std::mt19937_64 rng(1);
  int moved = 0, waited = 0, full_duplex = 0;
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    const Drawn d = DrawSchedule(i, &rng);
    ASSERT_TRUE(ExpectEqualToNaive(d.chain, d.schedule, d.transfers));
    const Simulation s = *Evaluator(Instance(d.chain, d.transfers)).Run(d.schedule);
    moved += s.offloaded > Bytes(0) ? 1 : 0;
    waited += s.idle_time > Nanos(0) ? 1 : 0;
    full_duplex += d.transfers.full_duplex ? 1 : 0;
  }
  EXPECT_GT(moved, 1500);
  EXPECT_GT(waited, 1000);
  EXPECT_GT(full_duplex, 1000);
}

TEST(Transfers, AgreeWithANaiveReplayOnBoundedHostMemory) {
  std::mt19937_64 rng(2);
  int refused = 0;
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    Drawn d = DrawSchedule(i, &rng);
    d.transfers.host_memory = Evaluator(Instance(d.chain, d.transfers)).Run(d.schedule)->host_peak;
    EXPECT_TRUE(ExpectEqualToNaive(d.chain, d.schedule, d.transfers));
    if (d.transfers.host_memory == Bytes(0)) continue;
    d.transfers.host_memory -= Bytes(1);
    EXPECT_FALSE(ExpectEqualToNaive(d.chain, d.schedule, d.transfers));
    ++refused;
  }
  EXPECT_GT(refused, 700);
}

TEST(Transfers, AgreeWithANaiveReplayOnBrokenSchedules) {
  std::mt19937_64 rng(3);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    const Drawn d = DrawSchedule(i, &rng);
    for (int way = 0; way < testing::kWaysToBreak; ++way) {
      const Schedule broken = testing::Broken(d.schedule, way, &rng);
      ++(ExpectEqualToNaive(d.chain, broken, d.transfers) ? valid : invalid);
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 4000);
}

bool MovesAPart(const Schedule& schedule) {
  return std::any_of(schedule.begin(), schedule.end(),
                     [](const Instruction& i) { return i.part != 0; });
}

// The part with the output.
bool MovesTheRest(const Drawn& d) {
  return std::any_of(d.schedule.begin(), d.schedule.end(), [&d](const Instruction& i) {
    return i.part != 0 && i.part == d.chain.stage(i.stage).parts();
  });
}

TEST(Transfers, AgreeWithANaiveReplayOnSchedulesThatMoveParts) {
  std::mt19937_64 rng(6);
  int moved = 0, rest = 0;
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    const Drawn d = DrawSchedule(i, &rng, /*in_parts=*/true);
    ASSERT_TRUE(ExpectEqualToNaive(d.chain, d.schedule, d.transfers));
    moved += MovesAPart(d.schedule) ? 1 : 0;
    rest += MovesTheRest(d) ? 1 : 0;
  }
  EXPECT_GT(moved, 500);
  EXPECT_GT(rest, 150);
}

// Another part, or none, for an instruction that may move one.
Schedule WithOtherPart(Schedule schedule, std::mt19937_64* rng) {
  std::vector<size_t> saved;
  for (size_t k = 0; k < schedule.size(); ++k) {
    if (schedule[k].tensor == TensorKind::kSaved) saved.push_back(k);
  }
  if (saved.empty()) return schedule;
  const size_t at = saved[(*rng)() % saved.size()];
  schedule[at].part = static_cast<uint16_t>((*rng)() % 5);
  return schedule;
}

TEST(Transfers, AgreeWithANaiveReplayOnBrokenSchedulesThatMoveParts) {
  std::mt19937_64 rng(7);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 700 && !HasFailure(); ++i) {
    const Drawn d = DrawSchedule(i, &rng, /*in_parts=*/true);
    for (int way = 0; way < testing::kWaysToBreak + 2; ++way) {
      const Schedule broken = way < testing::kWaysToBreak ? testing::Broken(d.schedule, way, &rng)
                                                          : WithOtherPart(d.schedule, &rng);
      ++(ExpectEqualToNaive(d.chain, broken, d.transfers) ? valid : invalid);
    }
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(invalid, 2000);
}

TEST(Transfers, ChangeNothingWhereThereAreNone) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 1000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 6, testing::VariedOptions(i), &rng);
    const Schedule schedule = testing::RandomSchedule(chain, &rng);
    const Simulation without = *Evaluator(chain).Run(schedule);
    const Simulation with =
        *Evaluator(Instance(chain, testing::RandomTransferModel(&rng))).Run(schedule);
    EXPECT_EQ(with.makespan, without.makespan);
    EXPECT_EQ(with.peak, without.peak);
    EXPECT_EQ(with.peak_instruction, without.peak_instruction);
    EXPECT_EQ(with.idle_time, Nanos(0));
    EXPECT_EQ(with.host_peak, Bytes(0));
  }
}

TEST(Transfers, SurviveTheScheduleCode) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 500; ++i) {
    const Drawn d = DrawSchedule(i, &rng, /*in_parts=*/i % 2 == 0);
    const absl::StatusOr<Schedule> back = DecodeSchedule(EncodeSchedule(d.schedule), 1 << 20);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, d.schedule);
  }
}

}  // namespace
}  // namespace stowage

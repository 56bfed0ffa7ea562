// Schedules with early waits on random chains: what the evaluator says of them.
#include "solvers/transfer/internal/transfer_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

Schedule Moved(Schedule schedule, size_t from, size_t to) {
  std::rotate(schedule.begin() + static_cast<std::ptrdiff_t>(to),
              schedule.begin() + static_cast<std::ptrdiff_t>(from),
              schedule.begin() + static_cast<std::ptrdiff_t>(from) + 1);
  return schedule;
}

// As far as the evaluator lets each wait go by itself.
std::vector<size_t> Earliest(const Chain& chain, const TransferModel& link,
                             const Schedule& schedule) {
  std::vector<size_t> earliest(schedule.size());
  for (size_t i = 0; i < schedule.size(); ++i) {
    earliest[i] = i;
    if (schedule[i].op != Op::kOffloadWait) continue;
    while (earliest[i] > 0 &&
           Evaluator(Instance(chain, link)).Run(Moved(schedule, i, earliest[i] - 1)).ok()) {
      --earliest[i];
    }
  }
  return earliest;
}

std::vector<Bytes> Running(const Schedule& schedule, const std::vector<TimelinePoint>& timeline) {
  std::vector<Bytes> running;
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsTransfer(schedule[i].op)) running.push_back(timeline[i].running);
  }
  return running;
}

TEST(EarlyWaits, AreNoSlowerAndTakeNoMore) {
  std::mt19937_64 rng(3);
  int moved = 0, careful = 0;
  for (int i = 0; i < 400; ++i) {
    const Chain chain = RandomChain(1 + i % 7, VariedOptions(i), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    std::vector<TimelinePoint> timeline, early_timeline;
    const Simulation before = *Evaluator(Instance(chain, link)).Run(schedule, &timeline);
    const std::vector<size_t> earliest = Earliest(chain, link, schedule);
    const Schedule early = WithEarlyWaits(schedule, timeline, earliest, 0.0);
    const absl::StatusOr<Simulation> after =
        Evaluator(Instance(chain, link)).Run(early, &early_timeline);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_LE(after->makespan, before.makespan);
    EXPECT_LE(after->peak, before.peak);
    const std::vector<Bytes> running = Running(schedule, timeline);
    const std::vector<Bytes> early_running = Running(early, early_timeline);
    for (size_t k = 0; k < running.size(); ++k) EXPECT_LE(early_running[k], running[k]);
    moved += early != schedule ? 1 : 0;
    careful += WithEarlyWaits(schedule, timeline, earliest, 2.0) != schedule ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, 40);
  EXPECT_GT(moved, careful);
}

}  // namespace
}  // namespace stowage::testing

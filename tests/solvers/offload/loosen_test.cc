// Loosened schedules on random chains with random transfers: what the referee says of them.
#include "solvers/offload/loosen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "solvers/offload/copy_trips.h"
#include "solvers/offload/trip_replay.h"
#include "solvers/plan/simulate.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

Schedule StepsOf(const Schedule& schedule) {
  Schedule compute;
  for (const Instruction& i : schedule) {
    if (!IsTransfer(i.op) && i.op != Op::kDiscard) compute.push_back(i);
  }
  return compute;
}

struct Counts {
  int waiting = 0;  // schedules in which compute waits
  int faster = 0;
  int again = 0;  // faster when loosened again
  int moves = 0;  // with copies still
  int parts = 0;  // with copies of parts
};

bool MovesParts(const Schedule& schedule) {
  return std::any_of(schedule.begin(), schedule.end(),
                     [](const Instruction& i) { return i.part != 0; });
}

// Loosens the schedule within its own peak and a little more.
void Check(const Chain& chain, const TransferModel& link, const Schedule& schedule, Bytes more,
           Counts* counts) {
  const Simulation before = *Simulate(chain, schedule, link);
  const Bytes memory = before.peak + more;
  const Schedule loosened = Loosen(chain, schedule, link, memory);
  const NaiveResult after = NaiveReplay(chain, loosened, &link);
  ASSERT_TRUE(after.valid) << Describe(chain);
  EXPECT_LE(after.makespan, before.makespan.value());
  EXPECT_LE(after.peak, memory.value());
  EXPECT_LE(after.host_peak, link.host_memory.value());
  EXPECT_LE(after.sent, before.sent.value());
  EXPECT_EQ(StepsOf(loosened), StepsOf(schedule));
  EXPECT_EQ(Loosen(chain, schedule, link, memory), loosened);
  const NaiveResult again = NaiveReplay(chain, Loosen(chain, loosened, link, memory), &link);
  EXPECT_LE(again.makespan, after.makespan);
  counts->waiting += before.idle_time > Nanos(0) ? 1 : 0;
  counts->faster += after.makespan < before.makespan.value() ? 1 : 0;
  counts->again += again.makespan < after.makespan ? 1 : 0;
  counts->moves += after.sent > 0 && after.makespan < before.makespan.value() ? 1 : 0;
  counts->parts += MovesParts(loosened) && !(loosened == schedule) ? 1 : 0;
}

Counts CheckRandom(bool in_parts, bool tight_host) {
  std::mt19937_64 rng(7);
  Counts counts;
  for (int i = 0; i < 1500; ++i) {
    Chain chain = RandomChain(1 + i % 6, VariedOptions(i), &rng);
    if (in_parts) chain = WithSavedTensors(chain, &rng);
    TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    if (tight_host) link.host_memory = Simulate(chain, schedule, link)->host_peak;
    Check(chain, link, schedule, Bytes(i % 3), &counts);
  }
  return counts;
}

void Report(const char* what, const Counts& c) {
  std::cout << what << ": " << c.waiting << " wait, " << c.faster << " faster, " << c.moves
            << " of these with copies, " << c.parts << " with parts, " << c.again << " again\n";
}

TEST(Loosen, NeverSlowerAndWithinMemory) {
  const Counts counts = CheckRandom(/*in_parts=*/false, /*tight_host=*/false);
  Report("whole", counts);
  EXPECT_GT(counts.faster, counts.waiting / 2);
}

TEST(Loosen, WithinHostMemory) {
  const Counts counts = CheckRandom(/*in_parts=*/false, /*tight_host=*/true);
  Report("tight", counts);
  EXPECT_GT(counts.faster, counts.waiting / 3);
}

TEST(Loosen, MovesParts) {
  const Counts counts = CheckRandom(/*in_parts=*/true, /*tight_host=*/false);
  Report("parts", counts);
  EXPECT_GT(counts.faster, counts.waiting / 2);
  EXPECT_GT(counts.parts, 100);
}

// Every set of rules gives what the referee accepts, within the memory.
TEST(ReplayTrips, IsValid) {
  std::mt19937_64 rng(8);
  int replayed = 0, refused = 0, too_much = 0, none = 0;
  for (int i = 0; i < 1500; ++i) {
    const Chain chain = WithSavedTensors(RandomChain(1 + i % 6, VariedOptions(i), &rng), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    const Bytes peak = Simulate(chain, schedule, link)->peak;
    const CopyTrips trips = *FindCopyTrips(chain, schedule, link);
    for (const OffloadRule offload : {OffloadRule::kSoon, OffloadRule::kLate}) {
      for (const PrefetchRule prefetch :
           {PrefetchRule::kInOrder, PrefetchRule::kAsRoomAllows, PrefetchRule::kJustInTime}) {
        const auto next = ReplayTrips(trips, std::vector<bool>(trips.trips.size()), link, peak,
                                      {offload, prefetch});
        none += next ? 0 : 1;
        if (!next) continue;
        ++replayed;
        const auto s = Simulate(chain, *next, link);
        if (!s.ok() && refused < 5) std::cout << s.status() << "\n";
        refused += s.ok() ? 0 : 1;
        too_much += s.ok() && s->peak > peak ? 1 : 0;
      }
    }
  }
  std::cout << replayed << " replayed " << refused << " refused " << too_much << " too much "
            << none << " none\n";
}

}  // namespace
}  // namespace stowage::testing

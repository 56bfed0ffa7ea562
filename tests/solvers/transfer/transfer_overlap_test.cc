// Schedules with overlapped copies, on random chains with random transfers: what the evaluator says of them.
#include "solvers/transfer/internal/transfer_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_communication.h"
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
  int again = 0;  // faster when overlapped again
  int moves = 0;  // with copies still
  int parts = 0;  // with copies of parts
};

bool MovesParts(const Schedule& schedule) {
  return std::any_of(schedule.begin(), schedule.end(),
                     [](const Instruction& i) { return i.part != 0; });
}

// Overlaps the copies of the schedule within its own peak and a little more.
void Check(const Chain& chain, const TransferModel& link, const Schedule& schedule, Bytes more,
           Counts* counts) {
  const Simulation before = *Evaluator(Instance(chain, link)).Run(schedule);
  const Bytes memory = before.peak + more;
  const Schedule overlapped = OverlapTransfers(Instance(chain, link), schedule, memory, nullptr);
  const NaiveResult after = NaiveReplay(chain, overlapped, &link);
  ASSERT_TRUE(after.valid) << Describe(chain);
  EXPECT_LE(after.makespan, before.makespan.value());
  EXPECT_LE(after.peak, memory.value());
  EXPECT_LE(after.host_peak, link.host_memory.value());
  EXPECT_LE(after.offloaded, before.offloaded.value());
  EXPECT_EQ(StepsOf(overlapped), StepsOf(schedule));
  EXPECT_EQ(OverlapTransfers(Instance(chain, link), schedule, memory, nullptr), overlapped);
  const NaiveResult again = NaiveReplay(
      chain, OverlapTransfers(Instance(chain, link), overlapped, memory, nullptr), &link);
  EXPECT_LE(again.makespan, after.makespan);
  counts->waiting += before.idle_time > Nanos(0) ? 1 : 0;
  counts->faster += after.makespan < before.makespan.value() ? 1 : 0;
  counts->again += again.makespan < after.makespan ? 1 : 0;
  counts->moves += after.offloaded > 0 && after.makespan < before.makespan.value() ? 1 : 0;
  counts->parts += MovesParts(overlapped) && !(overlapped == schedule) ? 1 : 0;
}

Counts CheckRandom(bool in_parts, bool tight_host) {
  std::mt19937_64 rng(7);
  Counts counts;
  for (int i = 0; i < 1500; ++i) {
    Chain chain = RandomChain(1 + i % 6, VariedOptions(i), &rng);
    if (in_parts) chain = WithSavedTensors(chain, &rng);
    TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    if (tight_host) link.host_memory = Evaluator(Instance(chain, link)).Run(schedule)->host_peak;
    Check(chain, link, schedule, Bytes(i % 3), &counts);
  }
  return counts;
}

TEST(OverlapTransfers, IsNeverSlowerAndWithinMemory) {
  const Counts counts = CheckRandom(/*in_parts=*/false, /*tight_host=*/false);
  EXPECT_GT(counts.faster, counts.waiting * 9 / 10);
  EXPECT_GT(counts.moves, counts.waiting / 3);
  EXPECT_EQ(counts.again, 0);
}

TEST(OverlapTransfers, IsWithinHostMemory) {
  const Counts counts = CheckRandom(/*in_parts=*/false, /*tight_host=*/true);
  EXPECT_GT(counts.faster, counts.waiting * 9 / 10);
  EXPECT_GT(counts.moves, counts.waiting / 3);
}

TEST(OverlapTransfers, MovesParts) {
  const Counts counts = CheckRandom(/*in_parts=*/true, /*tight_host=*/false);
  EXPECT_GT(counts.faster, counts.waiting * 9 / 10);
  EXPECT_GT(counts.parts, 100);
}

// One byte a nanosecond each way.
TransferModel Link() {
  const CopyCost cost = {1000000000, Nanos(0)};
  return {cost, cost, /*full_duplex=*/true, Bytes(1000)};
}

// Four stages of which forwards and backwards take 10, and save 10.
Chain FourStages() {
  Stage stage;
  stage.forward_time = stage.backward_time = Nanos(10);
  stage.output = Bytes(1);
  stage.saved = Bytes(10);
  ChainSpec spec;
  spec.stages = {stage, stage, stage, stage};
  return *Chain::Create(spec);
}

constexpr TensorKind kSaved = TensorKind::kSaved;

// Each copy is followed by its wait.
const Schedule& Slow() {
  static const auto* const kSlow = new Schedule{ForwardSave(1),
                                                ForwardSave(2),
                                                OffloadStart(kSaved, 1),
                                                OffloadWait(kSaved, 1),
                                                ForwardSave(3),
                                                ForwardSave(4),
                                                ForwardSave(5),
                                                Backward(5),
                                                Backward(4),
                                                PrefetchStart(kSaved, 1),
                                                PrefetchWait(kSaved, 1),
                                                Backward(3),
                                                Backward(2),
                                                Backward(1)};
  return *kSlow;
}

TEST(OverlapTransfers, HidesCopies) {
  const Schedule want = {ForwardSave(1), OffloadStart(kSaved, 1),
                         ForwardSave(2), OffloadWait(kSaved, 1),
                         ForwardSave(3), ForwardSave(4),
                         ForwardSave(5), Backward(5),
                         Backward(4),    PrefetchStart(kSaved, 1),
                         Backward(3),    PrefetchWait(kSaved, 1),
                         Backward(2),    Backward(1)};
  EXPECT_EQ(Evaluator(Instance(FourStages(), Link())).Run(Slow())->makespan, Nanos(100));
  EXPECT_EQ(Evaluator(Instance(FourStages(), Link())).Run(want)->makespan, Nanos(80));
  EXPECT_EQ(OverlapTransfers(Instance(FourStages(), Link()), Slow(), Bytes(30), nullptr), want);
  // A stop leaves it as it is, a deadline what takes next to no time.
  StopToken stop;
  const StopToken late(StopToken::Clock::now());
  EXPECT_EQ(OverlapTransfers(Instance(FourStages(), Link()), Slow(), Bytes(30), &late), want);
  stop.RequestStop();
  EXPECT_EQ(OverlapTransfers(Instance(FourStages(), Link()), Slow(), Bytes(30), &stop), Slow());
}

// Every saved tensor leaves after the next forward, and comes back before its backward.
Schedule EverythingAway(int stages) {
  Schedule schedule;
  for (int l = 1; l <= stages + 1; ++l) {
    schedule.push_back(ForwardSave(l));
    if (l == 1 || l > stages) continue;
    schedule.insert(schedule.end(), {OffloadStart(kSaved, l - 1), OffloadWait(kSaved, l - 1)});
  }
  schedule.push_back(Backward(stages + 1));
  for (int l = stages; l >= 1; --l) {
    if (l > 1) {
      schedule.insert(schedule.end(), {PrefetchStart(kSaved, l - 1), PrefetchWait(kSaved, l - 1)});
    }
    schedule.push_back(Backward(l));
  }
  return schedule;
}

TEST(OverlapTransfers, OfLongSchedulesHearsOfADeadline) {
  constexpr int kStages = 1500;
  ChainSpec spec = FourStages().spec();
  spec.stages.assign(kStages, spec.stages.front());
  const Chain chain = *Chain::Create(spec);
  TransferModel link = Link();
  link.host_memory = Bytes(int64_t{1} << 40);
  const Schedule schedule = EverythingAway(kStages);
  const Instance instance(chain, link);
  const Simulation before = *Evaluator(instance).Run(schedule);
  const auto overlap = [&](const StopToken& stop) {
    const Schedule after =
        OverlapTransfers(instance, schedule, before.peak + Bytes(kStages), &stop);
    return Evaluator(instance).Run(after)->makespan;
  };
  // What takes next to no time is done all the same, and no more.
  const StopToken none;
  StopToken late;
  late.PassDeadlineAtLook(1);
  const Nanos best = overlap(none), quick = overlap(late);
  EXPECT_LE(best, quick);
  EXPECT_LT(quick, before.makespan);
  EXPECT_EQ(late.looks(), 1) << "one that has passed is not asked for again";
}

TEST(OverlapTransfers, KeepsWhatFits) {
  TransferModel slow_link = Link();
  slow_link.to_host.latency = Nanos(1000);
  EXPECT_EQ(OverlapTransfers(Instance(FourStages(), slow_link), Slow(), Bytes(40), nullptr),
            StepsOf(Slow()));
}

TEST(OverlapTransfers, DiscardsWhatIsSaved) {
  constexpr TensorKind kActivation = TensorKind::kActivation;
  const Schedule schedule = {ForwardNoSave(1),
                             ForwardNoSave(2),
                             OffloadStart(kActivation, 1),
                             OffloadWait(kActivation, 1),
                             ForwardSave(3),
                             ForwardSave(4),
                             ForwardSave(5),
                             Backward(5),
                             Backward(4),
                             Backward(3),
                             ForwardSave(1),
                             PrefetchStart(kActivation, 1),
                             PrefetchWait(kActivation, 1),
                             ForwardSave(2),
                             Backward(2),
                             Backward(1)};
  const Chain chain = FourStages();
  const Bytes peak = Evaluator(Instance(chain, Link())).Run(schedule)->peak;
  const Schedule overlapped = OverlapTransfers(Instance(chain, Link()), schedule, peak, nullptr);
  const Simulation s = *Evaluator(Instance(chain, Link())).Run(overlapped);
  EXPECT_EQ(s.offloaded, Bytes(0));
  EXPECT_EQ(s.idle_time, Nanos(0));
  EXPECT_EQ(StepsOf(overlapped), StepsOf(schedule));
}

TEST(OverlapTransfers, ReturnsWhatItCannotImprove) {
  EXPECT_EQ(OverlapTransfers(Instance(FourStages(), Link()), Slow(), Bytes(29), nullptr),
            Slow());  // does not fit
  Schedule broken = Slow();
  broken.pop_back();
  EXPECT_EQ(OverlapTransfers(Instance(FourStages(), Link()), broken, Bytes(100), nullptr), broken);
}

TEST(OverlapTransfers, ReturnsWhatCommunicatesBesideCompute) {
  std::mt19937_64 rng(9);
  int waiting = 0;
  for (int i = 0; i < 300; ++i) {
    const Chain plain = RandomChain(2 + i % 5, VariedOptions(i), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule base = WithRandomTransfers(plain, RandomSchedule(plain, &rng), link, &rng);
    const Chain chain = WithCollectives(plain, base, &rng);
    const Schedule schedule = WithRandomCommunication(chain, base, &rng);
    if (CheckNoCommunication(schedule).ok()) continue;
    const Simulation before = *Evaluator(Instance(chain, link)).Run(schedule);
    EXPECT_EQ(OverlapTransfers(Instance(chain, link), schedule, before.peak, nullptr), schedule);
    EXPECT_EQ(FindTransfers(Instance(chain, link), schedule).status().code(),
              absl::StatusCode::kInvalidArgument);
    waiting += before.idle_time > Nanos(0) ? 1 : 0;
  }
  EXPECT_GT(waiting, 50);
}

// What every rule gives is accepted and within the memory.
TEST(ReplayTransfers, IsValid) {
  std::mt19937_64 rng(8);
  int replayed = 0, refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const Chain chain = WithSavedTensors(RandomChain(1 + i % 6, VariedOptions(i), &rng), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    const Bytes peak = Evaluator(Instance(chain, link)).Run(schedule)->peak;
    const TransferSet transfers = *FindTransfers(Instance(chain, link), schedule);
    const std::vector<bool> stays(transfers.transfers.size(), false);
    for (const OffloadRule offload : {OffloadRule::kSoon, OffloadRule::kLate}) {
      for (const PrefetchRule prefetch :
           {PrefetchRule::kInOrder, PrefetchRule::kAsMemoryAllows, PrefetchRule::kJustInTime}) {
        const std::optional<Schedule> next =
            ReplayTransfers(transfers, stays, link, peak, {offload, prefetch});
        ++(next ? replayed : refused);
        if (!next) continue;
        const NaiveResult result = NaiveReplay(chain, *next, &link);
        ASSERT_TRUE(result.valid) << Describe(chain);
        EXPECT_LE(result.peak, peak.value());
        EXPECT_EQ(next->size(), schedule.size());
      }
    }
  }
  EXPECT_GT(replayed, 50 * refused);
}

}  // namespace
}  // namespace stowage::testing

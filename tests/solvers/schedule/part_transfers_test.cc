// The rules of transfers of parts of saved tensors, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

// Two stages and a loss; sizes that are sums of distinct powers of ten. Saved 1 is made of parts of
// 1000 and 2000 bytes and the rest, 10 + 4000. Every forward takes 10 ns, every backward 100.
Chain Parts() {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage s;
  s.forward_time = Nanos(10);
  s.backward_time = Nanos(100);
  s.output = Bytes(10);
  s.saved = Bytes(7010);
  s.saved_tensors = {Bytes(1000), Bytes(2000)};
  spec.stages = {s, s};
  spec.stages[1].saved_tensors = {};
  spec.stages[1].saved = Bytes(20010);
  spec.loss.forward_time = Nanos(10);
  spec.loss.backward_time = Nanos(100);
  spec.loss.saved_tensors = {Bytes(0)};
  return *Chain::Create(spec);
}

// A byte takes 1 ns.
TransferModel Link() {
  TransferModel transfers;
  transfers.to_host.bytes_per_second = 1000000000;
  transfers.to_device.bytes_per_second = 1000000000;
  transfers.host_memory = Bytes(1000000);
  return transfers;
}

Schedule Joined(Schedule a, const Schedule& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Schedule Offload(int part) { return {OffloadStart(kSaved, 1, part), OffloadWait(kSaved, 1, part)}; }
Schedule Prefetch(int part) {
  return {PrefetchStart(kSaved, 1, part), PrefetchWait(kSaved, 1, part)};
}

std::string WhyNot(const Schedule& schedule) {
  const absl::Status status = Evaluator(Instance(Parts(), Link())).Run(schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

// What the last instruction, the first that is not valid, is refused for.
void ExpectRefused(const Schedule& begin, const Instruction& next, const std::string& why) {
  const std::string message = WhyNot(Joined(begin, {next}));
  EXPECT_THAT(message, HasSubstr("instruction " + std::to_string(begin.size()) + " "));
  EXPECT_THAT(message, HasSubstr(why));
}

TEST(PartTransfers, TakeMemoryAndTimeByTheTable) {
  std::vector<TimelinePoint> t;
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(Parts(), Link()))
          .Run({ForwardSave(1), OffloadStart(kSaved, 1, 2), OffloadStart(kSaved, 1, 1),
                ForwardSave(2), OffloadWait(kSaved, 1, 2), OffloadWait(kSaved, 1, 1),
                ForwardSave(3), Backward(3),
                // Reads the output beside the parts that are away.
                PrefetchStart(kSaved, 1, 1), Backward(2), PrefetchWait(kSaved, 1, 1),
                PrefetchStart(kSaved, 1, 2), PrefetchWait(kSaved, 1, 2), Backward(1)},
               &t);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(t[1].start, Nanos(10));
  EXPECT_EQ(t[1].end, Nanos(2010));
  EXPECT_EQ(t[1].held, Bytes(7011));
  EXPECT_EQ(t[2].end, Nanos(3010));
  EXPECT_EQ(t[2].host, Bytes(3000));
  EXPECT_EQ(t[4].end, Nanos(2010));
  EXPECT_EQ(t[4].held, Bytes(1 + 5010 + 20010));
  EXPECT_EQ(t[5].end, Nanos(3010));
  EXPECT_EQ(t[5].held, Bytes(1 + 4010 + 20010));
  EXPECT_EQ(t[8].held, Bytes(1 + 5010 + 20010));
  EXPECT_EQ(t[9].held, Bytes(1 + 5010));
  EXPECT_EQ(t[10].end, Nanos(3120 + 1000));
  EXPECT_EQ(t[10].host, Bytes(2000));
  EXPECT_EQ(t[12].held, Bytes(7011));
  EXPECT_EQ(t[12].host, Bytes(0));
  EXPECT_EQ(s->makespan, Nanos(4120 + 2000 + 100));
  EXPECT_EQ(s->peak, Bytes(7011 + 20010));
  EXPECT_EQ(s->host_peak, Bytes(3000));
  EXPECT_EQ(s->offloaded, Bytes(3000));
  EXPECT_EQ(s->prefetched, Bytes(3000));
}

TEST(PartTransfers, TheLastPartTakesTheOutputAlong) {
  const Schedule away = Joined({ForwardSave(1)}, Offload(3));
  for (const Instruction& reader : {ForwardSave(2), ForwardNoSave(2)}) {
    ExpectRefused(away, reader, "activation 1, is not held");
  }
  ExpectRefused(away, ForwardSave(1), "part 3 of saved 1: it is on the host");
  ExpectRefused(away, DropSavedKeepOutput(1), "its saved tensors are not held");
  // What is not away may leave all the same; together it all comes back.
  const Schedule rest = {ForwardSave(2), ForwardSave(3), Backward(3), Backward(2), Backward(1)};
  Schedule schedule = Joined(Joined(away, Offload(1)), Prefetch(3));
  schedule = Joined(Joined(schedule, Prefetch(1)), rest);
  const absl::StatusOr<Simulation> s = Evaluator(Instance(Parts(), Link())).Run(schedule);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->offloaded, Bytes(5010));
}

TEST(PartTransfers, ABackwardNeedsAllParts) {
  const Schedule forwards = {ForwardSave(1), ForwardSave(2), ForwardSave(3)};
  const Schedule backwards = {Backward(3), Backward(2)};
  const Schedule leaves = Joined(Joined(forwards, {OffloadStart(kSaved, 1, 1)}), backwards);
  ExpectRefused(leaves, Backward(1), "part 1 of saved 1: it is on its way to the host");
  const Schedule away = Joined(Joined(forwards, Offload(1)), backwards);
  ExpectRefused(away, Backward(1), "part 1 of saved 1: it is on the host");
  const Schedule comes = Joined(away, {PrefetchStart(kSaved, 1, 1)});
  ExpectRefused(comes, Backward(1), "part 1 of saved 1: it is on the host");
  EXPECT_TRUE(Evaluator(Instance(Parts(), Link()))
                  .Run(Joined(comes, {PrefetchWait(kSaved, 1, 1), Backward(1)}))
                  .ok());
}

TEST(PartTransfers, DiscardAndReduceDropWhatTheHostHas) {
  const Schedule again = {ForwardSave(1), ForwardSave(2), ForwardSave(3),
                          Backward(3),    Backward(2),    Backward(1)};
  for (const int part : {1, 3}) {
    for (const Instruction& drop : {Discard(kSaved, 1), DropSavedKeepOutput(1)}) {
      if (part == 3 && drop.op == Op::kDropSavedKeepOutput) continue;
      const Schedule away = Joined({ForwardSave(1)}, Offload(part));
      std::vector<TimelinePoint> timeline;
      const absl::StatusOr<Simulation> s =
          Evaluator(Instance(Parts(), Link())).Run(Joined(Joined(away, {drop}), again), &timeline);
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_EQ(timeline[3].host, Bytes(0));
      EXPECT_EQ(timeline[3].held, Bytes(drop.op == Op::kDropSavedKeepOutput ? 11 : 1));
      ExpectRefused(Joined({ForwardSave(1)}, {OffloadStart(kSaved, 1, part)}), drop,
                    "part " + std::to_string(part) + " of saved 1: it is on its way");
      ExpectRefused(Joined(away, {PrefetchStart(kSaved, 1, part)}), drop,
                    "part " + std::to_string(part) + " of saved 1: it is on its way");
    }
  }
}

TEST(PartTransfers, AWholeAndItsPartsDoNotMoveAtOnce) {
  const Schedule made = {ForwardSave(1)};
  ExpectRefused(Joined(made, {OffloadStart(kSaved, 1, 1)}), OffloadStart(kSaved, 1),
                "part 1 of saved 1: it is on its way to the host");
  ExpectRefused(Joined(made, Offload(2)), OffloadStart(kSaved, 1),
                "part 2 of saved 1: it is on the host");
  ExpectRefused(Joined(made, {OffloadStart(kSaved, 1)}), OffloadStart(kSaved, 1, 1),
                "saved 1 is on its way to the host");
  for (const int part : {1, 3}) {
    ExpectRefused(Joined(made, Offload(0)), OffloadStart(kSaved, 1, part), "not held");
    ExpectRefused(Joined(made, Offload(0)), PrefetchStart(kSaved, 1, part), "not on the host");
    ExpectRefused(Joined(made, Offload(part)), PrefetchStart(kSaved, 1), "not on the host");
    ExpectRefused(Joined(made, Offload(part)), OffloadStart(kSaved, 1, part), "not held");
    ExpectRefused(Joined(made, {OffloadStart(kSaved, 1, part)}), OffloadStart(kSaved, 1, part),
                  "started already");
    ExpectRefused(made, OffloadWait(kSaved, 1, part), "offload has not started");
    ExpectRefused(made, PrefetchWait(kSaved, 1, part), "prefetch has not started");
    ExpectRefused({}, OffloadStart(kSaved, 1, part), "not held");
  }
}

TEST(PartTransfers, AreOfPartsThatThereAre) {
  const std::string why = "there is no such part";
  const Schedule forwards = {ForwardSave(1), ForwardSave(2)};
  ExpectRefused(forwards, OffloadStart(kSaved, 1, 4), why);
  ExpectRefused(forwards, OffloadStart(kSaved, 2, 1), why);
  ExpectRefused({ForwardNoSave(1)}, OffloadStart(kActivation, 1, 1), why);
  for (Instruction i : {ForwardSave(3), Discard(kSaved, 1), DropSavedKeepOutput(1)}) {
    i.part = 1;
    ExpectRefused(forwards, i, why);
  }
  const absl::Status status = Evaluator(Parts()).Run(Joined({ForwardSave(1)}, Offload(1))).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

TEST(PartTransfers, EveryCopyHasItsWait) {
  // Saved 3 once more where nobody reads it.
  const Schedule begin = {ForwardSave(1), ForwardSave(2), ForwardSave(3),
                          Backward(3),    ForwardSave(3), OffloadStart(kSaved, 3, 1)};
  const Schedule end = {Backward(2), Backward(1)};
  const std::string why = "part 1 of saved 3: the schedule ends before the wait for it";
  EXPECT_EQ(WhyNot(Joined(begin, end)), why);
  const Schedule away = Joined(begin, {OffloadWait(kSaved, 3, 1)});
  EXPECT_TRUE(Evaluator(Instance(Parts(), Link())).Run(Joined(away, end)).ok());
  EXPECT_EQ(WhyNot(Joined(Joined(away, {PrefetchStart(kSaved, 3, 1)}), end)), why);
}

TEST(PartTransfers, HostMemoryBoundsThem) {
  TransferModel link = Link();
  link.host_memory = Bytes(2999);
  const absl::Status status = Evaluator(Instance(Parts(), link))
                                  .Run(Joined(Joined({ForwardSave(1)}, Offload(2)), Offload(1)))
                                  .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot hold 1000 beside 2000"));
}

}  // namespace
}  // namespace stowage

// Which transfers the evaluator refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/schedule/digits_chain.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

struct Refusal {
  Schedule schedule;
  const char* why;
};

// `schedule` without its last instruction is the beginning of a valid one.
void ExpectRefused(const Schedule& schedule, const char* why) {
  const absl::Status status = Evaluator(Instance(Digits(), DigitsLink())).Run(schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction " + std::to_string(schedule.size() - 1) + " "));
}

TEST(TransferRefusals, RefuseATensorThatIsNotWhereTheyNeedIt) {
  const Schedule on_host = {ForwardSave(1), OffloadStart(kSaved, 1), OffloadWait(kSaved, 1)};
  const Schedule leaving = {ForwardSave(1), OffloadStart(kSaved, 1)};
  Schedule coming = on_host;
  coming.push_back(PrefetchStart(kSaved, 1));
  const Refusal refusals[] = {
      {{OffloadStart(kSaved, 1)}, "not held"},
      {{ForwardNoSave(1), OffloadStart(kSaved, 1)}, "not held"},
      {{ForwardSave(1), OffloadStart(kActivation, 1)}, "not held"},
      {{ForwardSave(1), OffloadWait(kSaved, 1)}, "offload has not started"},
      {{ForwardSave(1), PrefetchStart(kSaved, 1)}, "not on the host"},
      {{ForwardSave(1), PrefetchWait(kSaved, 1)}, "prefetch has not started"},
      {{OffloadStart(kSaved, 0)}, "stages are 1 to 3"},
      {{OffloadStart(kActivation, 4)}, "stages are 1 to 3"},
      {{OffloadStart(kActivation, -1)}, "stages are 1 to 3"},
      {{ForwardSave(1), ForwardSave(2), ForwardNoSave(3), OffloadStart(kActivation, 3)},
       "activations that move are 0 to 2"},
  };
  for (const Refusal& r : refusals) ExpectRefused(r.schedule, r.why);

  const auto refused_after = [](Schedule schedule, const Instruction& next, const char* why) {
    schedule.push_back(next);
    ExpectRefused(schedule, why);
  };
  refused_after(leaving, OffloadStart(kSaved, 1), "started already");
  refused_after(leaving, PrefetchStart(kSaved, 1), "not on the host");
  refused_after(leaving, PrefetchWait(kSaved, 1), "prefetch has not started");
  refused_after(on_host, OffloadStart(kSaved, 1), "not held");
  refused_after(on_host, OffloadWait(kSaved, 1), "offload has not started");
  refused_after(on_host, PrefetchWait(kSaved, 1), "prefetch has not started");
  refused_after(coming, OffloadStart(kSaved, 1), "not held");
  refused_after(coming, OffloadWait(kSaved, 1), "offload has not started");
  refused_after(coming, PrefetchStart(kSaved, 1), "not on the host");
  refused_after(coming, Discard(kSaved, 1), "not held");
}

TEST(TransferRefusals, WhatIsAwayIsNotHeld) {
  Schedule away = {ForwardSave(1), OffloadStart(kSaved, 1), OffloadWait(kSaved, 1)};
  for (int coming = 0; coming < 2; ++coming) {
    if (coming == 1) away.push_back(PrefetchStart(kSaved, 1));
    const auto refused = [&away](const Instruction& next, const char* why) {
      Schedule schedule = away;
      schedule.push_back(next);
      ExpectRefused(schedule, why);
    };
    refused(ForwardSave(2), "activation 1, is not held");
    refused(ForwardNoSave(2), "activation 1, is not held");
    refused(ForwardSave(1), "saved 1 is on the host");
    refused(DropSavedKeepOutput(1), "saved tensors are not held");
  }
  // The same for a plain activation.
  Schedule plain = {ForwardNoSave(1), OffloadStart(kActivation, 1), OffloadWait(kActivation, 1)};
  Schedule forward = plain, nothing = plain, again = plain, reduce = plain;
  forward.push_back(ForwardSave(2));
  ExpectRefused(forward, "activation 1, is not held");
  nothing.push_back(ForwardNoSaveFreeInput(2));
  ExpectRefused(nothing, "activation 1, is not held");
  again.push_back(ForwardNoSave(1));
  ExpectRefused(again, "activation 1 is on the host");
  ExpectRefused({ForwardNoSave(1), ForwardNoSave(2), OffloadStart(kActivation, 2),
                 OffloadWait(kActivation, 2), ForwardNoSaveFreeInput(2)},
                "activation 2 is on the host");
  reduce.insert(reduce.end(), {ForwardSave(1), DropSavedKeepOutput(1)});
  ExpectRefused(reduce, "activation 1 is on the host");
  // And for what a backward needs.
  const Schedule forwards = {ForwardSave(1), ForwardSave(2), ForwardSave(3)};
  for (const auto& [stage, why] : {std::pair(3, "its saved tensors are not held"),
                                   std::pair(2, "activation 2, is not held")}) {
    Schedule schedule = forwards;
    schedule.insert(schedule.end(), {OffloadStart(kSaved, stage), OffloadWait(kSaved, stage)});
    schedule.push_back(Backward(3));
    ExpectRefused(schedule, why);
  }
}

TEST(TransferRefusals, NothingDropsWhatLeaves) {
  const Refusal refusals[] = {
      {{ForwardSave(1), OffloadStart(kSaved, 1), Discard(kSaved, 1)},
       "saved 1 is on its way to the host"},
      {{ForwardSave(1), OffloadStart(kSaved, 1), DropSavedKeepOutput(1)},
       "saved 1 is on its way to the host"},
      {{OffloadStart(kActivation, 0), ForwardNoSaveFreeInput(1)},
       "activation 0 is on its way to the host"},
      {{ForwardSave(1), ForwardSave(2), ForwardSave(3), OffloadStart(kSaved, 3), Backward(3)},
       "saved 3 is on its way to the host"},
      {{ForwardSave(1), ForwardSave(2), ForwardNoSave(2), ForwardSave(3),
        OffloadStart(kActivation, 2), Backward(3)},
       "activation 2 is on its way to the host"},
  };
  for (const Refusal& r : refusals) ExpectRefused(r.schedule, r.why);
  // Reading it is fine: saved 2 leaves while backward 3 reads it.
  const absl::StatusOr<Simulation> read =
      Evaluator(Instance(Digits(), DigitsLink()))
          .Run({ForwardSave(1), ForwardSave(2), ForwardSave(3), OffloadStart(kSaved, 2),
                Backward(3), OffloadWait(kSaved, 2), PrefetchStart(kSaved, 2),
                PrefetchWait(kSaved, 2), Backward(2), Backward(1)});
  EXPECT_TRUE(read.ok()) << read.status();
}

TEST(TransferRefusals, EveryCopyHasItsWait) {
  // a^1, made once more where nobody reads it.
  Schedule leaves = StoreAllSchedule(Digits());
  leaves.pop_back();
  leaves.insert(leaves.end(), {ForwardNoSave(1), OffloadStart(kActivation, 1), Backward(1)});
  EXPECT_THAT(
      std::string(Evaluator(Instance(Digits(), DigitsLink())).Run(leaves).status().message()),
      HasSubstr("ends before the wait for activation 1"));
  leaves.push_back(OffloadWait(kActivation, 1));
  EXPECT_TRUE(Evaluator(Instance(Digits(), DigitsLink())).Run(leaves).ok());
  leaves.push_back(PrefetchStart(kActivation, 1));
  EXPECT_THAT(
      std::string(Evaluator(Instance(Digits(), DigitsLink())).Run(leaves).status().message()),
      HasSubstr("ends before the wait for activation 1"));
  leaves.push_back(PrefetchWait(kActivation, 1));
  EXPECT_TRUE(Evaluator(Instance(Digits(), DigitsLink())).Run(leaves).ok());
}

TEST(TransferRefusals, RunOnTheirStreams) {
  Instruction offload = OffloadStart(kActivation, 0);
  for (const Stream wrong : {Stream::kCompute, Stream::kToDevice, Stream::kCommunication}) {
    offload.stream = wrong;
    ExpectRefused({offload}, "runs on the to-host stream only");
  }
  Schedule schedule = {OffloadStart(kActivation, 0), OffloadWait(kActivation, 0)};
  schedule[1].stream = Stream::kToHost;
  ExpectRefused(schedule, "runs on the compute stream only");
  schedule[1].stream = Stream::kCompute;
  schedule.push_back(PrefetchStart(kActivation, 0));
  schedule[2].stream = Stream::kToHost;
  ExpectRefused(schedule, "runs on the to-device stream only");
}

TEST(TransferRefusals, NeedATransferModel) {
  const absl::Status status = Evaluator(Digits()).Run(RoundTrip()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("transfers need a transfer model"));
  TransferModel link = DigitsLink();
  link.to_device.bytes_per_second = 0;
  const auto violation = GetFieldViolation(
      Evaluator(Instance(Digits(), link)).Run(StoreAllSchedule(Digits())).status());
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->field, "transfers.to_device.bytes_per_second");
}

// There and back, `times` times, before the step.
Schedule InputBackAndForth(int times) {
  Schedule schedule;
  for (int i = 0; i < times; ++i) {
    schedule.insert(schedule.end(), {OffloadStart(kActivation, 0), OffloadWait(kActivation, 0),
                                     PrefetchStart(kActivation, 0), PrefetchWait(kActivation, 0)});
  }
  return schedule;
}

TEST(TransferRefusals, RefuseWhatOverflows) {
  ChainSpec spec;
  spec.stages.resize(1);
  spec.input = Bytes(kMaxTotal / 2 - 1);
  const Chain chain = *Chain::Create(spec);
  TransferModel slow = DigitsLink();
  slow.host_memory = Bytes(std::numeric_limits<int64_t>::max());
  slow.to_host.bytes_per_second = 1;
  TransferModel late = slow;
  late.to_host.bytes_per_second = std::numeric_limits<int64_t>::max();
  late.to_host.latency = Nanos(std::numeric_limits<int64_t>::max());
  TransferModel fast = late;
  fast.to_host.latency = Nanos(0);
  fast.to_device = fast.to_host;
  for (const TransferModel& link : {slow, late, fast}) {
    EXPECT_THAT(
        std::string(
            Evaluator(Instance(chain, link)).Run(InputBackAndForth(100)).status().message()),
        HasSubstr("the copies overflow"));
  }
  Schedule once = InputBackAndForth(1);
  const Schedule step = StoreAllSchedule(chain);
  once.insert(once.end(), step.begin(), step.end());
  const absl::StatusOr<Simulation> s = Evaluator(Instance(chain, fast)).Run(once);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->makespan, Nanos(2 * 250000000));
}

}  // namespace
}  // namespace stowage::testing

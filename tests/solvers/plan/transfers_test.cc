// The rules of transfers, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "solvers/model/field_error.h"
#include "solvers/plan/simulate.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

// Two stages and a loss; sizes that are sums of distinct powers of ten. Every forward takes 10 ns,
// every backward 100.
ChainSpec DigitsSpec() {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage s;
  s.forward_time = Nanos(10);
  s.backward_time = Nanos(100);
  s.output = Bytes(10);
  s.saved = Bytes(200);
  spec.stages = {s, s};
  spec.stages[1].output = Bytes(3000);
  spec.stages[1].saved = Bytes(40000);
  spec.loss = s;
  spec.loss.output = Bytes(0);
  spec.loss.saved = Bytes(500000);
  return spec;
}

Chain Digits() { return *Chain::Create(DigitsSpec()); }

// To the host a byte takes 1 ns, to the device 2 ns.
TransferModel Link() {
  TransferModel transfers;
  transfers.to_host.bytes_per_second = 1000000000;
  transfers.to_device.bytes_per_second = 500000000;
  transfers.host_memory = Bytes(1000000);
  return transfers;
}

struct Result {
  Simulation simulation;
  std::vector<TimelinePoint> timeline;
};

Result Replayed(const Schedule& schedule, const TransferModel& transfers = Link()) {
  Result result;
  const absl::StatusOr<Simulation> s = Simulate(Digits(), schedule, transfers, &result.timeline);
  EXPECT_TRUE(s.ok()) << s.status();
  if (s.ok()) result.simulation = *s;
  return result;
}

void ExpectSpan(const TimelinePoint& point, int64_t start, int64_t end) {
  EXPECT_EQ(point.start, Nanos(start));
  EXPECT_EQ(point.end, Nanos(end));
}

Schedule RoundTrip() {
  return {ForwardKeepAll(1), OffloadStart(kSaved, 1), ForwardKeepAll(2), Reduce(2),
          // Saved 1 goes while nothing needs it.
          OffloadWait(kSaved, 1), ForwardKeepAll(3), PrefetchStart(kSaved, 1), Backward(3),
          PrefetchWait(kSaved, 1), ForwardKeepAll(2), Backward(2), Backward(1)};
}

TEST(Transfers, TakeMemoryAndTimeByTheTable) {
  const Result r = Replayed(RoundTrip());
  const std::vector<TimelinePoint>& t = r.timeline;
  ExpectSpan(t[0], 0, 10);
  ExpectSpan(t[1], 10, 210);  // the copy of 200 bytes
  EXPECT_EQ(t[1].held, Bytes(1 + 200));
  EXPECT_EQ(t[1].host, Bytes(200));
  ExpectSpan(t[2], 10, 20);  // beside the copy, reading what leaves
  EXPECT_EQ(t[2].held, Bytes(1 + 200 + 40000));
  EXPECT_EQ(t[3].held, Bytes(1 + 200 + 3000));
  ExpectSpan(t[4], 20, 210);  // the wait
  EXPECT_EQ(t[4].running, Bytes(1 + 200 + 3000));
  EXPECT_EQ(t[4].held, Bytes(1 + 3000));
  EXPECT_EQ(t[4].host, Bytes(200));
  ExpectSpan(t[5], 210, 220);
  EXPECT_EQ(t[5].held, Bytes(1 + 3000 + 500000));
  ExpectSpan(t[6], 220, 620);  // twice as slow
  EXPECT_EQ(t[6].running, Bytes(1 + 3000 + 500000 + 200));
  EXPECT_EQ(t[6].held, Bytes(1 + 3000 + 500000 + 200));
  EXPECT_EQ(t[6].host, Bytes(200));
  ExpectSpan(t[7], 220, 320);
  ExpectSpan(t[8], 320, 620);
  EXPECT_EQ(t[8].held, Bytes(1 + 200));
  EXPECT_EQ(t[8].host, Bytes(0));
  ExpectSpan(t[9], 620, 630);
  ExpectSpan(t[11], 730, 830);
  EXPECT_EQ(r.simulation.makespan, Nanos(830));
  EXPECT_EQ(r.simulation.idle_time, Nanos(190 + 300));
  EXPECT_EQ(r.simulation.recompute_time, Nanos(10));
  EXPECT_EQ(r.simulation.peak, Bytes(1 + 3000 + 500000 + 200));
  EXPECT_EQ(r.simulation.peak_instruction, 6u);
  EXPECT_EQ(r.simulation.host_peak, Bytes(200));
  EXPECT_EQ(r.simulation.sent, Bytes(200));
  EXPECT_EQ(r.simulation.fetched, Bytes(200));
}

// Saved 1 comes back while saved 2 leaves.
Schedule BothWays() {
  return {ForwardKeepAll(1),
          OffloadStart(kSaved, 1),
          OffloadWait(kSaved, 1),
          Discard(kSaved, 1),
          ForwardKeepInput(1),
          ForwardKeepAll(2),
          OffloadStart(kSaved, 2),
          ForwardKeepInput(2),
          OffloadStart(kActivation, 1),
          ForwardKeepAll(3),
          OffloadWait(kSaved, 2),
          PrefetchStart(kSaved, 2),
          Backward(3),
          PrefetchWait(kSaved, 2),
          OffloadWait(kActivation, 1),
          ForwardKeepAll(1),
          Backward(2),
          Backward(1)};
}

TEST(Transfers, ShareOneChannelInHalfDuplexOnly) {
  TransferModel link = Link();
  const Result half = Replayed(BothWays(), link);
  link.full_duplex = true;
  const Result full = Replayed(BothWays(), link);
  // Saved 2 leaves from 230 to 40230, a^1 after it on the same channel to 40240, in both modes.
  for (const Result& r : {half, full}) {
    EXPECT_EQ(r.timeline[2].host, Bytes(200));
    EXPECT_EQ(r.timeline[3].host, Bytes(0));  // discarded there
    ExpectSpan(r.timeline[6], 230, 40230);
    ExpectSpan(r.timeline[8], 40230, 40240);
    ExpectSpan(r.timeline[10], 250, 40230);
  }
  ExpectSpan(half.timeline[11], 40240, 120240);
  ExpectSpan(full.timeline[11], 40230, 120230);
  EXPECT_EQ(half.simulation.makespan, Nanos(120240 + 10 + 200));
  EXPECT_EQ(full.simulation.makespan, Nanos(120230 + 10 + 200));
  EXPECT_EQ(full.simulation.host_peak, Bytes(40010));
  EXPECT_EQ(full.simulation.sent, Bytes(200 + 40000 + 10));
  EXPECT_EQ(full.simulation.fetched, Bytes(40000));
}

TEST(Transfers, HaveALatencyEachWay) {
  TransferModel link = Link();
  link.to_host.latency = Nanos(7);
  link.to_device.latency = Nanos(1000);
  const Result r = Replayed(RoundTrip(), link);
  ExpectSpan(r.timeline[1], 10, 217);
  ExpectSpan(r.timeline[6], 227, 227 + 1400);
}

TEST(Transfers, HostMemoryIsBounded) {
  TransferModel link = Link();
  link.host_memory = Bytes(200);
  Replayed(RoundTrip(), link);
  link.host_memory = Bytes(199);
  const absl::Status status = Simulate(Digits(), RoundTrip(), link).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction 1 (offload-start saved 1): host memory of 199 bytes"));
  // Both at once do not fit; it is free again when the prefetch has ended, not when it starts.
  link.host_memory = Bytes(40199);
  const absl::Status both =
      Simulate(Digits(),
               {ForwardKeepAll(1), OffloadStart(kSaved, 1), ForwardKeepAll(2),
                OffloadWait(kSaved, 1), PrefetchStart(kSaved, 1), OffloadStart(kSaved, 2)},
               link)
          .status();
  EXPECT_THAT(std::string(both.message()), HasSubstr("has no room for 40000 beside 200"));
  link.host_memory = Bytes(40000);
  Replayed({ForwardKeepAll(1), OffloadStart(kSaved, 1), ForwardKeepAll(2), OffloadWait(kSaved, 1),
            PrefetchStart(kSaved, 1), PrefetchWait(kSaved, 1), OffloadStart(kSaved, 2),
            ForwardKeepInput(2), OffloadWait(kSaved, 2), PrefetchStart(kSaved, 2),
            PrefetchWait(kSaved, 2), ForwardKeepAll(3), Backward(3), Backward(2), Backward(1)},
           link);
}

TEST(Transfers, WithoutBytesTakeTheLatency) {
  ChainSpec spec;
  spec.stages.resize(1);
  TransferModel link = Link();
  link.host_memory = Bytes(0);
  link.to_host.latency = Nanos(5);
  const absl::StatusOr<Simulation> s =
      Simulate(*Chain::Create(spec),
               {OffloadStart(kActivation, 0), OffloadWait(kActivation, 0),
                PrefetchStart(kActivation, 0), PrefetchWait(kActivation, 0), ForwardKeepAll(1),
                ForwardKeepAll(2), Backward(2), Backward(1)},
               link);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->makespan, Nanos(5));
}

TEST(Transfers, WhatIsOnTheHostMayStayThere) {
  const Result r = Replayed({ForwardKeepAll(1), ForwardKeepInput(1), OffloadStart(kActivation, 1),
                             ForwardKeepAll(2), ForwardKeepAll(3), OffloadWait(kActivation, 1),
                             Backward(3), Backward(2), Backward(1)});
  EXPECT_EQ(r.timeline.back().host, Bytes(10));
}

struct Refusal {
  Schedule schedule;
  const char* why;
};

// `schedule` without its last instruction is the beginning of a valid one.
void ExpectRefused(const Schedule& schedule, const char* why) {
  const absl::Status status = Simulate(Digits(), schedule, Link()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction " + std::to_string(schedule.size() - 1) + " "));
}

TEST(Transfers, RefuseATensorThatIsNotWhereTheyNeedIt) {
  const Schedule on_host = {ForwardKeepAll(1), OffloadStart(kSaved, 1), OffloadWait(kSaved, 1)};
  const Schedule leaving = {ForwardKeepAll(1), OffloadStart(kSaved, 1)};
  Schedule coming = on_host;
  coming.push_back(PrefetchStart(kSaved, 1));
  const Refusal refusals[] = {
      {{OffloadStart(kSaved, 1)}, "not held"},
      {{ForwardKeepInput(1), OffloadStart(kSaved, 1)}, "not held"},
      {{ForwardKeepAll(1), OffloadStart(kActivation, 1)}, "not held"},
      {{ForwardKeepAll(1), OffloadWait(kSaved, 1)}, "offload has not started"},
      {{ForwardKeepAll(1), PrefetchStart(kSaved, 1)}, "not on the host"},
      {{ForwardKeepAll(1), PrefetchWait(kSaved, 1)}, "prefetch has not started"},
      {{OffloadStart(kSaved, 0)}, "stages are 1 to 3"},
      {{OffloadStart(kActivation, 4)}, "stages are 1 to 3"},
      {{OffloadStart(kActivation, -1)}, "stages are 1 to 3"},
      {{ForwardKeepAll(1), ForwardKeepAll(2), ForwardKeepInput(3), OffloadStart(kActivation, 3)},
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

TEST(Transfers, WhatIsAwayIsNotHeld) {
  Schedule away = {ForwardKeepAll(1), OffloadStart(kSaved, 1), OffloadWait(kSaved, 1)};
  for (int coming = 0; coming < 2; ++coming) {
    if (coming == 1) away.push_back(PrefetchStart(kSaved, 1));
    const auto refused = [&away](const Instruction& next, const char* why) {
      Schedule schedule = away;
      schedule.push_back(next);
      ExpectRefused(schedule, why);
    };
    refused(ForwardKeepAll(2), "activation 1, is not held");
    refused(ForwardKeepInput(2), "activation 1, is not held");
    refused(ForwardKeepAll(1), "saved 1 is on the host");
    refused(Reduce(1), "saved tensors are not held");
  }
  // The same for a plain activation.
  Schedule plain = {ForwardKeepInput(1), OffloadStart(kActivation, 1), OffloadWait(kActivation, 1)};
  Schedule forward = plain, nothing = plain, again = plain, reduce = plain;
  forward.push_back(ForwardKeepAll(2));
  ExpectRefused(forward, "activation 1, is not held");
  nothing.push_back(ForwardKeepNothing(2));
  ExpectRefused(nothing, "activation 1, is not held");
  again.push_back(ForwardKeepInput(1));
  ExpectRefused(again, "activation 1 is on the host");
  ExpectRefused({ForwardKeepInput(1), ForwardKeepInput(2), OffloadStart(kActivation, 2),
                 OffloadWait(kActivation, 2), ForwardKeepNothing(2)},
                "activation 2 is on the host");
  reduce.insert(reduce.end(), {ForwardKeepAll(1), Reduce(1)});
  ExpectRefused(reduce, "activation 1 is on the host");
  // And for what a backward needs.
  const Schedule forwards = {ForwardKeepAll(1), ForwardKeepAll(2), ForwardKeepAll(3)};
  for (const auto& [stage, why] : {std::pair(3, "its saved tensors are not held"),
                                   std::pair(2, "activation 2, is not held")}) {
    Schedule schedule = forwards;
    schedule.insert(schedule.end(), {OffloadStart(kSaved, stage), OffloadWait(kSaved, stage)});
    schedule.push_back(Backward(3));
    ExpectRefused(schedule, why);
  }
}

TEST(Transfers, NothingDropsWhatLeaves) {
  const Refusal refusals[] = {
      {{ForwardKeepAll(1), OffloadStart(kSaved, 1), Discard(kSaved, 1)},
       "saved 1 is on its way to the host"},
      {{ForwardKeepAll(1), OffloadStart(kSaved, 1), Reduce(1)},
       "saved 1 is on its way to the host"},
      {{OffloadStart(kActivation, 0), ForwardKeepNothing(1)},
       "activation 0 is on its way to the host"},
      {{ForwardKeepAll(1), ForwardKeepAll(2), ForwardKeepAll(3), OffloadStart(kSaved, 3),
        Backward(3)},
       "saved 3 is on its way to the host"},
      {{ForwardKeepAll(1), ForwardKeepAll(2), ForwardKeepInput(2), ForwardKeepAll(3),
        OffloadStart(kActivation, 2), Backward(3)},
       "activation 2 is on its way to the host"},
  };
  for (const Refusal& r : refusals) ExpectRefused(r.schedule, r.why);
  // Reading it is fine: saved 2 leaves while backward 3 reads it.
  Replayed({ForwardKeepAll(1), ForwardKeepAll(2), ForwardKeepAll(3), OffloadStart(kSaved, 2),
            Backward(3), OffloadWait(kSaved, 2), PrefetchStart(kSaved, 2), PrefetchWait(kSaved, 2),
            Backward(2), Backward(1)});
}

TEST(Transfers, EveryCopyHasItsWait) {
  // a^1, made once more where nobody reads it.
  Schedule leaves = StoreAllSchedule(Digits());
  leaves.pop_back();
  leaves.insert(leaves.end(), {ForwardKeepInput(1), OffloadStart(kActivation, 1), Backward(1)});
  EXPECT_THAT(std::string(Simulate(Digits(), leaves, Link()).status().message()),
              HasSubstr("ends before the wait for activation 1"));
  leaves.push_back(OffloadWait(kActivation, 1));
  EXPECT_TRUE(Simulate(Digits(), leaves, Link()).ok());
  leaves.push_back(PrefetchStart(kActivation, 1));
  EXPECT_THAT(std::string(Simulate(Digits(), leaves, Link()).status().message()),
              HasSubstr("ends before the wait for activation 1"));
  leaves.push_back(PrefetchWait(kActivation, 1));
  EXPECT_TRUE(Simulate(Digits(), leaves, Link()).ok());
}

TEST(Transfers, RunOnTheirStreams) {
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

TEST(Transfers, NeedATransferModel) {
  const absl::Status status = Simulate(Digits(), RoundTrip()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("transfers need a transfer model"));
  TransferModel link = Link();
  link.to_device.bytes_per_second = 0;
  const auto violation =
      GetFieldViolation(Simulate(Digits(), StoreAllSchedule(Digits()), link).status());
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

TEST(Transfers, RefuseWhatOverflows) {
  ChainSpec spec;
  spec.stages.resize(1);
  spec.input = Bytes(kMaxTotal / 2 - 1);
  const Chain chain = *Chain::Create(spec);
  TransferModel slow = Link();
  slow.host_memory = Bytes(std::numeric_limits<int64_t>::max());
  slow.to_host.bytes_per_second = 1;
  TransferModel late = slow;
  late.to_host.bytes_per_second = std::numeric_limits<int64_t>::max();
  late.to_host.latency = Nanos(std::numeric_limits<int64_t>::max());
  TransferModel fast = late;
  fast.to_host.latency = Nanos(0);
  fast.to_device = fast.to_host;
  for (const TransferModel& link : {slow, late, fast}) {
    EXPECT_THAT(std::string(Simulate(chain, InputBackAndForth(100), link).status().message()),
                HasSubstr("the copies overflow"));
  }
  Schedule once = InputBackAndForth(1);
  const Schedule step = StoreAllSchedule(chain);
  once.insert(once.end(), step.begin(), step.end());
  const absl::StatusOr<Simulation> s = Simulate(chain, once, fast);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->makespan, Nanos(2 * 250000000));
}

}  // namespace
}  // namespace stowage

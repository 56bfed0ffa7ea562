// What transfers take: memory, time and the link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/schedule/digits_chain.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

struct Result {
  Simulation simulation;
  std::vector<TimelinePoint> timeline;
};

Result Replayed(const Schedule& schedule, const TransferModel& transfers = DigitsLink()) {
  Result result;
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(Digits(), transfers)).Run(schedule, &result.timeline);
  EXPECT_TRUE(s.ok()) << s.status();
  if (s.ok()) result.simulation = *s;
  return result;
}

void ExpectSpan(const TimelinePoint& point, int64_t start, int64_t end) {
  EXPECT_EQ(point.start, Nanos(start));
  EXPECT_EQ(point.end, Nanos(end));
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
  EXPECT_EQ(r.simulation.offloaded, Bytes(200));
  EXPECT_EQ(r.simulation.prefetched, Bytes(200));
}

// Saved 1 comes back while saved 2 leaves.
Schedule BothWays() {
  return {ForwardSave(1),
          OffloadStart(kSaved, 1),
          OffloadWait(kSaved, 1),
          Discard(kSaved, 1),
          ForwardNoSave(1),
          ForwardSave(2),
          OffloadStart(kSaved, 2),
          ForwardNoSave(2),
          OffloadStart(kActivation, 1),
          ForwardSave(3),
          OffloadWait(kSaved, 2),
          PrefetchStart(kSaved, 2),
          Backward(3),
          PrefetchWait(kSaved, 2),
          OffloadWait(kActivation, 1),
          ForwardSave(1),
          Backward(2),
          Backward(1)};
}

TEST(Transfers, ShareOneChannelInHalfDuplexOnly) {
  TransferModel link = DigitsLink();
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
  EXPECT_EQ(full.simulation.offloaded, Bytes(200 + 40000 + 10));
  EXPECT_EQ(full.simulation.prefetched, Bytes(40000));
}

TEST(Transfers, HaveALatencyEachWay) {
  TransferModel link = DigitsLink();
  link.to_host.latency = Nanos(7);
  link.to_device.latency = Nanos(1000);
  const Result r = Replayed(RoundTrip(), link);
  ExpectSpan(r.timeline[1], 10, 217);
  ExpectSpan(r.timeline[6], 227, 227 + 1400);
}

TEST(Transfers, HostMemoryIsBounded) {
  TransferModel link = DigitsLink();
  link.host_memory = Bytes(200);
  Replayed(RoundTrip(), link);
  link.host_memory = Bytes(199);
  const absl::Status status = Evaluator(Instance(Digits(), link)).Run(RoundTrip()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction 1 (offload-start saved 1): host memory of 199 bytes"));
  // Both at once do not fit; it is free again when the prefetch has ended, not when it starts.
  link.host_memory = Bytes(40199);
  const absl::Status both =
      Evaluator(Instance(Digits(), link))
          .Run({ForwardSave(1), OffloadStart(kSaved, 1), ForwardSave(2), OffloadWait(kSaved, 1),
                PrefetchStart(kSaved, 1), OffloadStart(kSaved, 2)})
          .status();
  EXPECT_THAT(std::string(both.message()), HasSubstr("cannot hold 40000 beside 200"));
  link.host_memory = Bytes(40000);
  Replayed({ForwardSave(1), OffloadStart(kSaved, 1), ForwardSave(2), OffloadWait(kSaved, 1),
            PrefetchStart(kSaved, 1), PrefetchWait(kSaved, 1), OffloadStart(kSaved, 2),
            ForwardNoSave(2), OffloadWait(kSaved, 2), PrefetchStart(kSaved, 2),
            PrefetchWait(kSaved, 2), ForwardSave(3), Backward(3), Backward(2), Backward(1)},
           link);
}

TEST(Transfers, WithoutBytesTakeTheLatency) {
  ChainSpec spec;
  spec.stages.resize(1);
  TransferModel link = DigitsLink();
  link.host_memory = Bytes(0);
  link.to_host.latency = Nanos(5);
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(*Chain::Create(spec), link))
          .Run({OffloadStart(kActivation, 0), OffloadWait(kActivation, 0),
                PrefetchStart(kActivation, 0), PrefetchWait(kActivation, 0), ForwardSave(1),
                ForwardSave(2), Backward(2), Backward(1)});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->makespan, Nanos(5));
}

TEST(Transfers, WhatIsOnTheHostMayStayThere) {
  const Result r = Replayed({ForwardSave(1), ForwardNoSave(1), OffloadStart(kActivation, 1),
                             ForwardSave(2), ForwardSave(3), OffloadWait(kActivation, 1),
                             Backward(3), Backward(2), Backward(1)});
  EXPECT_EQ(r.timeline.back().host, Bytes(10));
}

}  // namespace
}  // namespace stowage::testing

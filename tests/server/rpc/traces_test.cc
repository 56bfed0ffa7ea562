// Traces of calls, as a collector sees them: from a trainer's step to the solver's thread and the store.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "client/rpc/grpc_connection.h"
#include "proto/otlp/otlp_exporter.h"
#include "tests/proto/trace_sink.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/support/shared_lease.h"

namespace stowage::testing {
namespace {

using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using SinkSpan = TraceSink::Span;

OtlpOptions OptionsFor(const std::string& endpoint, const std::string& service) {
  OtlpOptions options;
  options.endpoint = endpoint;
  options.service_name = service;
  options.gather = std::chrono::milliseconds(1);
  return options;
}

RpcServerOptions Traced(Tracer* tracer, double share = 0) {
  RpcServerOptions options;
  options.tracer = tracer;
  options.trace_share = share;
  return options;
}

class CountingTracer final : public Tracer {
 public:
  void Ended(SpanRecord) override { ++spans; }
  std::atomic<int> spans{0};
};

absl::Status ComputeAs(const std::string& traceparent, const RpcFixture& fixture) {
  GrpcOptions options;
  options.address = fixture.server->address();
  CallOptions call = CallOptions::Within(std::chrono::seconds(20));
  call.traceparent = traceparent;
  return MakeGrpcConnection(options)
      ->ComputePlan(ChainProfile({}), Bytes(kTightBytes), {}, call)
      .status();
}

const SinkSpan* Named(const std::vector<SinkSpan>& spans, const std::string& name) {
  const auto found = std::find_if(spans.begin(), spans.end(),
                                  [&name](const SinkSpan& span) { return span.name() == name; });
  return found == spans.end() ? nullptr : &*found;
}

std::vector<std::string> NamesOf(const std::vector<SinkSpan>& spans) {
  std::vector<std::string> names;
  for (const SinkSpan& span : spans) names.push_back(span.name());
  return names;
}

constexpr char kComputePlan[] = "stowage.v1.PlanService/ComputePlan";

TEST(Traces, OneGoesFromATrainersStepToASolversThreadAndTheStore) {
  TraceSink sink;
  {
    OtlpExporter trainer(OptionsFor(sink.address(), "trainer"));
    OtlpExporter tracer(OptionsFor(sink.address(), "stowaged"));
    SharedLease lease;
    PlanningOptions planning;
    planning.lease = &lease;
    const RpcFixture fixture(false, {}, planning, nullptr, Traced(&tracer));
    const Span step = Span::Root(&trainer, "step", SpanKind::kClient);
    ASSERT_TRUE(ComputeAs(FormatTraceparent(step.context()), fixture).ok());
  }
  const std::vector<SinkSpan> spans = sink.spans();
  ASSERT_THAT(NamesOf(spans), IsSupersetOf({"step", kComputePlan, "store.look", "queue", "lease",
                                            "solve", "store.write"}));
  const SinkSpan& step = *Named(spans, "step");
  const SinkSpan& call = *Named(spans, kComputePlan);
  EXPECT_EQ(call.parent_span_id(), step.span_id());
  EXPECT_EQ(call.kind(), SinkSpan::SPAN_KIND_SERVER);
  for (const SinkSpan& span : spans) {
    EXPECT_EQ(span.trace_id(), step.trace_id()) << span.name();
    EXPECT_LE(span.start_time_unix_nano(), span.end_time_unix_nano()) << span.name();
    if (span.name() == step.name() || span.name() == call.name()) continue;
    EXPECT_EQ(span.parent_span_id(), call.span_id()) << span.name();
  }
  std::vector<std::string> keys;
  for (const auto& attribute : Named(spans, "solve")->attributes()) keys.push_back(attribute.key());
  EXPECT_THAT(keys,
              UnorderedElementsAre("stowage.budget_bytes", "stowage.outcome", "stowage.solver"));
}

TEST(Traces, AHitHasNoSolve) {
  TraceSink sink;
  {
    OtlpExporter tracer(OptionsFor(sink.address(), "stowaged"));
    RpcFixture fixture(false, {}, PlanningOptions(), nullptr, Traced(&tracer));
    v1::ComputePlanResponse computed;
    ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &computed).ok());
    Span step = Span::Root(&tracer, "step", SpanKind::kClient);
    ASSERT_TRUE(ComputeAs(FormatTraceparent(step.context()), fixture).ok());
  }
  EXPECT_THAT(NamesOf(sink.spans()), UnorderedElementsAre("step", kComputePlan, "store.look"));
}

TEST(Traces, WhoJoinsASolveHasALinkToTheCallThatBeganIt) {
  TraceSink sink;
  {
    OtlpExporter tracer(OptionsFor(sink.address(), "stowaged"));
    RpcFixture fixture(/*held=*/true, {}, PlanningOptions(), nullptr, Traced(&tracer));
    const Span first = Span::Root(&tracer, "first", SpanKind::kClient);
    const Span second = Span::Root(&tracer, "second", SpanKind::kClient);
    std::thread leader(
        [&] { EXPECT_TRUE(ComputeAs(FormatTraceparent(first.context()), fixture).ok()); });
    EXPECT_TRUE(fixture.solver.WaitUntilStarted(1));
    std::thread joiner(
        [&] { EXPECT_TRUE(ComputeAs(FormatTraceparent(second.context()), fixture).ok()); });
    while (fixture.metrics.flights_joined == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    fixture.solver.Release();
    leader.join();
    joiner.join();
  }
  const std::vector<SinkSpan> spans = sink.spans();
  const SinkSpan* joined = Named(spans, "solve.joined");
  ASSERT_NE(joined, nullptr);
  const SinkSpan& first = *Named(spans, "first");
  EXPECT_EQ(joined->trace_id(), Named(spans, "second")->trace_id());
  ASSERT_EQ(joined->links_size(), 1);
  EXPECT_EQ(joined->links(0).trace_id(), first.trace_id());
  for (const SinkSpan& span : spans) {
    if (span.span_id() != joined->links(0).span_id()) continue;
    EXPECT_EQ(span.name(), kComputePlan);
    EXPECT_EQ(span.parent_span_id(), first.span_id());
  }
}

TEST(Traces, WhoIsNotSampledIsNotRecorded) {
  CountingTracer tracer;
  const RpcFixture fixture(false, {}, PlanningOptions(), nullptr, Traced(&tracer, 0));
  for (const char* traceparent : {"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
                                  "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"}) {
    EXPECT_TRUE(ComputeAs(traceparent, fixture).ok());
  }
  EXPECT_EQ(tracer.spans, 0);
}

TEST(Traces, AShareOfTheOthersBeginOne) {
  CountingTracer tracer;
  const RpcFixture fixture(false, {}, PlanningOptions(), nullptr, Traced(&tracer, 1));
  ASSERT_TRUE(ComputeAs("", fixture).ok());
  EXPECT_GT(tracer.spans, 0);
  const int before = tracer.spans;
  // Its caller has decided.
  ASSERT_TRUE(ComputeAs("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", fixture).ok());
  EXPECT_EQ(tracer.spans, before);
}

TEST(Traces, OfAServerThatTracesNothingThereAreNone) {
  TraceSink sink;
  OtlpExporter trainer(OptionsFor(sink.address(), "trainer"));
  const RpcFixture fixture;
  Span step = Span::Root(&trainer, "step", SpanKind::kClient);
  ASSERT_TRUE(ComputeAs(FormatTraceparent(step.context()), fixture).ok());
  step.End();
  ASSERT_TRUE(sink.WaitForSpans(1));
  EXPECT_THAT(NamesOf(sink.spans()), UnorderedElementsAre("step"));
}

// With a collector that takes a message and never answers, and with none at all.
TEST(Traces, CallsDoNotWaitForTheCollector) {
  TraceSink hangs(/*held=*/true);
  for (const std::string& endpoint : {hangs.address(), NewSinkAddress()}) {
    OtlpOptions options = OptionsFor(endpoint, "stowaged");
    options.queue_limit = 4;
    options.timeout = std::chrono::minutes(1);
    std::atomic<int64_t> dropped{0};
    options.dropped = [&dropped](int64_t spans) { dropped += spans; };
    {
      OtlpExporter tracer(options);
      const RpcFixture fixture(false, {}, PlanningOptions(), nullptr, Traced(&tracer, 1));
      ASSERT_TRUE(ComputeAs("", fixture).ok());
      if (endpoint == hangs.address()) {
        ASSERT_TRUE(hangs.WaitForMessages(1));
      }
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(ComputeAs("", fixture).ok());
      hangs.Release();
    }
    EXPECT_GT(dropped, 0) << endpoint;
  }
}

}  // namespace
}  // namespace stowage::testing

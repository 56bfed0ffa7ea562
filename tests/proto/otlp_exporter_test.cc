#include "proto/otlp/otlp_exporter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/client/rpc/test_certificates.h"
#include "tests/proto/trace_sink.h"

namespace stowage::testing {
namespace {

OtlpOptions OptionsFor(const std::string& endpoint) {
  OtlpOptions options;
  options.endpoint = endpoint;
  options.service_name = "trainer";
  options.service_version = "1.2.3";
  options.gather = std::chrono::milliseconds(1);
  return options;
}

TEST(OtlpExporter, ASpanArrivesAsItIs) {
  TraceSink sink;
  OtlpExporter exporter(OptionsFor(sink.address()));
  Span root = Span::Root(&exporter, "step", SpanKind::kClient);
  const TraceContext context = root.context();
  root.Add("text", "a");
  root.Add("number", int64_t{-3});
  root.Fail("no memory");
  root.End();
  ASSERT_TRUE(sink.WaitForSpans(1));
  const TraceSink::Span span = sink.spans()[0];
  EXPECT_EQ(sink.service(), "trainer");
  EXPECT_EQ(span.trace_id(), std::string(context.trace_id.begin(), context.trace_id.end()));
  EXPECT_EQ(span.span_id(), std::string(context.span_id.begin(), context.span_id.end()));
  EXPECT_EQ(span.parent_span_id(), "");
  EXPECT_EQ(span.name(), "step");
  EXPECT_EQ(span.kind(), TraceSink::Span::SPAN_KIND_CLIENT);
  EXPECT_LE(span.start_time_unix_nano(), span.end_time_unix_nano());
  ASSERT_EQ(span.attributes_size(), 2);
  EXPECT_EQ(span.attributes(0).value().string_value(), "a");
  EXPECT_EQ(span.attributes(1).value().int_value(), -3);
  EXPECT_EQ(span.status().code(), opentelemetry::proto::trace::v1::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(span.status().message(), "no memory");
}

TEST(OtlpExporter, SpansOfManyThreadsArriveOnceInBatches) {
  TraceSink sink;
  OtlpOptions options = OptionsFor(sink.address());
  options.gather = std::chrono::minutes(1);  // only a full batch is sent before the end
  options.batch_limit = 100;
  {
    OtlpExporter exporter(options);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&exporter] {
        for (int j = 0; j < 250; ++j) Span::Root(&exporter, "step", SpanKind::kInternal).End();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(sink.spans().size(), 1000u);
  EXPECT_GE(sink.messages(), 10);
}

TEST(OtlpExporter, WhatACollectorThatHangsLeavesIsDroppedAndCounted) {
  TraceSink sink(/*held=*/true);
  OtlpOptions options = OptionsFor(sink.address());
  options.timeout = std::chrono::minutes(1);
  options.queue_limit = 5;
  std::atomic<int64_t> told{0};
  options.dropped = [&told](int64_t spans) { told += spans; };
  OtlpExporter exporter(options);
  Span::Root(&exporter, "taken", SpanKind::kInternal).End();
  ASSERT_TRUE(sink.WaitForMessages(1));
  // Nobody takes from the queue now.
  for (int i = 0; i < 20; ++i) Span::Root(&exporter, "step", SpanKind::kInternal).End();
  EXPECT_EQ(exporter.dropped(), 15);
  EXPECT_EQ(told, 15);
  sink.Release();
  EXPECT_TRUE(sink.WaitForSpans(6));
}

TEST(OtlpExporter, ACollectorThatIsAwayCostsItsSpansAlone) {
  std::atomic<int64_t> dropped{0};
  OtlpOptions options = OptionsFor(NewSinkAddress());
  options.dropped = [&dropped](int64_t spans) { dropped += spans; };
  {
    OtlpExporter exporter(options);
    for (int i = 0; i < 3; ++i) Span::Root(&exporter, "step", SpanKind::kInternal).End();
  }
  EXPECT_EQ(dropped, 3);
}

TEST(OtlpExporter, LinksArrive) {
  TraceSink sink;
  OtlpExporter exporter(OptionsFor(sink.address()));
  const Span other = Span::Root(&exporter, "other", SpanKind::kInternal);
  Span joined = Span::Root(&exporter, "joined", SpanKind::kInternal);
  joined.Link(other.context());
  joined.End();
  ASSERT_TRUE(sink.WaitForSpans(1));
  const TraceSink::Span span = sink.spans()[0];
  ASSERT_EQ(span.links_size(), 1);
  const TraceContext& context = other.context();
  EXPECT_EQ(span.links(0).trace_id(),
            std::string(context.trace_id.begin(), context.trace_id.end()));
  EXPECT_EQ(span.links(0).span_id(), std::string(context.span_id.begin(), context.span_id.end()));
}

TEST(OtlpExporter, WithTlsACollectorIsTrustedByItsAuthorityAlone) {
  const TestAuthority authority("collectors"), foreign("foreign");
  TraceSink sink(TlsServer(authority.Issue("DNS:localhost,IP:127.0.0.1")));
  for (const TestAuthority* trusted : {&foreign, &authority}) {
    OtlpOptions options = OptionsFor("https://" + sink.address());
    options.root_certificates = trusted->cert();
    OtlpExporter exporter(options);
    Span::Root(&exporter, "step", SpanKind::kInternal).End();
    if (trusted == &authority) {
      EXPECT_TRUE(sink.WaitForSpans(1));
    }
  }
  EXPECT_EQ(sink.spans().size(), 1u);
}

TEST(OtlpEndpoint, IsWhatGrpcConnectsTo) {
  struct Case {
    const char* text;
    const char* target;
    bool tls;
  };
  for (const Case& c :
       {Case{"collector:4317", "collector:4317", false},
        Case{"http://collector:4317", "collector:4317", false},
        Case{"http://collector:4317/", "collector:4317", false},
        Case{"https://collector:4317/v1", "collector:4317", true},
        Case{"unix:/run/otlp.sock", "unix:/run/otlp.sock", false}, Case{"", "", false}}) {
    const OtlpEndpoint endpoint = ParseOtlpEndpoint(c.text);
    EXPECT_EQ(endpoint.target, c.target) << c.text;
    EXPECT_EQ(endpoint.tls, c.tls) << c.text;
  }
}

}  // namespace
}  // namespace stowage::testing

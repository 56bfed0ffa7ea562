#include "solvers/base/tracer.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace stowage {
namespace {

class KeepingTracer final : public Tracer {
 public:
  void Ended(SpanRecord span) override { spans.push_back(std::move(span)); }
  std::vector<SpanRecord> spans;
};

TEST(Span, OfNoTracerDoesNothing) {
  const TraceScope none;
  Span span = none.Start("solve");
  EXPECT_FALSE(span.recording());
  span.Add("key", "value");
  span.Fail("error");
  span.End();
  EXPECT_EQ(none.StartShared("queue"), nullptr);
  EXPECT_FALSE(Span::Root(nullptr, "step", SpanKind::kClient).recording());
}

TEST(Span, BelowOneThatIsNotSampledIsNotRecorded) {
  KeepingTracer tracer;
  const TraceContext parent{NewTraceId(), NewSpanId(), false};
  EXPECT_FALSE(Span(&tracer, parent, "solve", SpanKind::kInternal).recording());
  EXPECT_TRUE(tracer.spans.empty());
}

TEST(Span, IsToldOnceWithWhatWasAdded) {
  KeepingTracer tracer;
  Span root = Span::Root(&tracer, "step", SpanKind::kClient);
  const TraceContext context = root.context();
  {
    Span below = TraceScope{&tracer, context}.Start("solve");
    below.Add("solver", "optimal");
    below.Add("budget", int64_t{7});
    below.Fail("no memory");
    Span moved = std::move(below);
    moved.End();
  }
  root.End();
  ASSERT_EQ(tracer.spans.size(), 2u);
  const SpanRecord& below = tracer.spans[0];
  EXPECT_EQ(below.name, "solve");
  EXPECT_EQ(below.context.trace_id, context.trace_id);
  EXPECT_EQ(below.parent, context.span_id);
  EXPECT_NE(below.context.span_id, context.span_id);
  EXPECT_LE(below.start_unix_ns, below.end_unix_ns);
  ASSERT_EQ(below.attributes.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(below.attributes[1].second), 7);
  EXPECT_TRUE(below.failed);
  EXPECT_EQ(tracer.spans[1].parent, SpanId{});
  EXPECT_FALSE(tracer.spans[1].failed);
}

TEST(Span, OneThatIsReplacedEnds) {
  KeepingTracer tracer;
  Span span = Span::Root(&tracer, "first", SpanKind::kInternal);
  span = Span::Root(&tracer, "second", SpanKind::kInternal);
  ASSERT_EQ(tracer.spans.size(), 1u);
  EXPECT_EQ(tracer.spans[0].name, "first");
}

}  // namespace
}  // namespace stowage

#include "solvers/base/trace_context.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>
#include <string>

namespace stowage {
namespace {

const std::string kSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Traceparent, IsReadAndWritten) {
  const auto context = ParseTraceparent(kSampled);
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->trace_id[0], 0x4b);
  EXPECT_EQ(context->trace_id[15], 0x36);
  EXPECT_EQ(context->span_id[1], 0xf0);
  EXPECT_EQ(ToHex(context->trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(FormatTraceparent(*context), kSampled);
}

TEST(Traceparent, OtherFlagsAreNotLookedAt) {
  const std::string ids = kSampled.substr(0, 53);
  for (const auto& [flags, sampled] : {std::pair("00", false), {"02", false}, {"03", true}}) {
    const auto context = ParseTraceparent(ids + flags);
    ASSERT_TRUE(context) << flags;
    EXPECT_EQ(context->sampled, sampled) << flags;
  }
}

TEST(Traceparent, OfALaterVersionWhatThisOneHasIsRead) {
  const std::string later = "cc" + kSampled.substr(2);
  EXPECT_TRUE(ParseTraceparent(later));
  EXPECT_TRUE(ParseTraceparent(later + "-what-the-future-has"));
  EXPECT_FALSE(ParseTraceparent(later + "."));
}

TEST(Traceparent, WhatIsMalformedIsNone) {
  for (const std::string& bad :
       {std::string(), std::string("00"), kSampled.substr(0, 54), kSampled + "-", kSampled + "0",
        "ff" + kSampled.substr(2), "0x" + kSampled.substr(2), " " + kSampled, kSampled + " ",
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g")}) {
    EXPECT_FALSE(ParseTraceparent(bad)) << bad;
  }
}

TEST(Traceparent, OneByteThatIsNoDigitOrDashMakesItNone) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text = kSampled;
    const size_t at = random() % text.size();
    const char byte = static_cast<char>(random());
    const bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
    if ((text[at] == '-') ? byte == '-' : digit) continue;
    text[at] = byte;
    EXPECT_FALSE(ParseTraceparent(text)) << text;
  }
}

TEST(TraceIds, AreNewEachTimeAndReadBack) {
  std::set<TraceId> traces;
  for (int i = 0; i < 1000; ++i) {
    const TraceContext context{NewTraceId(), NewSpanId(), i % 2 == 0};
    EXPECT_TRUE(traces.insert(context.trace_id).second);
    const auto read = ParseTraceparent(FormatTraceparent(context));
    ASSERT_TRUE(read);
    EXPECT_TRUE(*read == context);
  }
}

TEST(TraceIds, TheShareThatIsSampledGrowsWithTheShareAskedFor) {
  TraceId low{}, high{};
  low[0] = high[0] = 1;
  for (size_t i = 9; i < high.size(); ++i) high[i] = 0xff;
  EXPECT_FALSE(IsSampled(low, 0));
  EXPECT_TRUE(IsSampled(low, 1e-9));
  EXPECT_FALSE(IsSampled(high, 0.999));
  EXPECT_TRUE(IsSampled(high, 1));
}

}  // namespace
}  // namespace stowage

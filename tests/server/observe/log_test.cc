// Lines, levels, floods and a sink that hangs.
#include "server/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <thread>
#include <vector>

namespace stowage {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(LogLine, IsOneJsonObject) {
  LogLine line(LogLevel::kWarning, "event_name");
  line.Add("text", std::string("a")).Add("count", int64_t{-7}).Add("ms", 1.5);
  EXPECT_THAT(line.Text(),
              MatchesRegex("\\{\"time\":\"20[0-9-]*T[0-9:]*\\.[0-9][0-9][0-9]Z\",\"level\":"
                           "\"warning\",\"event\":\"event_name\",\"text\":\"a\",\"count\":-7,"
                           "\"ms\":1.5\\}\n"));
}

TEST(LogLine, NoValueEndsTheLineOrReachesATerminal) {
  LogLine line(LogLevel::kInfo, "e");
  line.Add("v", std::string("q\" b\\ n\n e\x1b[0m \xc3\xa9 \x7f") + '\0');
  EXPECT_THAT(line.Text(),
              EndsWith("\"v\":\"q\\\" b\\\\ n\\u000a e\\u001b[0m \\u00e9 \\u007f\\u0000\"}\n"));
}

TEST(LogLine, WhatIsNoNumberIsNull) {
  LogLine line(LogLevel::kInfo, "e");
  line.Add("a", std::nan("")).Add("b", -HUGE_VAL).Add("c", 0.25);
  EXPECT_THAT(line.Text(), EndsWith("\"a\":null,\"b\":null,\"c\":0.25}\n"));
}

TEST(LogLevel, HasANameEach) {
  for (int i = 0; i < kLogLevelCount; ++i) {
    const LogLevel level = static_cast<LogLevel>(i);
    EXPECT_EQ(ParseLogLevel(ToString(level)), level);
  }
  EXPECT_EQ(ParseLogLevel("loud"), std::nullopt);
}

TEST(Log, WritesInOrderFromItsLevelOnAndAllOfItAtItsEnd) {
  std::vector<std::string> lines;
  {
    Log log(LogLevel::kInfo, [&lines](const std::string& text) { lines.push_back(text); });
    log.Write(LogLevel::kDebug, "unseen", [](LogLine*) { ADD_FAILURE() << "filled for nothing"; });
    log.Write(LogLevel::kInfo, "first", [](LogLine* line) { line->Add("n", int64_t{1}); });
    log.Write(LogLevel::kError, "second");
  }
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("\"event\":\"first\",\"n\":1}"));
  EXPECT_THAT(lines[1], HasSubstr("\"event\":\"second\"}"));
}

TEST(LogLimiter, AFloodOfOneEventIsKeptBackAndTold) {
  LogLimiter limiter(10);
  LogLimiter::Clock::time_point now{};
  const auto flood = [&] { return limiter.Admit(LogLevel::kInfo, "flood", 0, now); };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(flood(), 0);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(flood());
  // Other events, levels and kinds are not held up by it, nor told how many it has lost.
  EXPECT_EQ(limiter.Admit(LogLevel::kError, "flood", 0, now), 0);
  EXPECT_EQ(limiter.Admit(LogLevel::kInfo, "other", 0, now), 0);
  EXPECT_EQ(limiter.Admit(LogLevel::kInfo, "flood", 3, now), 0);
  now += milliseconds(150);
  EXPECT_EQ(flood(), 5);
  EXPECT_FALSE(flood());
  now += std::chrono::hours(1);
  EXPECT_EQ(flood(), 1);
}

// However many write at once, so many pass and each of the others is told of once.
TEST(LogLimiter, ThreadsTogetherPassWhatOneWould) {
  LogLimiter limiter(10);
  const LogLimiter::Clock::time_point now{};
  std::atomic<int> passed{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        if (limiter.Admit(LogLevel::kInfo, "flood", 0, now)) ++passed;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(passed, 10);
  EXPECT_EQ(limiter.Admit(LogLevel::kInfo, "flood", 0, now + milliseconds(100)), 3990);
}

TEST(Log, ASinkThatHangsMakesNobodyWaitAndLossesAreTold) {
  std::vector<std::string> lines;
  std::atomic<int64_t> written{0}, dropped{0};
  std::promise<void> release;
  std::shared_future<void> released(release.get_future());
  // Of one name the limiter passes a hundred: many names fill the queue.
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back("event" + std::to_string(i));
  {
    const auto sink = [&](const std::string& text) {
      released.wait();
      lines.push_back(text);
      ++written;
    };
    Log log(LogLevel::kInfo, sink, [&dropped](int64_t lost) { dropped += lost; });
    for (const std::string& name : names) {
      for (int i = 0; i < 100; ++i) log.Write(LogLevel::kInfo, name.c_str());
    }
    release.set_value();
    // Once there is room again, the next line tells.
    while (written < 2) std::this_thread::yield();  // then the second has left the queue
    log.Write(LogLevel::kError, "after");
  }
  const size_t fits = Log::kMostQueued;
  EXPECT_GE(lines.size(), fits);
  int64_t told = 0;
  for (const std::string& line : lines) {
    const size_t at = line.find("\"dropped\":");
    if (at != std::string::npos) told += std::stoll(line.substr(at + 10));
  }
  EXPECT_GE(told, 5000 - static_cast<int64_t>(fits) - 1);
  EXPECT_EQ(dropped, 5001 - static_cast<int64_t>(lines.size()));
}

TEST(Log, WhatIsKeptBackIsNotDropped) {
  std::atomic<int64_t> written{0}, dropped{0};
  {
    Log log(
        LogLevel::kInfo, [&written](const std::string&) { ++written; },
        [&dropped](int64_t lost) { dropped += lost; });
    for (int i = 0; i < 1000; ++i) log.Write(LogLevel::kInfo, "flood");
    log.Write(LogLevel::kDebug, "below the level");
  }
  EXPECT_LT(written, 1000);
  EXPECT_EQ(dropped, 0);
}

TEST(Log, AFloodOfOneKindHidesNoLineOfAnother) {
  int flood = 0, rare = 0;
  {
    Log log(LogLevel::kInfo, [&](const std::string& text) {
      ++(text.find("rare") == std::string::npos ? flood : rare);
    });
    const auto fill = [](LogLine* line) { line->Add("which", std::string("rare")); };
    for (int i = 0; i < 1000; ++i) log.Write(LogLevel::kInfo, "rpc");
    for (int i = 0; i < 5; ++i) log.Write(LogLevel::kInfo, "rpc", fill, 3);
  }
  EXPECT_LT(flood, 1000);
  EXPECT_EQ(rare, 5);
}

}  // namespace
}  // namespace stowage

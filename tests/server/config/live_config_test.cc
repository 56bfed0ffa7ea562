// What of the configuration's file holds without a restart, and that a file that is wrong changes nothing.
#include "server/config/live_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "server/config/config_flags.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LiveConfigTest : public ::testing::Test {
 protected:
  // Starts with this file and these arguments.
  void Start(const std::string& text, std::vector<std::string> arguments = {}) {
    Write(text);
    arguments.push_back("--config=" + path_);
    const absl::StatusOr<CommandLine> line = ReadCommandLine(arguments, FlagNames());
    ASSERT_TRUE(line.ok()) << line.status();
    line_ = *line;
    const absl::StatusOr<ConfigSources> sources = ConfigSources::Apply(line_, NoVariables);
    ASSERT_TRUE(sources.ok()) << sources.status();
    sources_ = *sources;
    ASSERT_TRUE(ConfigFromFlags(*sources).ok());
  }

  void Write(const std::string& text) { std::ofstream(path_) << text; }

  absl::StatusOr<LiveChange> Again() { return ReadAgain(line_, NoVariables); }

  static std::optional<std::string> NoVariables(const std::string&) { return std::nullopt; }

  absl::FlagSaver saver_;
  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/stowaged.conf";
  CommandLine line_;
  std::optional<ConfigSources> sources_;
};

TEST_F(LiveConfigTest, LevelAndLimitsOfTheFileHold) {
  Start("queue_limit = 5\n");
  Write("log_level = debug\nmax_open_calls = 7\ntenant_share = 0.25\n");
  const auto change = Again();
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->config.log_level, LogLevel::kDebug);
  EXPECT_EQ(change->config.limits.max_open_calls, 7);
  EXPECT_EQ(change->config.limits.share.of_each, 0.25);
  EXPECT_EQ(change->config.limits.queue_limit, 256u) << "the default, where the file has none";
  EXPECT_THAT(change->need_restart, IsEmpty());
}

TEST_F(LiveConfigTest, TheCommandLineGoesBeforeTheFile) {
  Start("queue_limit = 5\n", {"--max_open_calls=9"});
  Write("queue_limit = 6\nmax_open_calls = 7\n");
  const auto change = Again();
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->config.limits.queue_limit, 6u);
  EXPECT_EQ(change->config.limits.max_open_calls, 9);
}

TEST_F(LiveConfigTest, WhatElseChangesWaitsForAStart) {
  Start("queue_limit = 5\ncache_bytes = 2097152\n");
  Write("queue_limit = 6\ncache_bytes = 4194304\nmax_stages = 77\n");
  for (int i = 0; i < 2; ++i) {
    const auto change = Again();
    ASSERT_TRUE(change.ok()) << change.status();
    EXPECT_EQ(change->config.limits.queue_limit, 6u);
    EXPECT_THAT(change->need_restart, ElementsAre("cache_bytes", "max_stages"));
    EXPECT_EQ(absl::GetFlag(FLAGS_cache_bytes), 2097152);
  }
}

TEST_F(LiveConfigTest, AFileThatNoServerWouldStartWithChangesNothing) {
  Start("queue_limit = 5\nlog_level = error\n");
  for (const char* text :
       {"queue_limit = 6\nno_such_name = 1\n", "queue_limit = 6\nlog_level = loud\n",
        "queue_limit = 0\n", "queue_limit = 6\ntls_cert = /no/such/file\n"}) {
    Write(text);
    const auto change = Again();
    EXPECT_TRUE(absl::IsInvalidArgument(change.status())) << text << change.status();
    EXPECT_EQ(absl::GetFlag(FLAGS_queue_limit), 5) << text;
    EXPECT_EQ(LiveConfigFromFlags().log_level, LogLevel::kError) << text;
  }
}

TEST_F(LiveConfigTest, AChangeIsSeenAndARefusalLogged) {
  Start("queue_limit = 5\n", {"--reload_interval=1s"});
  std::mutex mutex;
  std::condition_variable heard;
  std::optional<size_t> limit;
  std::string lines;
  Log log(LogLevel::kInfo, [&](const std::string& text) {
    std::lock_guard<std::mutex> lock(mutex);
    lines += text;
    heard.notify_all();
  });
  NoMetrics metrics;
  const auto watcher = WatchConfig(
      line_, *sources_,
      [&](const LiveConfig& now) {
        std::lock_guard<std::mutex> lock(mutex);
        limit = now.limits.queue_limit;
        heard.notify_all();
      },
      &metrics, &log);
  ASSERT_NE(watcher, nullptr);
  const auto wait_until = [&](const auto& holds) {
    std::unique_lock<std::mutex> lock(mutex);
    return heard.wait_for(lock, std::chrono::seconds(30), holds);
  };
  // Renamed into its place, as files are that others read.
  std::ofstream(path_ + ".new") << "queue_limit = 6\nmax_stages = 77\n";
  std::rename((path_ + ".new").c_str(), path_.c_str());
  EXPECT_TRUE(wait_until([&] { return limit == 6u; }));
  EXPECT_TRUE(wait_until([&] { return lines.find("restart_needed") != std::string::npos; }));
  {
    std::lock_guard<std::mutex> lock(mutex);
    EXPECT_THAT(lines, HasSubstr("\"flags\":\"max_stages\""));
  }
  std::ofstream(path_ + ".new") << "queue_limit = none\n";
  std::rename((path_ + ".new").c_str(), path_.c_str());
  EXPECT_TRUE(wait_until([&] { return lines.find("file_refused") != std::string::npos; }));
  std::lock_guard<std::mutex> lock(mutex);
  EXPECT_EQ(limit, 6u);
}

TEST_F(LiveConfigTest, WithoutAFileNothingIsWatched) {
  NoMetrics metrics;
  const auto sources = ConfigSources::Apply(CommandLine(), NoVariables);
  ASSERT_TRUE(sources.ok());
  EXPECT_EQ(WatchConfig(
                CommandLine(), *sources, [](const LiveConfig&) {}, &metrics, nullptr),
            nullptr);
}

}  // namespace
}  // namespace stowage::testing

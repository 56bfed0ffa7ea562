#include "server/observe/audit_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class AuditLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "stowage_audit_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    options_.path = path_;
    Remove();
  }
  void TearDown() override { Remove(); }
  // Only what this test has made, wherever a link there points.
  void Remove() {
    std::remove(path_.c_str());
    for (const char* end : {".1", ".changes", ".changes.1"}) std::remove((path_ + end).c_str());
  }
  std::unique_ptr<AuditLog> Open() { return *AuditLog::Open(options_); }

  std::string path_;
  AuditOptions options_;
};

AuditEvent Event(const std::string& job) {
  AuditEvent event;
  event.action = "hand_out";
  event.job = job;
  event.tenant = "team-a";
  event.budget = Bytes(1500);
  event.revision = 2;
  event.plan_digest = Sha256("plan");
  event.source = "cache";
  return event;
}

// Without the time, which differs.
std::string Rest(const std::string& line) { return line.substr(line.find("\"event\"")); }

TEST(AuditLine, HoldsWhatThereIs) {
  AuditEvent event = Event("job");
  event.key.digest = Sha256("key");
  EXPECT_EQ(Rest(ToJsonLine(event)),
            "\"event\":\"hand_out\",\"tenant\":\"team-a\",\"job\":\"job\",\"key\":\"" +
                Sha256("key").ToHex() +
                "\",\"budget_bytes\":1500,\"revision\":2,\"plan_digest\":\"" +
                Sha256("plan").ToHex() + "\",\"source\":\"cache\"}\n");
}

TEST(AuditLine, NothingThatACallerSaysBreaksIt) {
  const std::string line = ToJsonLine(Event("a\"b\nd\xff\x01"));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  for (const char c : line) EXPECT_GE(c, c == '\n' ? '\n' : ' ');
}

TEST_F(AuditLogTest, HoldsWhatWasAddedAndAppends) {
  for (const std::string run : {"first", "second"}) {
    const auto log = Open();
    for (int i = 0; i < 100; ++i) log->Add(Event(run));
    EXPECT_EQ(log->dropped(), 0);
  }
  const auto lines = LinesOf(options_.path);
  ASSERT_EQ(lines.size(), 200u);
  EXPECT_EQ(Rest(lines[0]) + "\n", Rest(ToJsonLine(Event("first"))));
  EXPECT_EQ(Rest(lines[199]) + "\n", Rest(ToJsonLine(Event("second"))));
}

TEST_F(AuditLogTest, IsBoundedInSize) {
  const size_t line = ToJsonLine(Event("job 1000")).size();
  options_.most_bytes = 10 * line;
  {
    const auto log = Open();
    for (int i = 1000; i < 1095; ++i) log->Add(Event("job " + std::to_string(i)));
  }
  const auto now = LinesOf(options_.path), before = LinesOf(options_.path + ".1");
  ASSERT_EQ(before.size(), 10u);
  ASSERT_EQ(now.size(), 5u);
  EXPECT_NE(now[4].find("job 1094"), std::string::npos);
  EXPECT_NE(before[0].find("job 1080"), std::string::npos);
}

TEST_F(AuditLogTest, DropsAndCountsWhatItCannotWrite) {
  ASSERT_EQ(symlink("/dev/full", path_.c_str()), 0);
  CountingMetrics metrics;
  options_.metrics = &metrics;
  const auto log = Open();
  log->Add(Event("job"));
  while (log->dropped() == 0) std::this_thread::yield();
  EXPECT_GE(log->dropped(), 1);
  EXPECT_GE(metrics.lines_dropped[static_cast<size_t>(LineFile::kAudit)], 1);
}

TEST_F(AuditLogTest, DropsAndCountsWhatIsTooMuch) {
  options_.queue_limit = 2;
  int64_t dropped = 0;
  constexpr int kLines = 20000;
  {
    const auto log = Open();
    for (int i = 0; i < kLines; ++i) log->Add(Event("job"));
    log->Add(Event("last"));
    dropped = log->dropped();
  }
  EXPECT_GT(dropped, 0);
  int64_t written = 0;
  for (const std::string& line : LinesOf(options_.path)) {
    if (line.find("lines_dropped") == std::string::npos) ++written;
  }
  EXPECT_EQ(written + dropped, kLines + 1);
}

TEST_F(AuditLogTest, ChangesAreNotDroppedForHandOutsNorRotatedAway) {
  options_.queue_limit = 100;
  options_.most_bytes = size_t{64} << 10;
  AuditEvent pin = Event("pin");
  pin.action = "pin";
  pin.change = true;
  {
    const auto log = Open();
    for (int i = 0; i < 50; ++i) {
      for (int k = 0; k < 2000; ++k) log->Add(Event("job"));
      log->Add(pin);
    }
    EXPECT_GT(log->dropped(), 0);
  }
  const auto changes = LinesOf(path_ + ".changes");
  ASSERT_EQ(changes.size(), 50u);
  for (const std::string& line : changes) EXPECT_EQ(Rest(line) + "\n", Rest(ToJsonLine(pin)));
}

TEST_F(AuditLogTest, SaysWhyItCannotBeOpened) {
  options_.path = "/nowhere/at/all";
  const absl::Status status = AuditLog::Open(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace stowage::testing

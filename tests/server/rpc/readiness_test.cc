// When a full queue makes a server unready, and when it is ready again.
#include "server/rpc/readiness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace stowage {
namespace {

using std::chrono::milliseconds;

TEST(ReadinessRule, FollowsAQueueThatIsFullOrNotForASecond) {
  ReadinessRule rule;
  const ReadinessRule::Clock::time_point start{};
  const auto at = [&](int ms, bool full) { return rule.Next(full, start + milliseconds(ms)); };
  EXPECT_TRUE(at(0, false));
  EXPECT_TRUE(at(100, true));
  EXPECT_TRUE(at(1000, true));
  EXPECT_FALSE(at(1100, true));
  EXPECT_FALSE(at(1200, false));
  EXPECT_FALSE(at(2100, true));  // room for less than a second
  EXPECT_FALSE(at(2300, false));
  EXPECT_FALSE(at(3200, false));
  EXPECT_TRUE(at(3300, false));
  // Full again and again, but never for a second.
  for (int ms = 3400; ms < 9000; ms += 200) {
    EXPECT_TRUE(at(ms, true));
    EXPECT_TRUE(at(ms + 100, false));
  }
}

TEST(ReadinessWatch, TellsChangesUntilItIsStopped) {
  std::atomic<bool> full{true};
  std::vector<bool> told;
  ReadinessWatch watch([&] { return full.load(); }, [&](bool ready) { told.push_back(ready); });
  std::this_thread::sleep_for(milliseconds(1500));
  watch.Stop();
  EXPECT_EQ(told, std::vector<bool>{false});
  watch.Stop();
}

}  // namespace
}  // namespace stowage

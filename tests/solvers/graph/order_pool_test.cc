#include "solvers/graph/internal/order_search.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace stowage {
namespace {

using PeaksAndTimes = std::vector<std::pair<int64_t, int64_t>>;

constexpr int64_t kComputes = 100;
constexpr int64_t kBytes = kComputes * static_cast<int64_t>(sizeof(Compute));

PeaksAndTimes Kept(int64_t most_bytes, const PeaksAndTimes& offered) {
  OrderPool pool(most_bytes);
  for (const auto& [peak, time] : offered) {
    pool.Offer({peak, time, 0}, ComputeOrder(kComputes, {0, false}));
  }
  PeaksAndTimes kept;
  for (const OrderPool::Entry& entry : pool.entries()) {
    kept.push_back({entry.peak, entry.forward_time});
  }
  return kept;
}

TEST(OrderPool, KeepsWhatNothingBeats) {
  EXPECT_EQ(Kept(100 * kBytes, {{10, 90}, {20, 50}, {15, 95}, {30, 50}, {12, 60}, {5, 200}}),
            (PeaksAndTimes{{5, 200}, {10, 90}, {12, 60}, {20, 50}}));
  EXPECT_EQ(Kept(100 * kBytes, {{10, 90}, {20, 50}, {9, 50}}), (PeaksAndTimes{{9, 50}}));
}

TEST(OrderPool, DropsWhatGainsLeastWhereBytesAreOver) {
  const PeaksAndTimes offered = {{10, 100}, {20, 99}, {30, 50}, {40, 45}, {50, 44}};
  EXPECT_EQ(Kept(5 * kBytes, offered), offered);
  EXPECT_EQ(Kept(4 * kBytes, offered), (PeaksAndTimes{{10, 100}, {30, 50}, {40, 45}, {50, 44}}));
  EXPECT_EQ(Kept(3 * kBytes, offered), (PeaksAndTimes{{10, 100}, {30, 50}, {50, 44}}));
}

TEST(OrderPool, KeepsTheLowestPeakAndTheFastest) {
  EXPECT_EQ(Kept(0, {{20, 50}, {10, 100}, {30, 40}, {15, 70}, {5, 101}}),
            (PeaksAndTimes{{5, 101}, {30, 40}}));
}

}  // namespace
}  // namespace stowage

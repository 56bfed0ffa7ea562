#include "solvers/viz/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stowage {
namespace {

using ::testing::ElementsAre;

TEST(TicksTest, AreRoundAndReachTheTop) {
  EXPECT_THAT(Ticks(10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Ticks(0.9, 4), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Ticks(123, 6), ElementsAre(0, 50, 100, 150));
}

}  // namespace
}  // namespace stowage

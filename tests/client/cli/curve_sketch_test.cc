#include "client/cli/curve_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace stowage {
namespace {

TEST(CurveSketch, IsAStairThatFalls) {
  EXPECT_EQ(CurveSketch({{10, 30}, {40, 10}, {100, 0}}, {"budget", 10, 100}, {"overhead", 0, 30},
                        /*width=*/19, /*height=*/4),
            "      overhead\n"
            "      30 |*-----\n"
            "         |\n"
            "         |      *-----------\n"
            "       0 |                  *\n"
            "         +-------------------\n"
            "          10    budget    100\n");
}

// Each point is a star at the cell nearest to it, and every line stays within the plot.
TEST(CurveSketch, ShowsEveryPointWithinThePlot) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int count = 2 + static_cast<int>(random() % 30);
    const int width = 2 + static_cast<int>(random() % 80),
              height = 2 + static_cast<int>(random() % 20);
    std::vector<double> xs, ys;
    for (int i = 0; i < count; ++i) {
      xs.push_back(static_cast<double>(random() % 1000));
      ys.push_back(static_cast<double>(random() % 1000));
    }
    std::sort(xs.begin(), xs.end());
    std::sort(ys.rbegin(), ys.rend());
    if (xs.front() == xs.back() || ys.front() == ys.back()) continue;
    std::vector<CurvePoint> points;
    for (size_t i = 0; i < xs.size(); ++i) points.push_back({xs[i], ys[i]});
    const std::string text = CurveSketch(points, {"x", xs.front(), xs.back()},
                                         {"y", ys.back(), ys.front()}, width, height);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    ASSERT_EQ(lines.size(), static_cast<size_t>(height) + 4) << text;
    for (int row = 0; row < height; ++row) {
      EXPECT_LE(lines[1 + static_cast<size_t>(row)].size(), 10u + static_cast<size_t>(width));
    }
    // The ends are in the corners.
    EXPECT_EQ(lines[1][10], '*') << text;
    EXPECT_EQ(lines[static_cast<size_t>(height)].size(), 10u + static_cast<size_t>(width)) << text;
    EXPECT_EQ(lines[static_cast<size_t>(height)].back(), '*') << text;
  }
}

}  // namespace
}  // namespace stowage

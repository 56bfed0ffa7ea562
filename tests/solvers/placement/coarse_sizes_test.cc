#include "solvers/placement/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace stowage {
namespace {

// Lives one after the other, sizes small multiples of `unit`, some a little less, and blocks of a few bytes
// between them.
std::vector<UnitBlock> Multiples(int64_t unit, int count, std::mt19937_64* rng) {
  const auto draw = [rng](int64_t below) {
    return static_cast<int64_t>((*rng)() % static_cast<uint64_t>(below));
  };
  std::vector<UnitBlock> blocks;
  for (int i = 0; i < count; ++i) {
    const int64_t size = unit * (int64_t{1} << draw(4)) - (i % 9 == 0 ? draw(unit / 200) : 0);
    blocks.push_back({size, i, i + 20 + draw(60)});
    if (i % 3 == 0) blocks.push_back({1 + draw(3), i, i + 1 + draw(20)});
  }
  return blocks;
}

TEST(CoarseSizes, AreInTheUnitThatMostSizesAreMultiplesOf) {
  std::mt19937_64 rng(1);
  for (const int64_t unit : {1000, 56448}) {
    const std::vector<UnitBlock> blocks = Multiples(unit, 300, &rng);
    const int64_t peak = LivePeak(blocks);
    const CoarseSizes coarse = FindCoarseSizes(blocks, peak);
    EXPECT_EQ(coarse.unit, unit);
    ASSERT_EQ(coarse.blocks.size(), coarse.numbers.size());
    EXPECT_EQ(coarse.blocks.size() + coarse.tiny.size(), blocks.size());
    EXPECT_LE(LivePeak(coarse.blocks) * unit, peak + peak / 200);
    for (size_t i = 0; i < coarse.blocks.size(); ++i) {
      const UnitBlock& block = blocks[coarse.numbers[i]];
      EXPECT_GE(coarse.blocks[i].size * unit, block.size);
      EXPECT_LT(coarse.blocks[i].size * unit - block.size, unit);
      EXPECT_EQ(coarse.blocks[i].begin, block.begin);
      EXPECT_EQ(coarse.blocks[i].end, block.end);
    }
    for (const size_t i : coarse.tiny) EXPECT_LT(blocks[i].size, unit / 10);
  }
}

TEST(CoarseSizes, CostHalfAPerCentAtMost) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 60; ++i) {
    std::vector<UnitBlock> blocks;
    for (int k = 0; k < 10 + i; ++k) {
      const auto begin = static_cast<int64_t>(rng() % 100);
      const auto life = static_cast<int64_t>(1 + rng() % 40);
      blocks.push_back({static_cast<int64_t>(1 + rng() % 5000), begin, begin + life});
    }
    const int64_t peak = LivePeak(blocks);
    const CoarseSizes coarse = FindCoarseSizes(blocks, peak);
    EXPECT_GE(coarse.unit, 1);
    EXPECT_LE(LivePeak(coarse.blocks) * coarse.unit, peak + peak / 200);
  }
}

TEST(CoarseSizes, PlacementsOfManyBlocksAreTrueInBytes) {
  std::mt19937_64 rng(3);
  std::vector<BlockLife> blocks;
  for (const UnitBlock& block : Multiples(1000, 400, &rng)) {
    blocks.push_back({Bytes(block.size), block.begin, block.end});
  }
  PlacementOptions options;
  options.alignment = Bytes(1);
  options.effort = 10000000;
  const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, options);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_TRUE(CheckPlacement(blocks, options.alignment, *placement).ok());
  EXPECT_LE(static_cast<double>(placement->extent.value()),
            1.06 * static_cast<double>(placement->live_peak.value()));
}

}  // namespace
}  // namespace stowage

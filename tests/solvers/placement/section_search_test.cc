// The search of sections against all orders of few blocks, and on the instances of MiniMalloc.
#include "solvers/placement/internal/section_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/placement/placement.h"
#include "solvers/schedule/schedule_blocks.h"
#include "solvers/solver.h"
#include "tests/solvers/placement/minimalloc_file.h"

namespace stowage {
namespace {

constexpr char kInstances[] = STOWAGE_SOURCE_DIR "/tests/data/minimalloc";

bool Meet(const UnitBlock& a, const UnitBlock& b) { return a.begin < b.end && b.begin < a.end; }

// Whether blocks[k] at x meets one of those before it, and up to where.
int64_t TopInTheWay(const std::vector<UnitBlock>& blocks, const std::vector<int64_t>& offsets,
                    size_t k, int64_t x) {
  int64_t top = -1;
  for (size_t i = 0; i < k; ++i) {
    const bool apart = offsets[i] + blocks[i].size <= x || x + blocks[k].size <= offsets[i];
    if (Meet(blocks[i], blocks[k]) && !apart) top = std::max(top, offsets[i] + blocks[i].size);
  }
  return top;
}

// Of all orders, each block at the lowest free offset.
int64_t LeastExtent(std::vector<UnitBlock> blocks) {
  const auto before = [](const UnitBlock& a, const UnitBlock& b) {
    return std::vector<int64_t>{a.size, a.begin, a.end} <
           std::vector<int64_t>{b.size, b.begin, b.end};
  };
  std::sort(blocks.begin(), blocks.end(), before);
  int64_t least = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets;
    int64_t extent = 0;
    for (size_t k = 0; k < blocks.size(); ++k) {
      int64_t x = 0;
      for (int64_t top = 0; (top = TopInTheWay(blocks, offsets, k, x)) >= 0;) x = top;
      offsets.push_back(x);
      extent = std::max(extent, x + blocks[k].size);
    }
    least = std::min(least, extent);
  } while (std::next_permutation(blocks.begin(), blocks.end(), before));
  return least;
}

void ExpectWithin(const std::vector<UnitBlock>& blocks, const std::vector<int64_t>& offsets,
                  int64_t target) {
  ASSERT_EQ(offsets.size(), blocks.size());
  for (size_t k = 0; k < blocks.size(); ++k) {
    EXPECT_GE(offsets[k], 0);
    EXPECT_LE(offsets[k] + blocks[k].size, target);
    EXPECT_EQ(TopInTheWay(blocks, offsets, k, offsets[k]), -1) << k;
  }
}

TEST(SectionSearch, FindsTheLeastOfAllOrdersAndProvesThatThereIsNoLess) {
  std::mt19937_64 rng(1);
  const auto draw = [&rng](int64_t below) {
    return static_cast<int64_t>(rng() % static_cast<uint64_t>(below));
  };
  for (int i = 0; i < 1500; ++i) {
    const int64_t moments = 4 + i % 9;
    std::vector<UnitBlock> blocks;
    for (int k = 0; k < 2 + i % 6; ++k) {
      const int64_t begin = draw(moments);
      blocks.push_back(
          {1 + draw(1 + i % 7), begin, std::min(moments, begin + 1 + draw(moments / 2))});
    }
    SCOPED_TRACE(i);
    const int64_t least = LeastExtent(blocks);
    SectionSearch search(blocks, nullptr);
    EXPECT_EQ(search.Fit(least - 1, 100000000), SectionSearch::Outcome::kNone);
    ASSERT_EQ(search.Fit(least, 100000000), SectionSearch::Outcome::kFound);
    ExpectWithin(blocks, search.offsets(), least);
  }
}

// The live peak of these is 7.
TEST(SectionSearch, ProvesThatTheLivePeakIsNotReached) {
  const std::vector<UnitBlock> blocks = {{3, 5, 7}, {2, 4, 6}, {3, 6, 7}, {4, 8, 10},
                                         {3, 1, 4}, {2, 3, 6}, {1, 3, 5}, {4, 2, 3}};
  ASSERT_EQ(LivePeak(blocks), 7);
  ASSERT_EQ(LeastExtent(blocks), 8);
  SectionSearch search(blocks, nullptr);
  EXPECT_EQ(search.Fit(7, 1000000), SectionSearch::Outcome::kNone);
  ASSERT_EQ(search.Fit(8, 1000000), SectionSearch::Outcome::kFound);
  ExpectWithin(blocks, search.offsets(), 8);
}

TEST(SectionSearch, SaysThatItsEffortIsSpentOrThatItWasStopped) {
  const std::vector<UnitBlock> blocks = testing::MiniMallocBlocks(kInstances, 'A');
  ASSERT_TRUE(SectionSearch::Suits(blocks));
  SectionSearch search(blocks, nullptr);
  EXPECT_EQ(search.Fit(testing::kMiniMallocCapacity, 1000), SectionSearch::Outcome::kSpent);
  StopToken stop;
  stop.RequestStop();
  SectionSearch stopped(blocks, &stop);
  EXPECT_EQ(stopped.Fit(testing::kMiniMallocCapacity, int64_t{1} << 60),
            SectionSearch::Outcome::kSpent);
  EXPECT_FALSE(SectionSearch::Suits({}));
}

// Eight of the eleven are full at some time: their live peak is the capacity.
TEST(SectionSearch, PlacesTheInstancesOfMiniMalloc) {
  int full = 0;
  for (char name = 'A'; name <= 'K'; ++name) {
    SCOPED_TRACE(name);
    std::vector<BlockLife> blocks;
    for (const UnitBlock& block : testing::MiniMallocBlocks(kInstances, name)) {
      blocks.push_back({Bytes(block.size), block.begin, block.end});
    }
    ASSERT_FALSE(blocks.empty());
    PlacementOptions options;
    options.alignment = Bytes(1024);
    options.capacity = Bytes(testing::kMiniMallocCapacity);
    options.effort = 1000000000;
    const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, options);
    ASSERT_TRUE(placement.ok()) << placement.status();
    EXPECT_LE(placement->extent, options.capacity);
    full += placement->live_peak == options.capacity ? 1 : 0;
  }
  EXPECT_EQ(full, 8);
}

}  // namespace
}  // namespace stowage

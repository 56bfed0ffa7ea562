#include "solvers/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <string>

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kByte{1};

PlacementOptions Bytewise(int64_t effort = 1000000) {
  PlacementOptions options;
  options.alignment = kByte;
  options.effort = effort;
  return options;
}

bool Meet(const BlockLife& a, const BlockLife& b) { return a.begin < b.end && b.begin < a.end; }

int64_t LivePeak(const std::vector<BlockLife>& blocks) {
  int64_t peak = 0;
  for (const BlockLife& at : blocks) {
    int64_t live = 0;
    for (const BlockLife& block : blocks) {
      if (block.begin <= at.begin && at.begin < block.end) live += block.size.value();
    }
    peak = std::max(peak, live);
  }
  return peak;
}

// All pairs, one by one.
void ExpectValid(const std::vector<BlockLife>& blocks, const Placement& placement,
                 Bytes alignment) {
  ASSERT_EQ(placement.offsets.size(), blocks.size());
  const auto end = [&](size_t i) { return placement.offsets[i] + blocks[i].size; };
  Bytes extent;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(placement.offsets[i], Bytes(0));
    EXPECT_EQ(placement.offsets[i].value() % alignment.value(), 0);
    extent = std::max(extent, end(i));
    for (size_t j = 0; j < i; ++j) {
      if (!Meet(blocks[i], blocks[j])) continue;
      EXPECT_TRUE(end(i) <= placement.offsets[j] || end(j) <= placement.offsets[i])
          << i << " " << j;
    }
  }
  EXPECT_LE(extent, placement.extent);
  EXPECT_LT(placement.extent - extent, alignment);
}

std::vector<BlockLife> RandomBlocks(int count, int max_size, int moments, std::mt19937_64* rng) {
  const auto draw = [rng](int64_t below) {
    return static_cast<int64_t>((*rng)() % static_cast<uint64_t>(below));
  };
  std::vector<BlockLife> blocks;
  for (int i = 0; i < count; ++i) {
    const int64_t begin = draw(moments);
    const int64_t life = 1 + draw(moments / 2);
    blocks.push_back({Bytes(1 + draw(max_size)), begin, std::min<int64_t>(begin + life, moments)});
  }
  return blocks;
}

// The least extent. Every placement that has it comes from some order, each block at the lowest free
// offset; so this tries all orders.
int64_t LeastExtent(const std::vector<BlockLife>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t least = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets(blocks.size());
    int64_t extent = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const BlockLife& block = blocks[order[k]];
      int64_t offset = 0;
      for (size_t tried = 0; tried < k;) {
        const size_t other = order[tried];
        const bool in_the_way = Meet(block, blocks[other]) &&
                                offset < offsets[other] + blocks[other].size.value() &&
                                offsets[other] < offset + block.size.value();
        if (in_the_way) offset = offsets[other] + blocks[other].size.value();
        tried = in_the_way ? 0 : tried + 1;
      }
      offsets[order[k]] = offset;
      extent = std::max(extent, offset + block.size.value());
    }
    least = std::min(least, extent);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Placement, OfFewBlocksIsTheLeastOfAllOrders) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 400; ++i) {
    const std::vector<BlockLife> blocks = RandomBlocks(2 + i % 6, 8, 4 + i % 7, &rng);
    const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, Bytewise());
    ASSERT_TRUE(placement.ok()) << placement.status();
    ExpectValid(blocks, *placement, kByte);
    EXPECT_EQ(placement->live_peak.value(), LivePeak(blocks));
    EXPECT_EQ(placement->extent.value(), LeastExtent(blocks)) << i;
  }
}

TEST(Placement, StrandsWhatHasToBe) {
  const std::vector<BlockLife> blocks = {{Bytes(3), 5, 7},  {Bytes(2), 4, 6}, {Bytes(3), 6, 7},
                                         {Bytes(4), 8, 10}, {Bytes(3), 1, 4}, {Bytes(2), 3, 6},
                                         {Bytes(1), 3, 5},  {Bytes(4), 2, 3}};
  const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, Bytewise());
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(LeastExtent(blocks), 8);
  EXPECT_EQ(placement->extent, Bytes(8));
  EXPECT_EQ(placement->fragmentation(), Bytes(1));
}

TEST(Placement, HoldsOnManyBlocksAtAnyAlignment) {
  std::mt19937_64 rng(2);
  for (const int64_t alignment : {1, 64, 512}) {
    for (int i = 0; i < 6; ++i) {
      const std::vector<BlockLife> blocks = RandomBlocks(150, 5000, 20 << i, &rng);
      PlacementOptions options = Bytewise(300000);
      options.alignment = Bytes(alignment);
      const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, options);
      ASSERT_TRUE(placement.ok()) << placement.status();
      ExpectValid(blocks, *placement, options.alignment);
      EXPECT_TRUE(CheckPlacement(blocks, options.alignment, *placement).ok());
      const absl::StatusOr<Placement> again = PlaceBlocks(blocks, options);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->offsets, placement->offsets);
    }
  }
}

// Cuts a full region of `size` bytes into blocks, like the blades of a pinwheel around a middle that is
// cut in turn: a placement without any gap exists, and no straight cut divides it.
void Cut(int64_t size, int64_t begin, int64_t end, int depth, std::mt19937_64* rng,
         std::vector<BlockLife>* blocks) {
  const auto between = [rng](int64_t low, int64_t high) {
    return low + static_cast<int64_t>((*rng)() % static_cast<uint64_t>(high - low));
  };
  const int64_t moments = end - begin;
  if (depth == 0 || size < 9 || moments < 9) {
    blocks->push_back({Bytes(size), begin, end});
    return;
  }
  const int64_t low = between(size / 5 + 1, size / 2);
  const int64_t high = between(size / 2 + 1, size - size / 5);
  const int64_t early = begin + between(moments / 5 + 1, moments / 2);
  const int64_t late = begin + between(moments / 2 + 1, moments - moments / 5);
  Cut(low, begin, late, depth - 1, rng, blocks);
  Cut(high, late, end, depth - 1, rng, blocks);
  Cut(size - high, early, end, depth - 1, rng, blocks);
  Cut(size - low, begin, early, depth - 1, rng, blocks);
  Cut(high - low, early, late, depth - 1, rng, blocks);
}

TEST(Placement, SearchFindsWhatOrdersAloneDoNot) {
  std::mt19937_64 rng(3);
  Bytes orders, searched;
  for (int i = 0; i < 8; ++i) {
    std::vector<BlockLife> blocks;
    Cut(1 << 20, 0, 4096, 3, &rng, &blocks);
    const auto extent = [&blocks](int64_t effort) {
      const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, Bytewise(effort));
      EXPECT_TRUE(placement.ok()) << placement.status();
      EXPECT_EQ(placement->live_peak, Bytes(1 << 20));
      EXPECT_GE(placement->extent, placement->live_peak);
      return placement->extent;
    };
    const Bytes by_orders = extent(0), by_search = extent(20000000);
    EXPECT_LE(by_search, by_orders);
    orders += by_orders;
    searched += by_search;
  }
  EXPECT_LT(searched, orders);
}

TEST(Placement, EndsWhereTheCapacityIsEnough) {
  std::mt19937_64 rng(5);
  std::vector<BlockLife> blocks;
  Cut(1 << 20, 0, 4096, 3, &rng, &blocks);
  PlacementOptions options = Bytewise(20000000);
  const absl::StatusOr<Placement> best = PlaceBlocks(blocks, options);
  const absl::StatusOr<Placement> orders = PlaceBlocks(blocks, Bytewise(0));
  ASSERT_TRUE(best.ok() && orders.ok());
  ASSERT_LT(best->extent, orders->extent);
  options.capacity = orders->extent;
  const absl::StatusOr<Placement> enough = PlaceBlocks(blocks, options);
  ASSERT_TRUE(enough.ok()) << enough.status();
  EXPECT_EQ(enough->offsets, orders->offsets);
  options.capacity = best->extent;
  const absl::StatusOr<Placement> within = PlaceBlocks(blocks, options);
  ASSERT_TRUE(within.ok()) << within.status();
  EXPECT_LE(within->extent, options.capacity);
}

// Beside one block that is live all the time, what orders lose of a small part of the memory is less than what is
// accepted without a capacity.
TEST(Placement, ACapacityAtTheLivePeakIsHeldToTheByte) {
  int tight = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 rng(seed);
    std::vector<BlockLife> blocks;
    Cut(1 << 10, 0, 64, 2, &rng, &blocks);
    blocks.push_back({Bytes(int64_t{1} << 30), 0, 64});
    const absl::StatusOr<Placement> orders = PlaceBlocks(blocks, Bytewise(0));
    ASSERT_TRUE(orders.ok()) << orders.status();
    PlacementOptions options = Bytewise(20000000);
    options.capacity = orders->live_peak;
    const absl::StatusOr<Placement> within = PlaceBlocks(blocks, options);
    ASSERT_TRUE(within.ok()) << within.status();
    EXPECT_EQ(within->extent, options.capacity) << seed;
    tight += orders->extent > options.capacity ? 1 : 0;
  }
  EXPECT_GT(tight, 0);
}

TEST(Placement, OfNestedLivesStrandsNothing) {
  std::vector<BlockLife> blocks;
  for (int64_t i = 0; i < 300; ++i) blocks.push_back({Bytes(1 + i * 7919 % 1000), i, 1000 - i});
  const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, Bytewise(0));
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->fragmentation(), Bytes(0));
}

TEST(Placement, WithoutBlocksIsEmpty) {
  const absl::StatusOr<Placement> placement = PlaceBlocks({});
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->extent, Bytes(0));
}

TEST(Placement, StopsEarlyWithAPlacementThatHolds) {
  std::mt19937_64 rng(4);
  std::vector<BlockLife> blocks;
  Cut(1 << 20, 0, 4096, 4, &rng, &blocks);
  StopToken stop;
  stop.RequestStop();
  PlacementOptions options = Bytewise(int64_t{1} << 60);
  options.stop = &stop;
  const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, options);
  ASSERT_TRUE(placement.ok()) << placement.status();
  ExpectValid(blocks, *placement, kByte);
}

TEST(Placement, RefusesWhatIsNoBlock) {
  const auto error = [](const std::vector<BlockLife>& blocks, const PlacementOptions& options) {
    const absl::StatusOr<Placement> placement = PlaceBlocks(blocks, options);
    EXPECT_EQ(placement.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(placement.status().message());
  };
  EXPECT_THAT(error({{Bytes(8), 0, 1}, {Bytes(0), 0, 1}}, {}), HasSubstr("block 1: 0 bytes"));
  EXPECT_THAT(error({{Bytes(8), 3, 3}}, {}), HasSubstr("from 3 to 3"));
  EXPECT_THAT(error({{Bytes(kMaxTotal), 0, 1}}, {}), HasSubstr("2^62"));
  PlacementOptions options;
  options.alignment = Bytes(0);
  EXPECT_THAT(error({}, options), HasSubstr("alignment: 0"));
  options = {};
  options.effort = -1;
  EXPECT_THAT(error({}, options), HasSubstr("effort: -1"));
  options = {};
  options.capacity = Bytes(-1);
  EXPECT_THAT(error({}, options), HasSubstr("capacity: -1"));
}

TEST(CheckPlacement, FindsEveryKindOfMistake) {
  const std::vector<BlockLife> blocks = {{Bytes(100), 0, 4}, {Bytes(60), 2, 6}, {Bytes(100), 4, 8}};
  const Placement good{{Bytes(0), Bytes(128), Bytes(0)}, Bytes(192), Bytes(192)};
  const auto check = [&blocks](const Placement& placement) {
    return std::string(CheckPlacement(blocks, Bytes(64), placement).message());
  };
  EXPECT_EQ(check(good), "");
  Placement bad = good;
  bad.offsets.pop_back();
  EXPECT_THAT(check(bad), HasSubstr("3 blocks and 2 offsets"));
  bad = good;
  bad.offsets[1] = Bytes(64);
  EXPECT_THAT(check(bad), HasSubstr("blocks 0 and 1 overlap"));
  bad.offsets[1] = Bytes(0);
  EXPECT_THAT(check(bad), HasSubstr("blocks 0 and 1 overlap"));
  bad.offsets[1] = Bytes(130);
  EXPECT_THAT(check(bad), HasSubstr("block 1 is at 130"));
  bad.offsets[1] = Bytes(-64);
  EXPECT_THAT(check(bad), HasSubstr("block 1 is at -64"));
  bad = good;
  bad.extent = Bytes(256);
  EXPECT_THAT(check(bad), HasSubstr("are 192 and 192 bytes, not 256 and 192"));
  bad = good;
  bad.live_peak = Bytes(160);
  EXPECT_THAT(check(bad), HasSubstr("not 192 and 160"));
}

}  // namespace
}  // namespace stowage

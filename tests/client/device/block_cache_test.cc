// The test device's caching allocator, held to what CUDA's does: what is rounded, split, joined, kept and given back.
#include "tests/client/device/block_cache.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stowage {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class BlockCacheTest : public ::testing::Test {
 protected:
  int64_t allocated() const { return cache_.stats().allocated_bytes; }
  int64_t reserved() const { return cache_.stats().reserved_bytes; }

  int synchronized_ = 0;
  BlockCache cache_{[this] { ++synchronized_; }};
};

TEST_F(BlockCacheTest, SizesAreRoundedTo512Bytes) {
  for (const auto& [asked, rounded] : std::vector<std::pair<size_t, int64_t>>{
           {1, 512}, {512, 512}, {513, 1024}, {100000, 100352}}) {
    void* const block = cache_.Allocate(asked);
    EXPECT_EQ(allocated(), rounded) << asked;
    EXPECT_EQ(cache_.stats().requested_bytes, static_cast<int64_t>(asked));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % BlockCache::kGranularity, 0u);
    cache_.Free(block);
    EXPECT_EQ(allocated(), 0);
    EXPECT_EQ(cache_.stats().requested_bytes, 0);
  }
  EXPECT_EQ(cache_.Allocate(0), nullptr);
}

TEST_F(BlockCacheTest, SegmentsAreOf2And20MiBAndOfWhatIsLarger) {
  for (const auto& [asked, segment] :
       std::vector<std::pair<size_t, size_t>>{{1, 2 * kMiB},
                                              {kMiB, 2 * kMiB},
                                              {kMiB + 1, 20 * kMiB},
                                              {10 * kMiB - 512, 20 * kMiB},
                                              {10 * kMiB, 10 * kMiB},
                                              {11 * kMiB + 1, 12 * kMiB}}) {
    void* const block = cache_.Allocate(asked);
    EXPECT_EQ(reserved(), static_cast<int64_t>(segment)) << asked;
    cache_.Free(block);
    EXPECT_EQ(reserved(), static_cast<int64_t>(segment)) << "it is kept";
    cache_.Empty();
    EXPECT_EQ(reserved(), 0);
  }
}

TEST_F(BlockCacheTest, SmallBlocksSplitToTheGranularityLargeOnesAboveOneMiB) {
  auto* const first = static_cast<std::byte*>(cache_.Allocate(512));
  auto* const second = static_cast<std::byte*>(cache_.Allocate(512));
  EXPECT_EQ(second, first + 512) << "of the rest of the segment";
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB));
  cache_.Free(first);
  cache_.Free(second);
  // Of 20 MiB: what is left of 11 by the second is one granule more than 1 MiB, and splits off; 1 MiB does not.
  void* const nine = cache_.Allocate(9 * kMiB);
  void* const ten = cache_.Allocate(10 * kMiB - 512);
  EXPECT_EQ(reserved(), static_cast<int64_t>(22 * kMiB)) << "both of one segment";
  EXPECT_EQ(allocated(), static_cast<int64_t>(19 * kMiB - 512));
  cache_.Free(ten);
  void* const wider = cache_.Allocate(10 * kMiB);
  EXPECT_EQ(wider, ten);
  EXPECT_EQ(allocated(), static_cast<int64_t>(20 * kMiB)) << "with the rest of 1 MiB";
  cache_.Free(nine);
  cache_.Free(wider);
  EXPECT_EQ(allocated(), 0);
}

TEST_F(BlockCacheTest, SmallAndLargeBlocksHaveSegmentsOfTheirOwn) {
  void* const large = cache_.Allocate(2 * kMiB);
  void* const small = cache_.Allocate(512);
  EXPECT_EQ(reserved(), static_cast<int64_t>(22 * kMiB));
  cache_.Free(large);
  cache_.Free(small);
}

TEST_F(BlockCacheTest, NeighboursThatAreFreeAreJoined) {
  std::vector<void*> quarters;
  for (int i = 0; i < 4; ++i) quarters.push_back(cache_.Allocate(kMiB / 2));
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB));
  for (const size_t i : {0u, 2u, 1u}) cache_.Free(quarters[i]);  // the last one joins both sides
  void* const whole = cache_.Allocate(kMiB);
  EXPECT_EQ(whole, quarters[0]);
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB));
  cache_.Empty();
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB)) << "something of it is in use";
  cache_.Free(whole);
  cache_.Free(quarters[3]);
  cache_.Empty();
  EXPECT_EQ(reserved(), 0);
}

TEST_F(BlockCacheTest, TheSmallestBlockThatDoesIsTaken) {
  void* const a = cache_.Allocate(4 * kMiB);
  void* const b = cache_.Allocate(2 * kMiB);
  void* const c = cache_.Allocate(3 * kMiB);
  cache_.Free(a);
  void* const again = cache_.Allocate(3 * kMiB + 512);
  EXPECT_EQ(again, a) << "not the 11 MiB behind c";
  for (void* const block : {b, c, again}) cache_.Free(block);
}

TEST_F(BlockCacheTest, BeforeItRefusesItGivesBackWhatItKeepsAndTriesAgain) {
  cache_.SetLimit(static_cast<int64_t>(22 * kMiB));
  void* const small = cache_.Allocate(512);
  cache_.Free(small);  // 2 MiB are kept
  void* const large = cache_.Allocate(21 * kMiB);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(cache_.stats().retries, 1);
  EXPECT_EQ(synchronized_, 1) << "work may use what goes back";
  EXPECT_EQ(reserved(), static_cast<int64_t>(22 * kMiB));
  EXPECT_EQ(cache_.Allocate(512), nullptr);
  EXPECT_EQ(cache_.stats().retries, 2);
  EXPECT_EQ(cache_.stats().refusals, 1);
  cache_.Free(large);
  void* const after = cache_.Allocate(512);
  EXPECT_NE(after, nullptr);
  cache_.Free(after);
}

TEST_F(BlockCacheTest, BlocksInUseHaveALimitToTheByte) {
  cache_.SetLiveLimit(1024);
  void* const first = cache_.Allocate(512);
  void* const second = cache_.Allocate(512);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(cache_.Allocate(1), nullptr);
  EXPECT_EQ(cache_.stats().allocated_peak_bytes, 1024);
  cache_.Free(first);
  cache_.ResetPeaks();
  EXPECT_EQ(cache_.stats().allocated_peak_bytes, 512);
  EXPECT_EQ(cache_.stats().requested_peak_bytes, 512);
  cache_.Free(second);
}

}  // namespace
}  // namespace stowage

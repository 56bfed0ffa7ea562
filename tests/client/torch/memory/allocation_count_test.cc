// Counts and meters of a caching allocator that is not there, which tells its events as LibTorch's CUDA allocator does.
#include "client/torch/memory/allocation_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "client/torch/memory/counting_meter.h"

namespace stowage {
namespace {

// Frees what other streams use when those are done; keeps a peak for its user.
class FakeAllocator {
 public:
  explicit FakeAllocator(AllocationCount* count) : count_(count) {}

  int Allocate(int64_t bytes, bool other_streams = false) {
    blocks_[++last_] = {bytes, other_streams};
    count_->Reserved(Bytes(bytes));
    count_->Allocated(Bytes(bytes));
    live_ += bytes;
    users_peak = std::max(users_peak, live_);
    return last_;
  }
  void FreeBlock(int block) {
    live_ -= blocks_[block].bytes;
    if (!blocks_[block].other_streams) Complete(block);
  }
  void StreamsAreDone() {
    while (!blocks_.empty()) Complete(blocks_.begin()->first);
  }

  int64_t users_peak = 0;

 private:
  struct Live {
    int64_t bytes;
    bool other_streams;
  };

  void Complete(int block) {
    count_->Freed(Bytes(blocks_[block].bytes));
    blocks_.erase(block);
  }

  AllocationCount* const count_;
  std::map<int, Live> blocks_;
  int last_ = 0;
  int64_t live_ = 0;
};

class AllocationCountTest : public testing::Test {
 protected:
  AllocationCount count_{Bytes(512)};
  FakeAllocator allocator_{&count_};
  CountingMeter meter_{&count_};
};

TEST_F(AllocationCountTest, PeaksAreTheMetersOwn) {
  allocator_.FreeBlock(allocator_.Allocate(5000));
  meter_.ResetPeak();
  CountingMeter other(&count_);
  const int kept = allocator_.Allocate(100);
  EXPECT_EQ(meter_.peak(), Bytes(100));
  EXPECT_EQ(meter_.peak_block_bytes(), Bytes(512));
  EXPECT_EQ(meter_.reserved(), Bytes(5100));
  EXPECT_EQ(allocator_.users_peak, 5000);
  allocator_.FreeBlock(allocator_.Allocate(600));
  EXPECT_EQ(meter_.TakeRecentPeak(), Bytes(700));
  EXPECT_EQ(meter_.TakeRecentPeak(), Bytes(100));
  EXPECT_EQ(meter_.peak(), Bytes(700));
  EXPECT_EQ(meter_.peak_block_bytes(), Bytes(512 + 1024));
  meter_.ResetPeak();
  EXPECT_EQ(meter_.peak(), Bytes(100));
  EXPECT_EQ(other.peak(), Bytes(700));
  EXPECT_EQ(allocator_.users_peak, 5000);
  allocator_.FreeBlock(kept);
  EXPECT_EQ(meter_.current(), Bytes(0));
  EXPECT_EQ(meter_.block_bytes(), Bytes(0));
}

TEST_F(AllocationCountTest, WhatAnotherStreamStillUsesIsLive) {
  const int block = allocator_.Allocate(3000, /*other_streams=*/true);
  allocator_.FreeBlock(block);
  EXPECT_EQ(meter_.current(), Bytes(3000));
  meter_.ResetPeak();
  EXPECT_EQ(meter_.peak(), Bytes(3000));
  allocator_.StreamsAreDone();
  EXPECT_EQ(meter_.current(), Bytes(0));
}

TEST_F(AllocationCountTest, WhatWasThereBeforeIsCountedOnceWhateverHappensMeanwhile) {
  int reads = 0;
  count_.StartFrom([&] {
    if (++reads < 3) allocator_.Allocate(10);
    return AllocationCount::Sums{Bytes(1000 + 10 * reads), Bytes(2048), Bytes(4096)};
  });
  EXPECT_EQ(reads, 3);
  EXPECT_EQ(meter_.current(), Bytes(1030));
  EXPECT_EQ(meter_.peak(), Bytes(1030));
  allocator_.Allocate(600);
  EXPECT_EQ(meter_.block_bytes(), Bytes(2048 + 1024));
}

}  // namespace
}  // namespace stowage

#include "client/torch/memory/tracking_allocator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace stowage {
namespace {

class TrackingAllocatorTest : public testing::Test {
 protected:
  TrackingAllocatorTest() : meter_(TrackingAllocator::Get()), start_(meter_->current()) {
    meter_->ResetPeak();
  }
  ~TrackingAllocatorTest() override { meter_->ClearLimit(); }

  int64_t Live() const { return (meter_->current() - start_).value(); }
  int64_t Peak() const { return (meter_->peak() - start_).value(); }

  TrackingAllocator* meter_;
  Bytes start_;
};

TEST_F(TrackingAllocatorTest, InstallIsIdempotent) {
  EXPECT_EQ(TrackingAllocator::Install(), TrackingAllocator::Install());
  EXPECT_EQ(TrackingAllocator::Install(), TrackingAllocator::Get());
  EXPECT_EQ(c10::GetAllocator(c10::DeviceType::CPU), TrackingAllocator::Get());
}

TEST_F(TrackingAllocatorTest, CountsExactlyTheRequestedBytes) {
  {
    const at::Tensor a = torch::empty({7, 3});
    EXPECT_EQ(Live(), 7 * 3 * 4);
    at::Tensor b = torch::empty({5}, torch::kByte);
    EXPECT_EQ(Live(), 84 + 5);
    b.reset();
    EXPECT_EQ(Live(), 84);
    EXPECT_EQ(torch::empty({0}).nbytes(), 0U);
    EXPECT_EQ(Peak(), 89);
  }
  EXPECT_EQ(Live(), 0);
  EXPECT_EQ(Peak(), 89);
  meter_->ResetPeak();
  EXPECT_EQ(Peak(), 0);
}

TEST_F(TrackingAllocatorTest, RecentPeaksBeginAnewAndLeaveThePeakAsItIs) {
  const auto recent = [this] { return (meter_->TakeRecentPeak() - start_).value(); };
  { const at::Tensor a = torch::empty({100}, torch::kByte); }
  const at::Tensor b = torch::empty({40}, torch::kByte);
  EXPECT_EQ(recent(), 100);
  EXPECT_EQ(recent(), 40);
  { const at::Tensor c = torch::empty({30}, torch::kByte); }
  EXPECT_EQ(recent(), 70);
  EXPECT_EQ(Peak(), 100);
  { const at::Tensor c = torch::empty({50}, torch::kByte); }
  meter_->ResetPeak();
  EXPECT_EQ(recent(), 40);
}

TEST_F(TrackingAllocatorTest, ViewsCountOnce) {
  const at::Tensor a = torch::empty({16});
  const at::Tensor view = a.view({4, 4});
  EXPECT_EQ(Live(), 64);
}

TEST_F(TrackingAllocatorTest, BlocksAreAligned) {
  for (int64_t size = 1; size < 300; size += 7) {
    const at::Tensor a = torch::empty({size}, torch::kByte);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data_ptr()) % 64, 0U);
  }
}

TEST_F(TrackingAllocatorTest, RawInterfaceFrees) {
  void* data = meter_->raw_allocate(100);
  EXPECT_EQ(Live(), 100);
  meter_->raw_deallocate(data);
  EXPECT_EQ(Live(), 0);
}

TEST_F(TrackingAllocatorTest, LimitIsExactAndRecoverable) {
  meter_->SetLimit(start_ + Bytes(1000));
  const at::Tensor fits = torch::empty({1000}, torch::kByte);
  EXPECT_EQ(Live(), 1000);
  try {
    torch::empty({1}, torch::kByte);
    FAIL() << "the limit was exceeded";
  } catch (const c10::OutOfMemoryError& error) {
    // In the words of LibTorch's allocator of a GPU.
    EXPECT_NE(std::string(error.what()).find("Tried to allocate 1 B ("), std::string::npos);
  }
  EXPECT_EQ(Live(), 1000);
  EXPECT_EQ(Peak(), 1000);
  meter_->ClearLimit();
  const at::Tensor more = torch::empty({1}, torch::kByte);
  EXPECT_EQ(Live(), 1001);
}

TEST_F(TrackingAllocatorTest, AnImpossibleSizeIsOutOfMemory) {
  EXPECT_THROW(torch::empty({int64_t{1} << 60}, torch::kByte), c10::OutOfMemoryError);
  EXPECT_EQ(Live(), 0);
}

TEST_F(TrackingAllocatorTest, CountsFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int64_t i = 1; i < 2000; ++i) torch::empty({i % 97 + 1}, torch::kByte);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Live(), 0);
  EXPECT_GE(Peak(), 97);
  EXPECT_LE(Peak(), 4 * 97);
}

}  // namespace
}  // namespace stowage

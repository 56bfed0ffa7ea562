// Steps of several kinds in one region, and the region of another device's allocator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/memory/step_arena.h"
#include "client/torch/memory/tracking_allocator.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr StepArena::Kind kSmall = 1;
constexpr StepArena::Kind kLarge = 2;

at::Tensor BlockOf(int64_t bytes) { return torch::empty({bytes}, torch::kByte); }

class ArenaRegionTest : public testing::Test {
 protected:
  ArenaRegionTest() : meter_(TrackingAllocator::Get()), live_(meter_->current()) {}
  ~ArenaRegionTest() override {
    arena_.reset();
    meter_->ClearLimit();
    EXPECT_EQ(meter_->current(), live_);
    EXPECT_EQ(meter_->reserved(), live_);
  }

  // Two blocks at once, then one as large as both.
  void Step(StepArena::Kind kind) {
    const ArenaScope scope(arena_.get(), kind);
    const int64_t size = kind * 1024;
    {
      const at::Tensor a = BlockOf(size);
      const at::Tensor b = BlockOf(size);
    }
    BlockOf(2 * size);
  }

  void RecordAndPrepare(StepArena::Kind kind) {
    Step(kind);
    ASSERT_TRUE(arena_->Prepare().ok());
  }

  void ExpectServed(StepArena::Kind kind) {
    Step(kind);
    EXPECT_EQ(arena_->report().counts.served, 3);
    EXPECT_EQ(arena_->report().counts.departed, 0);
    EXPECT_EQ(arena_->report().extent, Bytes(2048 * kind));
  }

  TrackingAllocator* meter_;
  Bytes live_;
  std::unique_ptr<StepArena> arena_ = StepArena::Create({}).value();
};

TEST_F(ArenaRegionTest, IsAsLargeAsTheLargestKindOfStepNeeds) {
  RecordAndPrepare(kSmall);
  EXPECT_EQ(meter_->reserved(), live_ + Bytes(2048));
  RecordAndPrepare(kLarge);
  EXPECT_EQ(meter_->reserved(), live_ + Bytes(4096));
  EXPECT_EQ(arena_->report().reserved, Bytes(4096));
  for (const StepArena::Kind kind : {kSmall, kLarge, kLarge, kSmall}) ExpectServed(kind);
  EXPECT_EQ(meter_->reserved(), live_ + Bytes(4096));
}

TEST_F(ArenaRegionTest, IsGivenUpWhileAnotherKindOfStepIsRecorded) {
  RecordAndPrepare(kLarge);
  meter_->ResetPeak();
  Step(kSmall);
  EXPECT_EQ(meter_->peak_reserved(), live_ + Bytes(4096));  // the region, then the step, never both
  EXPECT_EQ(meter_->reserved(), live_);
  // That was recorded last, but the large one is planned.
  ExpectServed(kLarge);
  ASSERT_TRUE(arena_->Prepare().ok());
  ExpectServed(kSmall);
}

TEST_F(ArenaRegionTest, ComesBackAfterItWasReleased) {
  RecordAndPrepare(kSmall);
  arena_->Release();
  EXPECT_EQ(meter_->reserved(), live_);
  EXPECT_EQ(arena_->report().reserved, Bytes(0));
  EXPECT_EQ(arena_->report().extent, Bytes(2048));
  ExpectServed(kSmall);
  // Where there is no room for it the step is recorded again.
  arena_->Release();
  const at::Tensor other = BlockOf(1024);
  meter_->SetLimit(live_ + Bytes(3071));
  {
    const ArenaScope scope(arena_.get(), kSmall);
    BlockOf(2000);
  }
  EXPECT_EQ(arena_->report().counts.served, 0);
  meter_->ClearLimit();
  ExpectServed(kSmall);
}

TEST_F(ArenaRegionTest, ShrinksOnceWhatWasLargeIsForgotten) {
  RecordAndPrepare(kLarge);
  arena_->Forget(kLarge);
  RecordAndPrepare(kSmall);
  EXPECT_EQ(meter_->reserved(), live_ + Bytes(2048));
  Step(kLarge);
  EXPECT_EQ(arena_->report().counts.served, 0);
}

TEST_F(ArenaRegionTest, IsNoLargerThanItMayBe) {
  RecordAndPrepare(kSmall);
  Step(kLarge);
  const absl::Status status = arena_->Prepare(Bytes(4095));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("4096 bytes, 0 of them fragmentation"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is room for 4095"));
  // What it would have been is told, and the other kind is served as before.
  EXPECT_EQ(arena_->report().extent, Bytes(4096));
  ExpectServed(kSmall);
  EXPECT_TRUE(arena_->Prepare(Bytes(4096)).ok());
  ExpectServed(kLarge);
}

TEST_F(ArenaRegionTest, ABlockOfOneKindOfStepIsInNobodysWay) {
  RecordAndPrepare(kSmall);
  RecordAndPrepare(kLarge);
  at::Tensor kept;
  {
    const ArenaScope scope(arena_.get(), kSmall);
    kept = BlockOf(1024).fill_(5);
  }
  EXPECT_EQ(arena_->report().counts.served, 1);
  {
    const ArenaScope scope(arena_.get(), kLarge);
    const at::Tensor a = BlockOf(2048).fill_(1);
    const at::Tensor b = BlockOf(2048).fill_(2);
    EXPECT_EQ(arena_->report().counts.departed, 1);
    EXPECT_EQ(arena_->report().counts.served, 1);
  }
  EXPECT_EQ(kept.sum().item<int64_t>(), 5 * 1024);
}

// Device memory that nobody can touch: addresses alone.
class FakeDevice final : public SourcedAllocator {
 public:
  void Add(std::shared_ptr<BlockSource> source) override { sources_.push_back(std::move(source)); }
  void DropDone() override {
    for (size_t i = sources_.size(); i-- > 0;) {
      if (sources_[i]->done()) sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  BlockSource* Enter(BlockSource* source) override { return std::exchange(entered_, source); }
  void* Reserve(Bytes size, Bytes alignment) override {
    EXPECT_EQ(alignment, granularity());
    reserved_ += size;
    return Next(size.value());
  }
  void Unreserve(void*, Bytes size) override { reserved_ -= size; }
  Bytes granularity() const override { return Bytes(512); }

  void* Allocate(size_t size) {
    void* block = entered_ == nullptr ? nullptr : entered_->Allocate(size);
    if (block != nullptr) return block;
    block = Next(static_cast<int64_t>(size));
    if (entered_ != nullptr) entered_->Allocated(block, size);
    return block;
  }
  void Free(const void* block) {
    for (const auto& source : sources_) {
      if (source->Free(block)) return;
    }
  }

  Bytes reserved() const { return reserved_; }
  size_t sources() const { return sources_.size(); }

 private:
  void* Next(int64_t size) {
    const auto address = reinterpret_cast<void*>(next_);
    next_ += static_cast<uintptr_t>((size + 511) / 512 * 512);
    return address;
  }

  std::vector<std::shared_ptr<BlockSource>> sources_;
  BlockSource* entered_ = nullptr;
  uintptr_t next_ = 1 << 20;
  Bytes reserved_;
};

TEST(ArenaOfADevice, TakesItsGranularityAndServesFromItsMemory) {
  FakeDevice device;
  std::unique_ptr<StepArena> arena = StepArena::Create({}, &device).value();
  uintptr_t first = 0;
  const auto step = [&] {
    const ArenaScope scope(arena.get());
    const void* const a = device.Allocate(100);
    const void* const b = device.Allocate(700);
    device.Free(a);
    const void* const c = device.Allocate(512);
    first = std::min({reinterpret_cast<uintptr_t>(a), reinterpret_cast<uintptr_t>(b),
                      reinterpret_cast<uintptr_t>(c)});
    device.Free(b);
    device.Free(c);
  };
  step();
  ASSERT_TRUE(arena->Prepare().ok());
  EXPECT_EQ(arena->report().extent, Bytes(512 + 1024));
  EXPECT_EQ(device.reserved(), Bytes(512 + 1024));
  step();
  EXPECT_EQ(arena->report().counts.served, 3);
  const uintptr_t region = first;
  step();
  EXPECT_EQ(first, region);
  arena.reset();
  EXPECT_EQ(device.reserved(), Bytes(0));
  EXPECT_EQ(device.sources(), 0U);
}

TEST(ArenaOfADevice, RefusesAFinerAlignment) {
  FakeDevice device;
  StepArenaOptions options;
  options.alignment = Bytes(256);
  const absl::Status status = StepArena::Create(options, &device).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a power of two of at least 512"));
}

}  // namespace
}  // namespace stowage

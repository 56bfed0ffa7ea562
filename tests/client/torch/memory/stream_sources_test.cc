// Sources of a device with streams, over a caching allocator that counts what it is asked.
#include "client/torch/memory/stream_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/memory/counting_meter.h"
#include "client/torch/memory/step_arena.h"

namespace stowage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

c10::Stream StreamOf(int64_t id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCPU), id);
}

// Its blocks are events of the count. Streams are numbers, their handles the addresses of names.
class FakeStreamMemory final : public StreamMemory {
 public:
  explicit FakeStreamMemory(AllocationCount* count) : count_(count) {}
  ~FakeStreamMemory() override {
    for (const auto& [block, bytes] : live_) std::free(block);
  }

  void EmptyCache() override { said.push_back("empty"); }
  void* Allocate(Bytes bytes) override {
    if (bytes > most) return nullptr;
    void* const block = std::aligned_alloc(512, static_cast<size_t>(count_->Block(bytes).value()));
    live_[block] = bytes;
    count_->Reserved(bytes);
    count_->Allocated(bytes);
    allocated_ += count_->Block(bytes).value();
    peak_ = std::max(peak_, allocated_);
    return block;
  }
  void Free(void* block) override {
    const Bytes bytes = live_.at(block);
    count_->Freed(bytes);
    count_->Released(bytes);
    allocated_ -= count_->Block(bytes).value();
    live_.erase(block);
    std::free(block);
  }
  c10::Stream CurrentStream() override { return StreamOf(current); }
  const void* Handle(c10::Stream stream) override { return HandleOf(stream.id()); }
  void Wait(c10::Stream stream, c10::Stream other) override {
    said.push_back(absl::StrCat(stream.id(), " waits for ", other.id()));
  }
  void RecordStream(void* /*block*/, c10::Stream stream) override {
    said.push_back(absl::StrCat("used on ", stream.id()));
  }
  int64_t PeakOfAllocated() override { return peak_; }

  static const void* HandleOf(int64_t stream) { return &kNames[stream]; }
  std::vector<std::string> TakeSaid() { return std::exchange(said, {}); }
  // What the user would be told by the caching allocator alone.
  StreamSources::AllocatedBytes Figures() const { return {allocated_, peak_}; }
  void ResetPeak() { peak_ = allocated_; }
  size_t live() const { return live_.size(); }

  int64_t current = 0;
  Bytes most{int64_t{1} << 30};
  std::vector<std::string> said;

 private:
  static constexpr char kNames[8] = {};

  AllocationCount* const count_;
  std::unordered_map<void*, Bytes> live_;
  int64_t allocated_ = 0;
  int64_t peak_ = 0;
};

class StreamSourcesTest : public testing::Test {
 protected:
  // As an allocator that asks them first.
  void* Allocate(size_t size, int64_t stream) {
    const void* const handle = FakeStreamMemory::HandleOf(stream);
    void* block = sources_.Allocate(size, handle);
    if (block != nullptr) return block;
    block = memory_.Allocate(Bytes(static_cast<int64_t>(size)));
    sources_.Allocated(block, size, handle);
    return block;
  }
  void Free(void* block) {
    if (!sources_.Free(block)) memory_.Free(block);
  }

  // Two blocks on a stream, recorded or served.
  void Step(int64_t stream) {
    memory_.current = stream;
    const ArenaScope scope(arena_.get());
    void* const first = Allocate(1000, stream);
    void* const second = Allocate(3000, stream);
    Free(first);
    Free(second);
  }

  AllocationCount count_{Bytes(512)};
  FakeStreamMemory memory_{&count_};
  StreamSources sources_{&memory_, &count_};
  CountingMeter meter_{&count_};
  std::unique_ptr<StepArena> arena_ = StepArena::Create({}, &sources_).value();
};

TEST_F(StreamSourcesTest, ServeWhoAllocatesForTheStreamThatWasCurrent) {
  Step(0);
  ASSERT_TRUE(arena_->Prepare().ok());
  EXPECT_THAT(memory_.TakeSaid(), ElementsAre("empty"));
  EXPECT_EQ(memory_.live(), 1U);  // the region
  Step(0);
  EXPECT_EQ(arena_->report().counts.served, 2);
  EXPECT_THAT(memory_.TakeSaid(), IsEmpty());
  const ArenaScope scope(arena_.get());
  void* const others = Allocate(1000, /*stream=*/1);
  EXPECT_EQ(memory_.live(), 2U);
  Free(others);
  EXPECT_EQ(arena_->report().counts.served, 0);
}

TEST_F(StreamSourcesTest, WhatAnotherStreamUsesIsWaitedForWhenItIsFreed) {
  Step(0);
  ASSERT_TRUE(arena_->Prepare().ok());
  memory_.TakeSaid();
  const ArenaScope scope(arena_.get());
  void* const block = Allocate(1000, 0);
  EXPECT_TRUE(sources_.RecordStream(block, StreamOf(0)));
  EXPECT_TRUE(sources_.RecordStream(block, StreamOf(2)));
  EXPECT_TRUE(sources_.RecordStream(block, StreamOf(2)));
  EXPECT_THAT(memory_.TakeSaid(), IsEmpty());
  Free(block);
  EXPECT_THAT(memory_.TakeSaid(), ElementsAre("0 waits for 2"));
  void* const ordinary = memory_.Allocate(Bytes(8));
  EXPECT_FALSE(sources_.RecordStream(ordinary, StreamOf(2)));
  memory_.Free(ordinary);
}

TEST_F(StreamSourcesTest, AStepOnAnotherStreamWaitsForTheOneBefore) {
  Step(0);
  ASSERT_TRUE(arena_->Prepare().ok());
  Step(0);
  memory_.TakeSaid();
  Step(3);
  EXPECT_EQ(arena_->report().counts.served, 2);
  EXPECT_THAT(memory_.TakeSaid(), ElementsAre("3 waits for 0"));
  Step(3);
  EXPECT_THAT(memory_.TakeSaid(), IsEmpty());
  // The caching allocator waits for both before it gives the region to others.
  arena_->Forget();
  EXPECT_THAT(memory_.TakeSaid(), ElementsAre("used on 3"));
  EXPECT_EQ(memory_.live(), 0U);
}

TEST_F(StreamSourcesTest, AllocatedIsWhatIsUsedOfARegionNotTheRegion) {
  void* const before = Allocate(512, 0);
  Free(Allocate(10240, 0));
  const auto shown = [this] { return sources_.WithoutRegions(memory_.Figures()); };
  EXPECT_EQ(shown().peak, 512 + 10240);
  memory_.ResetPeak();
  sources_.ResetPeak();
  Step(0);
  EXPECT_EQ(shown().peak, 512 + 1024 + 3072);
  memory_.ResetPeak();
  sources_.ResetPeak();
  ASSERT_TRUE(arena_->Prepare().ok());
  EXPECT_GE(memory_.Figures().current, 512 + 1024 + 3072);
  EXPECT_EQ(shown().current, 512);
  EXPECT_EQ(shown().peak, 512);
  EXPECT_EQ(meter_.current(), Bytes(512));
  Step(0);
  EXPECT_EQ(shown().current, 512);
  EXPECT_EQ(shown().peak, 512 + 1024 + 3072);
  memory_.ResetPeak();
  sources_.ResetPeak();
  EXPECT_EQ(shown().peak, 512);
  Free(before);
}

TEST_F(StreamSourcesTest, ARegionThatIsRefusedIsAnError) {
  Step(0);
  memory_.most = Bytes(2000);
  EXPECT_EQ(arena_->Prepare().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(meter_.current(), Bytes(0));
  EXPECT_EQ(sources_.WithoutRegions({7, 9}).peak, 9);
}

}  // namespace
}  // namespace stowage

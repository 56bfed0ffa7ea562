// What the simulated device adds to what all devices promise, and the parts they are made of.
#include "client/torch/offload/simulated_device.h"
#include "client/torch/base/torch_status.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/host_copies.h"
#include "client/torch/offload/host_pool.h"
#include "tests/support/units.h"

namespace stowage {
namespace {

constexpr TensorKind kSaved = TensorKind::kSaved;

TransferModel Link(int64_t bytes_per_second, bool full_duplex = false) {
  const CopyCost cost{bytes_per_second, Nanos(1000)};
  return {cost, cost, full_duplex, Bytes(64 * kMiB)};
}

std::unique_ptr<SimulatedDevice> Simulated(const TransferModel& link) {
  auto device = SimulatedDevice::Create(link);
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

class SimulatedDeviceTest : public testing::Test {
 protected:
  const at::Tensor tensor_ = torch::arange(1 << 18);
  const std::vector<StoragePtr> storages_ = {StoragePtrOf(tensor_)};
};

TEST_F(SimulatedDeviceTest, CopiesRunBesideCompute) {
  const auto device =
      Simulated(Link(4 * kMiB));  // 0.5 s: long beside what a loaded machine takes to look
  HostCopies trips(device.get());
  trips.StartOffload(OffloadStart(kSaved, 1), storages_);
  EXPECT_EQ(device->running(), 1);
  // Nobody waits for it.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (device->running() > 0 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_EQ(device->running(), 0);
}

TEST_F(SimulatedDeviceTest, CopiesTakeTheirTimeOneAfterTheOther) {
  const auto device = Simulated(Link(100 * kMiB));
  HostCopies trips(device.get());
  const auto start = std::chrono::steady_clock::now();
  trips.StartOffload(OffloadStart(kSaved, 1), storages_);
  trips.StartOffload(OffloadStart(kSaved, 2), storages_);
  trips.Continue(OffloadWait(kSaved, 2));
  EXPECT_EQ(device->running(), 0);
  // Two of 2 MiB.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
}

TEST_F(SimulatedDeviceTest, DirectionsShareAChannelUnlessTheLinkIsFullDuplex) {
  const at::Tensor small = torch::arange(16);
  for (const bool full : {false, true}) {
    TransferModel link = Link(int64_t{8} << 30, full);
    const auto device = Simulated(link);
    HostCopies trips(device.get());
    trips.StartOffload(OffloadStart(kSaved, 1), {StoragePtrOf(small)});
    trips.Continue(OffloadWait(kSaved, 1));
    std::vector<std::byte> block(1 << 24);
    std::vector<std::byte> there(1 << 24);
    const auto long_copy = device->StartCopy(
        Stream::kToHost, std::vector<CopyPiece>(8, {there.data(), block.data(), block.size()}));
    trips.Continue(PrefetchStart(kSaved, 1));
    trips.Continue(PrefetchWait(kSaved, 1));
    if (!full) {
      EXPECT_EQ(device->running(), 0);
    }
  }
  // One that is never waited for would hold a shared channel up for a day.
  TransferModel link = Link(int64_t{8} << 30, /*full_duplex=*/true);
  link.to_host.latency = Nanos(int64_t{86400} * 1000000000);
  const auto device = Simulated(link);
  std::vector<std::byte> block(64);
  std::vector<std::byte> there(64);
  const auto endless = device->StartCopy(Stream::kToHost, {{there.data(), block.data(), 64}});
  device->StartCopy(Stream::kToDevice, {{there.data(), block.data(), 64}})->Wait();
  EXPECT_EQ(device->running(), 1);
}

TEST_F(SimulatedDeviceTest, NothingIsCopiedBeforeTheCopyEnds) {
  TransferModel link = Link(int64_t{8} << 30);
  link.to_host.latency = Nanos(int64_t{3600} * 1000000000);
  const auto device = Simulated(link);
  const std::vector<std::byte> block(64, std::byte{1});
  std::vector<std::byte> there(64, std::byte{2});
  device->StartCopy(Stream::kToHost, {{there.data(), block.data(), 64}}).reset();
  EXPECT_EQ(there, std::vector<std::byte>(64, std::byte{2}));
}

TEST_F(SimulatedDeviceTest, AFailureArrivesAtTheWait) {
  const auto device = Simulated(Link(int64_t{8} << 30));
  HostCopies trips(device.get());
  device->FailCopyAfter(1);
  trips.StartOffload(OffloadStart(kSaved, 1), storages_);
  trips.Continue(OffloadWait(kSaved, 1));
  trips.Continue(PrefetchStart(kSaved, 1));
  EXPECT_THROW(trips.Continue(PrefetchWait(kSaved, 1)), std::runtime_error);
}

TEST_F(SimulatedDeviceTest, ALentTensorSurvivesACopyThatFails) {
  const auto device = Simulated(Link(int64_t{8} << 30));
  for (const int failing : {0, 1}) {
    HostCopies trips(device.get());
    device->FailCopyAfter(failing);
    EXPECT_THROW(
        {
          trips.StartOffload(OffloadStart(kSaved, 1), storages_, /*lent=*/true);
          trips.Continue(OffloadWait(kSaved, 1));
          trips.Continue(PrefetchStart(kSaved, 1));
          trips.Continue(PrefetchWait(kSaved, 1));
        },
        std::runtime_error);
    EXPECT_TRUE(trips.ReturnLent().ok());
    EXPECT_TRUE(tensor_.equal(torch::arange(1 << 18)));
  }
}

TEST_F(SimulatedDeviceTest, ALentTensorThatCannotComeBackIsAnError) {
  const auto device = Simulated(Link(int64_t{8} << 30));
  HostCopies trips(device.get());
  const at::Tensor lost = torch::arange(64);
  trips.StartOffload(OffloadStart(kSaved, 1), {StoragePtrOf(lost)}, /*lent=*/true);
  trips.Continue(OffloadWait(kSaved, 1));
  device->FailCopyAfter(0);
  const absl::Status status = trips.ReturnLent();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "an input that is on the host cannot come back and is lost: the simulated copy failed");
}

TEST_F(SimulatedDeviceTest, APrefetchCanRunOutOfDeviceMemoryAndBeTriedAgain) {
  const auto device = Simulated(Link(int64_t{8} << 30));
  TrackingAllocator* const allocator = TrackingAllocator::Get();
  HostCopies trips(device.get());
  const at::Tensor small = torch::arange(64);
  trips.StartOffload(OffloadStart(kSaved, 1), {StoragePtrOf(small), StoragePtrOf(tensor_)});
  trips.Continue(OffloadWait(kSaved, 1));
  const Bytes live = allocator->current();
  allocator->SetLimit(live + Bytes(1 << 20));
  EXPECT_THROW(trips.Continue(PrefetchStart(kSaved, 1)), c10::OutOfMemoryError);
  allocator->ClearLimit();
  EXPECT_EQ(allocator->current(), live);
  trips.Continue(PrefetchStart(kSaved, 1));
  trips.Continue(PrefetchWait(kSaved, 1));
  EXPECT_TRUE(small.equal(torch::arange(64)));
  EXPECT_TRUE(tensor_.equal(torch::arange(1 << 18)));
}

TEST_F(SimulatedDeviceTest, ALinkThatIsNotValidIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(SimulatedDevice::Create(TransferModel()).status()));
}

struct Counted {
  int allocated = 0;
  int freed = 0;
  size_t bytes = 0;

  HostPool::Source Source() {
    return {[this](size_t size) {
              ++allocated;
              bytes += size;
              return std::aligned_alloc(64, size);
            },
            [this](void* data) {
              ++freed;
              std::free(data);
            }};
  }
};

TEST(HostPoolTest, BlocksOfWhatWasAllocatedOnceAreUsedAgain) {
  Counted memory;
  {
    HostPool pool(Bytes(1000), Bytes(1000), memory.Source());
    std::vector<HostPool::Block> blocks;
    for (int round = 0; round < 100; ++round) {
      for (const size_t bytes : {100, 300, 64, 1, 400}) blocks.push_back(pool.Allocate(bytes));
      for (const HostPool::Block& block : blocks) {
        ASSERT_EQ(block.extents().size(), 1U);
        std::memset(block.extents()[0].data, round, block.bytes());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block.extents()[0].data) % 64, 0U);
      }
      std::swap(blocks[static_cast<size_t>(round) % 5], blocks[2]);
      blocks.clear();
      // All in one piece again.
      EXPECT_EQ(pool.Allocate(1000).bytes(), 1000U);
    }
    EXPECT_EQ(pool.held(), Bytes(0));
    EXPECT_EQ(pool.peak(), Bytes(1000));
    EXPECT_EQ(memory.allocated, 1);
  }
  EXPECT_EQ(memory.freed, 1);
}

// Page-locked memory beyond the limit is what the rest of the machine lacks.
TEST(HostPoolTest, WhatIsFreeInPiecesIsUsedInPiecesAndNothingBeyondTheLimit) {
  Counted memory;
  {
    HostPool pool(Bytes(640), Bytes(0), memory.Source());
    EXPECT_EQ(memory.allocated, 0);
    std::vector<HostPool::Block> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(pool.Allocate(64));
    for (size_t i = 0; i < 10; i += 2) blocks[i] = {};
    const HostPool::Block whole = pool.Allocate(320);
    EXPECT_EQ(pool.held(), Bytes(640));
    EXPECT_THROW(pool.Allocate(1), HostMemoryError);
    EXPECT_EQ(memory.bytes, 640U);
    EXPECT_EQ(whole.extents().size(), 5U);
    std::vector<bool> seen(320);
    whole.ForEachPiece(0, 320, [&](std::byte* data, size_t offset, size_t size) {
      std::memset(data, 1, size);
      for (size_t i = offset; i < offset + size; ++i) seen[i] = true;
    });
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 320);
    size_t inner = 0;
    whole.ForEachPiece(60, 200, [&](std::byte*, size_t offset, size_t size) {
      EXPECT_EQ(offset, inner);
      inner += size;
    });
    EXPECT_EQ(inner, 200U);
    for (size_t i = 1; i < 10; i += 2) blocks[i] = {};
    EXPECT_EQ(pool.Allocate(320).bytes(), 320U);
  }
  EXPECT_EQ(memory.freed, memory.allocated);
}

TEST(HostPoolTest, MemoryIsTakenAsItIsNeeded) {
  Counted memory;
  HostPool pool(Bytes(1000 * kMiB), Bytes(0), memory.Source());
  EXPECT_EQ(memory.bytes, 0U);
  std::vector<HostPool::Block> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(pool.Allocate(kMiB));
  EXPECT_LE(memory.bytes, static_cast<size_t>(200 * kMiB));
  EXPECT_LE(memory.allocated, 8);
}

TEST(HostPoolTest, ASystemWithoutMemoryIsAnError) {
  const HostPool::Source none = {[](size_t) -> void* { return nullptr; }, [](void*) {}};
  EXPECT_THROW(HostPool(Bytes(100), Bytes(100), none), HostMemoryError);
  HostPool pool(Bytes(100), Bytes(0), none);
  EXPECT_THROW(pool.Allocate(10), HostMemoryError);
  EXPECT_EQ(pool.held(), Bytes(0));
}

}  // namespace
}  // namespace stowage

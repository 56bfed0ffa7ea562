// What every execution device promises, on each that this machine has.
#include "client/torch/offload/execution_device.h"
#include "client/torch/base/torch_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/host_copies.h"
#include "client/torch/offload/simulated_device.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/training_devices.h"
#include "tests/support/units.h"
#ifdef STOWAGE_TORCH_CUDA
#include "client/torch/cuda/cuda_device.h"
#endif

namespace stowage {
namespace {

using testing::HasSubstr;

constexpr TensorKind kSaved = TensorKind::kSaved;

TransferModel Link(int64_t bytes_per_second, bool full_duplex = false, int64_t host = 64 * kMiB) {
  const CopyCost cost{bytes_per_second, Nanos(1000)};
  return {cost, cost, full_duplex, Bytes(host)};
}

struct Backend {
  const char* name;
  std::function<std::unique_ptr<ExecutionDevice>(const TransferModel&)> make;
};

std::unique_ptr<SimulatedDevice> Simulated(const TransferModel& link) {
  auto device = SimulatedDevice::Create(link);
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

std::vector<Backend> Backends() {
  return {{"simulated", Simulated},
          {"test",
           [](const TransferModel& link) -> std::unique_ptr<ExecutionDevice> {
             return TestDevice::Create(link).value();
           }},
          {"cuda", [](const TransferModel& link) -> std::unique_ptr<ExecutionDevice> {
#ifdef STOWAGE_TORCH_CUDA
             if (torch::cuda::is_available()) return CudaDevice::Create(0, link).value();
#endif
             static_cast<void>(link);
             return nullptr;
           }}};
}

class ExecutionDeviceTest : public testing::TestWithParam<std::tuple<Backend, bool>> {
 protected:
  void SetUp() override {
    SKIP_IF_MISSING(
        TrainingDeviceNamed(std::get<0>(GetParam()).name == std::string("cuda") ? "cuda" : "cpu"));
    Use(64 * kMiB);
  }

  void Use(int64_t host) {
    trips_.reset();
    device_ = std::get<0>(GetParam()).make(Link(int64_t{8} << 30, std::get<1>(GetParam()), host));
    trips_ = std::make_unique<HostCopies>(device_.get());
  }

  Bytes Live() const { return device_->meter()->current(); }

  // Of that many bytes, which count up.
  at::Tensor Numbers(int64_t bytes) const {
    const auto options = torch::TensorOptions().dtype(torch::kInt).device(device_->device());
    return torch::arange(bytes / 4, options);
  }

  static std::vector<StoragePtr> Storages(const std::vector<at::Tensor>& tensors) {
    std::vector<StoragePtr> storages;
    for (const at::Tensor& tensor : tensors) storages.push_back(StoragePtrOf(tensor));
    return storages;
  }

  void ThereAndBack(int stage) {
    trips_->Continue(OffloadWait(kSaved, stage));
    trips_->Continue(PrefetchStart(kSaved, stage));
    trips_->Continue(PrefetchWait(kSaved, stage));
  }

  std::unique_ptr<ExecutionDevice> device_;
  std::unique_ptr<HostCopies> trips_;
};

TEST_P(ExecutionDeviceTest, RecentPeaksBeginAnewAndLeaveThePeakAsItIs) {
  MemoryMeter& meter = *device_->meter();
  const Bytes live = Live();
  meter.ResetPeak();
  { const at::Tensor most = Numbers(5 * kMiB); }
  const at::Tensor kept = Numbers(2 * kMiB);
  EXPECT_EQ(meter.TakeRecentPeak(), live + Bytes(5 * kMiB));
  EXPECT_EQ(meter.TakeRecentPeak(), live + Bytes(2 * kMiB));
  { const at::Tensor more = Numbers(kMiB); }
  EXPECT_EQ(meter.TakeRecentPeak(), live + Bytes(3 * kMiB));
  EXPECT_EQ(meter.peak(), live + Bytes(5 * kMiB));
  EXPECT_GE(meter.peak_reserved(), meter.peak());
  meter.ResetPeak();
  EXPECT_EQ(meter.peak(), live + Bytes(2 * kMiB));
}

TEST_P(ExecutionDeviceTest, DeviceMemoryGoesAtTheWaitAndComesAtTheStart) {
  const at::Tensor first = Numbers(kMiB);
  const at::Tensor second = Numbers(2 * kMiB);
  const at::Tensor view = first.view({2, -1})[1];
  const at::Tensor expected = view.clone();
  const Bytes with = Live();
  const Bytes without = with - Bytes(3 * kMiB);
  HostPool& host = *device_->host();
  host.ResetPeak();

  trips_->StartOffload(OffloadStart(kSaved, 1), Storages({first, second}));
  EXPECT_EQ(Live(), with);
  EXPECT_EQ(host.held(), Bytes(3 * kMiB));
  EXPECT_TRUE(view.equal(expected));  // may be read while it leaves
  EXPECT_FALSE(trips_->IsAway(kSaved, 1));
  trips_->Continue(OffloadWait(kSaved, 1));
  EXPECT_EQ(Live(), without);
  EXPECT_TRUE(trips_->IsAway(kSaved, 1));
  EXPECT_FALSE(trips_->IsAway(kSaved, 1, 1));
  // What takes the memory meanwhile.
  const at::Tensor other = torch::zeros_like(Numbers(3 * kMiB));
  trips_->Continue(PrefetchStart(kSaved, 1));
  EXPECT_EQ(Live(), with + Bytes(3 * kMiB));
  EXPECT_TRUE(trips_->IsAway(kSaved, 1));
  EXPECT_EQ(host.held(), Bytes(3 * kMiB));
  trips_->Continue(PrefetchWait(kSaved, 1));
  EXPECT_FALSE(trips_->IsAway(kSaved, 1));
  EXPECT_EQ(Live(), with + Bytes(3 * kMiB));
  EXPECT_EQ(host.held(), Bytes(0));
  EXPECT_EQ(host.peak(), Bytes(3 * kMiB));
  EXPECT_TRUE(view.equal(expected));
  EXPECT_TRUE(second.equal(Numbers(2 * kMiB)));
  EXPECT_TRUE(other.eq(0).all().item<bool>());
  EXPECT_EQ(trips_->offloaded(), Bytes(3 * kMiB));
  EXPECT_EQ(trips_->prefetched(), Bytes(3 * kMiB));
}

TEST_P(ExecutionDeviceTest, ManyCopiesOnTheirWayAtOnce) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 12; ++i) tensors.push_back(Numbers(65536 * (i + 1)) + i);
  for (int i = 0; i < 12; ++i) {
    trips_->StartOffload(OffloadStart(kSaved, i), Storages({tensors[static_cast<size_t>(i)]}));
  }
  for (int i = 0; i < 12; ++i) trips_->Continue(OffloadWait(kSaved, i));
  const at::Tensor other = torch::zeros_like(Numbers(4 * kMiB));
  for (int i = 11; i >= 0; --i) trips_->Continue(PrefetchStart(kSaved, i));
  for (int i = 0; i < 12; ++i) trips_->Continue(PrefetchWait(kSaved, i));
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(tensors[static_cast<size_t>(i)].equal(Numbers(65536 * (i + 1)) + i)) << i;
  }
  EXPECT_EQ(device_->host()->held(), Bytes(0));
}

TEST_P(ExecutionDeviceTest, WhatComputeDoesBeforeAStartIsCopiedAndWhatItDoesAfterAWaitIsNot) {
  at::Tensor tensor = Numbers(4 * kMiB);
  for (int i = 0; i < 20; ++i) tensor.add_(1);
  trips_->StartOffload(OffloadStart(kSaved, 1), Storages({tensor}));
  trips_->Continue(OffloadWait(kSaved, 1));
  // Memory that was the tensor's, written to at once.
  const at::Tensor other = torch::full_like(Numbers(4 * kMiB), 7);
  trips_->Continue(PrefetchStart(kSaved, 1));
  trips_->Continue(PrefetchWait(kSaved, 1));
  tensor.add_(1);
  EXPECT_TRUE(tensor.equal(Numbers(4 * kMiB) + 21));
  EXPECT_TRUE(other.eq(7).all().item<bool>());
}

TEST_P(ExecutionDeviceTest, WhatIsGivenUpLeavesNothingBehind) {
  const at::Tensor leaves = Numbers(kMiB);
  const at::Tensor comes = Numbers(kMiB);
  const Bytes live = Live();
  trips_->StartOffload(OffloadStart(kSaved, 1), Storages({comes}));
  trips_->Continue(OffloadWait(kSaved, 1));
  trips_->Continue(PrefetchStart(kSaved, 1));
  trips_->StartOffload(OffloadStart(kSaved, 2), Storages({leaves}));
  trips_.reset();
  EXPECT_EQ(device_->host()->held(), Bytes(0));
  EXPECT_EQ(Live(), live - Bytes(kMiB));
  EXPECT_TRUE(leaves.equal(Numbers(kMiB)));
}

TEST_P(ExecutionDeviceTest, WhatTheHostHasCanBeDiscarded) {
  const at::Tensor tensor = Numbers(kMiB);
  for (const int part : {1, 2}) {
    trips_->StartOffload(OffloadStart(kSaved, 3, part), Storages({tensor.clone()}));
    trips_->Continue(OffloadWait(kSaved, 3, part));
    EXPECT_TRUE(trips_->IsAway(kSaved, 3, part));
  }
  trips_->Discard(kSaved, 2);
  EXPECT_EQ(device_->host()->held(), Bytes(2 * kMiB));
  trips_->Discard(kSaved, 3);
  EXPECT_EQ(device_->host()->held(), Bytes(0));
  EXPECT_FALSE(trips_->IsAway(kSaved, 3, 1));
}

TEST_P(ExecutionDeviceTest, HostMemoryIsBounded) {
  Use(3 * kMiB);
  const at::Tensor large = Numbers(2 * kMiB);
  const at::Tensor small = Numbers(kMiB);
  trips_->StartOffload(OffloadStart(kSaved, 1), Storages({large}));
  try {
    trips_->StartOffload(OffloadStart(kSaved, 2), Storages({large}));
    FAIL();
  } catch (const HostMemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2097152 bytes asked for, 2097152 in use, limit 3145728"));
  }
  trips_->StartOffload(OffloadStart(kSaved, 3), Storages({small}));
  ThereAndBack(1);
  ThereAndBack(3);
  EXPECT_TRUE(large.equal(Numbers(2 * kMiB)));
  EXPECT_TRUE(small.equal(Numbers(kMiB)));
}

TEST_P(ExecutionDeviceTest, WhatWasLentGoesBackToThoseWhoHoldIt) {
  const at::Tensor held = Numbers(kMiB);
  const Bytes live = Live();
  {
    const at::Tensor forgotten = Numbers(kMiB);
    ASSERT_TRUE(CanLend(held, *device_));
    trips_->StartOffload(OffloadStart(kSaved, 1), Storages({held}), /*lent=*/true);
    trips_->StartOffload(OffloadStart(kSaved, 2), Storages({forgotten}), /*lent=*/true);
    trips_->Continue(OffloadWait(kSaved, 1));
    trips_->Continue(OffloadWait(kSaved, 2));
  }
  trips_->Discard(kSaved, 1);
  EXPECT_EQ(Live(), live - Bytes(kMiB));
  EXPECT_TRUE(trips_->ReturnLent().ok());
  EXPECT_EQ(Live(), live);
  EXPECT_TRUE(held.equal(Numbers(kMiB)));
  EXPECT_EQ(trips_->prefetched(), Bytes(kMiB));
  EXPECT_EQ(device_->host()->held(), Bytes(0));
}

TEST_P(ExecutionDeviceTest, OnlyWholeStoragesOfTheAllocatorCanBeLent) {
  const at::Tensor tensor = Numbers(kMiB);
  EXPECT_TRUE(CanLend(tensor.view({2, -1}), *device_));
  EXPECT_FALSE(CanLend(tensor.narrow(0, 0, 10), *device_));
  std::vector<float> numbers(8);
  EXPECT_FALSE(CanLend(torch::from_blob(numbers.data(), {8}), *device_));
}

INSTANTIATE_TEST_SUITE_P(Devices, ExecutionDeviceTest,
                         testing::Combine(testing::ValuesIn(Backends()), testing::Bool()),
                         [](const auto& backend) {
                           return std::string(std::get<0>(backend.param).name) +
                                  (std::get<1>(backend.param) ? "_full_duplex" : "_half_duplex");
                         });

}  // namespace
}  // namespace stowage

#include "client/torch/execute/movable_parts.h"

#include <ATen/SavedTensorHooks.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/saved_slots.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/device_use.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/model/transfer_model.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

// Bytes that no tensor of the graph has.
at::Tensor Bytes1024() { return torch::empty({1024}, torch::kByte); }

constexpr CopyCost kCost{int64_t{1} << 30, Nanos(1)};
constexpr TransferModel kLink{kCost, kCost, /*full_duplex=*/true, Bytes(1 << 20)};

class MovablePartsTest : public ::testing::Test {
 protected:
  // As the cursor of a plan asks.
  std::vector<StoragePtr> Parts(ExecutionDevice* device,
                                const std::function<at::Tensor()>& forward) const {
    SavedSlots slots;
    const auto recorded = [&] {
      at::Tensor y;
      {
        const SavedSlots::Recording recording(&slots, /*keeps=*/true);
        y = forward();
      }
      std::vector<const c10::StorageImpl*> held;
      AppendStorages({x_, y}, &held);
      slots.Settle(held, {y});
      return Tensors(y);
    };
    return MovableParts(
        device, recorded, [&] { return slots.OwnStorages(device->device()); }, /*warm=*/true);
  }

  static void OnAnotherThread(const std::function<void()>& run) { std::thread(run).join(); }

  const std::unique_ptr<SimulatedDevice> device_ = SimulatedDevice::Create(kLink).value();
  at::Tensor x_ = torch::rand({8}).requires_grad_();
};

class MovablePartsOnDevicesTest : public MovablePartsTest,
                                  public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    SKIP_IF_MISSING(training_device_);
    linked_ = MakeLinkedDevice(training_device_, kLink);
    x_ = torch::rand({8}).to(training_device_.device).requires_grad_();
  }

  const TrainingDevice& training_device_ = TrainingDeviceNamed(GetParam());
  std::unique_ptr<ExecutionDevice> linked_;
};

TEST_P(MovablePartsOnDevicesTest, WhereHooksAreForbiddenNothingCanMove) {
  const auto forward = [this] { return x_.exp().exp(); };
  EXPECT_EQ(Parts(linked_.get(), forward).size(), 1U);
  at::SavedTensorDefaultHooks::disable("none here");
  try {
    Parts(linked_.get(), forward);
    ADD_FAILURE();
  } catch (const StageRuleError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("hooks are forbidden here: none here"));
  }
  at::SavedTensorDefaultHooks::enable();
}

INSTANTIATE_TEST_SUITE_P(Devices, MovablePartsOnDevicesTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

TEST_F(MovablePartsTest, WhatOtherThreadsAllocateIsTheirs) {
  at::Tensor theirs;
  const auto parts = Parts(device_.get(), [&] {
    OnAnotherThread([&] { theirs = Bytes1024(); });
    return x_.exp().exp();
  });
  EXPECT_EQ(parts.size(), 1U);
}

TEST_F(MovablePartsTest, WhatOtherThreadsFreeHidesNothing) {
  at::Tensor theirs, hidden;
  OnAnotherThread([&] { theirs = torch::empty({4096}, torch::kByte); });
  EXPECT_THROW(Parts(device_.get(),
                     [&] {
                       hidden = Bytes1024();
                       OnAnotherThread([&] { theirs.reset(); });
                       return x_.exp().exp();
                     }),
               ImmovableError);
}

// As that of a GPU is.
class SharedMeter : public MemoryMeter {
 public:
  Bytes current() const override { return TrackingAllocator::Get()->current(); }
  Bytes peak() const override { return TrackingAllocator::Get()->peak(); }
  void ResetPeak() override { TrackingAllocator::Get()->ResetPeak(); }
};

class SharedDevice : public ExecutionDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return &meter_; }

 private:
  SharedMeter meter_;
};

// Plans that copy are then not given up for good.
TEST_F(MovablePartsTest, WhereThreadsAreNotToldApartTwoThatStepAreRefused) {
  SharedDevice shared;
  const DeviceUse own(shared.device());
  at::Tensor theirs;
  const auto forward = [&] {
    OnAnotherThread([&] {
      const DeviceUse step(shared.device());
      theirs = Bytes1024();
    });
    return x_.exp().exp();
  };
  try {
    Parts(&shared, forward);
    ADD_FAILURE();
  } catch (const ImmovableError& error) {
    ADD_FAILURE() << error.what();
  } catch (const StageRuleError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("another thread steps on this device"));
  }
  // Of this thread alone it cannot move.
  at::Tensor hidden;
  EXPECT_THROW(Parts(&shared,
                     [&] {
                       hidden = Bytes1024();
                       return x_.exp().exp();
                     }),
               ImmovableError);
}

}  // namespace
}  // namespace stowage

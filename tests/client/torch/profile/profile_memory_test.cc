// Profiles on a device that has little memory, whose allocator keeps what it was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "client/torch/profile/chain_profiler.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/training_devices.h"
#include "tests/support/units.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class ProfileMemoryTest : public testing::Test {
 protected:
  ProfileMemoryTest() {
    model_.AddStage("fc", "linear", torch::nn::Linear(256, 256));
    // Each saves four times its output, 256 KiB.
    for (int i = 0; i < 40; ++i) model_.AddFunction("s", "squares", Squares);
    model_.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
    MoveTo(device_.device, model_);
    options_.repeats = 3;
    options_.device = device_.execution;
    options_.report = &report_;
  }
  ~ProfileMemoryTest() override { TestDevice::memory().SetLimit(INT64_MAX); }

  static at::Tensor Squares(const at::Tensor& x) {
    at::Tensor y = x;
    for (int i = 0; i < 4; ++i) y = y.mul(y);
    return y;
  }

  // Beside what the allocator holds now.
  static void LeaveFree(int64_t bytes) {
    TestDevice::memory().Empty();
    TestDevice::memory().SetLimit(TestDevice::memory().stats().reserved_bytes + bytes);
  }

  absl::Status Profile() {
    const at::Tensor target = torch::zeros({1}, at::TensorOptions(device_.device));
    return ProfileChain(model_, input_, target, options_).status();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed("test");
  ChainModel model_{"much"};
  const at::Tensor input_ = torch::ones({256, 256}, at::TensorOptions(device_.device));
  ProfileOptions options_;
  ProfileReport report_;
};

TEST_F(ProfileMemoryTest, AStepThatTakesMoreThanIsFreeIsNotTried) {
  ASSERT_TRUE(Profile().ok());
  EXPECT_EQ(report_.calibration.steps, 3) << report_.calibration.why_not;
  // A pass has all activations, 10 MiB; a step stores 40 MiB.
  LeaveFree(16 * kMiB);
  const int64_t refusals = TestDevice::memory().stats().refusals;
  const absl::Status status = Profile();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(report_.calibration.steps, 0);
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("of memory are free"));
  EXPECT_EQ(TestDevice::memory().stats().refusals, refusals);
}

TEST_F(ProfileMemoryTest, GradientsThatDoNotFitAreNotTried) {
  ASSERT_TRUE(Profile().ok());
  TestDevice::memory().SetLimit(TestDevice::memory().stats().allocated_bytes + kMiB / 8);
  const int64_t refusals = TestDevice::memory().stats().refusals;
  const absl::Status status = Profile();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("gradients of its own"));
  EXPECT_EQ(TestDevice::memory().stats().refusals, refusals);
}

TEST_F(ProfileMemoryTest, WhatAProfileMadeTheAllocatorKeepIsGivenBack) {
  ASSERT_TRUE(Profile().ok());
  const int64_t reserved = TestDevice::memory().stats().reserved_bytes;
  TestDevice::memory().Empty();
  EXPECT_EQ(TestDevice::memory().stats().reserved_bytes, reserved);
  // Where it fails, too: there is no room for the activations of a pass.
  LeaveFree(2 * kMiB);
  EXPECT_FALSE(Profile().ok());
  const int64_t failed = TestDevice::memory().stats().reserved_bytes;
  TestDevice::memory().Empty();
  EXPECT_EQ(TestDevice::memory().stats().reserved_bytes, failed);
}

}  // namespace
}  // namespace stowage

#include "client/torch/execute/repeatable_forward.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "client/torch/model/model_state.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

// A draw, and a buffer that counts.
class RepeatableForwardTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  Tensors Draw() {
    counter_.add_(1);
    return at::rand({3}, at::TensorOptions(device_.device));
  }
  template <class Forward>
  Tensors RunForward(const Forward& forward) {
    return forward_.Run({counter_}, device_.device, forward);
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
  at::Tensor counter_ = at::zeros({1}).to(device_.device);
  RepeatableForward forward_;
};

TEST_P(RepeatableForwardTest, RunsAgainAsAtFirstAndLeavesNoTrace) {
  const auto draw = [this] { return Draw(); };
  const Tensors first = RunForward(draw);
  const RandomState after = RandomState::Capture(device_.device);
  EXPECT_TRUE(RunForward(draw)[0].equal(first[0]));
  EXPECT_TRUE(RandomState::Capture(device_.device) == after);
  EXPECT_EQ(counter_.item<float>(), 1);
}

TEST_P(RepeatableForwardTest, IsKnownToWhatRunsAgainOnItsThreadAlone) {
  std::vector<bool> known;
  const auto look = [&] {
    known.push_back(IsRecomputing());
    std::thread([&] { EXPECT_FALSE(IsRecomputing()); }).join();
    return Draw();
  };
  RunForward(look);
  RunForward(look);
  EXPECT_EQ(known, (std::vector<bool>{false, true}));
  EXPECT_THROW(RunForward([]() -> Tensors { throw std::runtime_error(""); }), std::runtime_error);
  EXPECT_FALSE(IsRecomputing());
}

TEST_P(RepeatableForwardTest, WhatRunsOnceCannotRunAgain) {
  const auto draw = [this] { return Draw(); };
  EXPECT_FALSE(forward_.has_run());
  forward_.RunOnce(draw);
  EXPECT_TRUE(forward_.has_run());
  EXPECT_THROW(RunForward(draw), std::logic_error);
  EXPECT_THROW(forward_.RunOnce(draw), std::logic_error);
  EXPECT_EQ(counter_.item<float>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, RepeatableForwardTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage

#include "client/torch/execute/repeatable_forward.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "client/torch/model/model_state.h"

namespace stowage {
namespace {

// A draw, and a buffer that counts.
class RepeatableForwardTest : public testing::Test {
 protected:
  Tensors Draw() {
    counter_.add_(1);
    return at::rand({3});
  }

  at::Tensor counter_ = at::zeros({1});
  RepeatableForward forward_;
};

TEST_F(RepeatableForwardTest, RunsAgainAsAtFirstAndLeavesNoTrace) {
  const auto draw = [this] { return Draw(); };
  const Tensors first = forward_.Run({counter_}, at::kCPU, draw);
  const RandomState after = RandomState::Capture();
  EXPECT_TRUE(forward_.Run({counter_}, at::kCPU, draw)[0].equal(first[0]));
  EXPECT_TRUE(RandomState::Capture() == after);
  EXPECT_EQ(counter_.item<float>(), 1);
}

TEST_F(RepeatableForwardTest, IsKnownToWhatRunsAgainOnItsThreadAlone) {
  std::vector<bool> known;
  const auto look = [&] {
    known.push_back(IsRecomputing());
    std::thread([&] { EXPECT_FALSE(IsRecomputing()); }).join();
    return Draw();
  };
  forward_.Run({counter_}, at::kCPU, look);
  forward_.Run({counter_}, at::kCPU, look);
  EXPECT_EQ(known, (std::vector<bool>{false, true}));
  EXPECT_THROW(
      forward_.Run({counter_}, at::kCPU, [&]() -> Tensors { throw std::runtime_error(""); }),
      std::runtime_error);
  EXPECT_FALSE(IsRecomputing());
}

TEST_F(RepeatableForwardTest, WhatRunsOnceCannotRunAgain) {
  const auto draw = [this] { return Draw(); };
  EXPECT_FALSE(forward_.has_run());
  forward_.RunOnce(draw);
  EXPECT_TRUE(forward_.has_run());
  EXPECT_THROW(forward_.Run({counter_}, at::kCPU, draw), std::logic_error);
  EXPECT_THROW(forward_.RunOnce(draw), std::logic_error);
  EXPECT_EQ(counter_.item<float>(), 1);
}

}  // namespace
}  // namespace stowage

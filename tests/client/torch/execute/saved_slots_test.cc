#include "client/torch/execute/saved_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "client/torch/base/tensor_storage.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

using testing::HasSubstr;

std::string WhatOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

// A part that saves its input, its output and two tensors of its own.
at::Tensor Part(const at::Tensor& x) { return ((x * x).exp() * (x + 1).tanh()).sigmoid(); }

// Of each tensor of a part: a whole number of blocks on any device.
constexpr int64_t kElements = 1024;
constexpr int64_t kTensorBytes = 4 * kElements;

class SavedSlotsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  at::Tensor FirstForward(bool keeps) {
    at::Tensor y;
    {
      const SavedSlots::Recording recording(&slots_, keeps);
      y = Part(x_);
    }
    std::vector<const c10::StorageImpl*> held;
    AppendStorages({x_, y}, &held);
    slots_.Settle(held, {y});
    return y;
  }

  template <class Forward>
  void Refill(const Forward& forward) {
    SavedSlots::Refilling refilling(&slots_);
    forward(x_.detach().requires_grad_());
    refilling.Check();
  }

  at::Tensor Gradient(const at::Tensor& y) {
    slots_.LetGo();
    return torch::autograd::grad({y.sum()}, {x_}).front();
  }

  size_t OwnStorages() const { return slots_.OwnStorages(device_.device).size(); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
  SavedSlots slots_;
  at::Tensor x_ = torch::rand({kElements}).to(device_.device).requires_grad_();
  at::Tensor plain_ = Gradient(Part(x_));
};

TEST_P(SavedSlotsTest, WhatIsDroppedIsGoneAndSaysSo) {
  const at::Tensor y = FirstForward(/*keeps=*/true);
  const Bytes live = device_.live();
  // exp's output and tanh's; x, y and what they are made of are others'.
  EXPECT_EQ(OwnStorages(), 2U);
  slots_.Drop();
  EXPECT_EQ(device_.live(), live - Bytes(2 * kTensorBytes));
  EXPECT_EQ(OwnStorages(), 0U);
  EXPECT_THAT(WhatOf([&] { Gradient(y); }), HasSubstr("does not hold"));
}

TEST_P(SavedSlotsTest, DroppedAndFilledItIsTheSame) {
  const at::Tensor y = FirstForward(/*keeps=*/true);
  slots_.Drop();
  Refill(Part);
  EXPECT_EQ(OwnStorages(), 2U);
  EXPECT_TRUE(Gradient(y).equal(plain_));
}

TEST_P(SavedSlotsTest, AForwardThatKeepsNothingIsFilledLater) {
  const Bytes before = device_.live();
  const at::Tensor y = FirstForward(/*keeps=*/false);
  EXPECT_EQ(device_.live(), before + Bytes(kTensorBytes));
  Refill(Part);
  EXPECT_EQ(device_.live(), before + Bytes(3 * kTensorBytes));
  EXPECT_TRUE(Gradient(y).equal(plain_));
  EXPECT_EQ(device_.live(), before + Bytes(kTensorBytes));
}

TEST_P(SavedSlotsTest, WhatNoGradientReachesIsHeldUntilItIsDropped) {
  const Bytes before = device_.live();
  FirstForward(/*keeps=*/true).reset();
  EXPECT_EQ(OwnStorages(), 2U);
  slots_.Drop();
  slots_.LetGo();
  EXPECT_EQ(device_.live(), before);
}

TEST_P(SavedSlotsTest, AnotherForwardIsRefused) {
  const at::Tensor y = FirstForward(/*keeps=*/false);
  EXPECT_THAT(WhatOf([&] { Refill([](const at::Tensor& x) { return Part(Part(x)); }); }),
              HasSubstr("saved more tensors when it ran again"));
  EXPECT_THAT(WhatOf([&] { Refill([](const at::Tensor& x) { return x.exp(); }); }),
              HasSubstr("at first and 1 when it ran again"));
  EXPECT_THAT(WhatOf([&] { Refill([](const at::Tensor& x) { return Part(x.narrow(0, 0, 10)); }); }),
              HasSubstr("saved tensor 0 of its forward is another one"));
}

// Multiplies twice more than Part, which saves nothing of its own.
at::Tensor LongPart(const at::Tensor& x) { return Part(x) * 2 * 3; }

TEST_P(SavedSlotsTest, AForwardStopsWhereTheLastSlotThatOwnsIsFilled) {
  at::Tensor y;
  {
    const SavedSlots::Recording recording(&slots_, /*keeps=*/false);
    y = LongPart(x_);
  }
  std::vector<const c10::StorageImpl*> held;
  AppendStorages({x_, y}, &held);
  slots_.Settle(held, {y});
  ASSERT_TRUE(slots_.owns());
  EXPECT_FALSE(slots_.saves_output());
  for (const bool caught : {false, true}) {
    slots_.Drop();
    bool ended = false;
    SavedSlots::Refilling refilling(&slots_, /*stops=*/true);
    try {
      const at::Tensor x = x_.detach().requires_grad_();
      if (caught) {
        // Somebody on the way who lets nothing pass, and goes on.
        try {
          LongPart(x);
        } catch (...) {
          x.exp();
        }
      }
      LongPart(x);
      ended = true;
    } catch (const std::exception&) {
      FAIL() << "others might catch it by its type";
    } catch (...) {
      EXPECT_TRUE(refilling.stopped());
    }
    EXPECT_FALSE(ended);
    refilling.Check();
    EXPECT_EQ(OwnStorages(), 3U);  // with sigmoid's output
  }
  const at::Tensor gradient = Gradient(y);
  EXPECT_TRUE(gradient.equal(Gradient(LongPart(x_))));
}

TEST_P(SavedSlotsTest, WhatSavesItsOutputSaysSo) {
  FirstForward(/*keeps=*/true);
  EXPECT_TRUE(slots_.saves_output());
}

TEST_P(SavedSlotsTest, EmptiedTheyAreFilledBesideTheFirst) {
  const at::Tensor y = FirstForward(/*keeps=*/true);
  SavedSlots others = slots_.Emptied();
  EXPECT_TRUE(others.OwnStorages(device_.device).empty());
  {
    SavedSlots::Refilling refilling(&others);
    Part(x_.detach().requires_grad_());
    refilling.Check();
  }
  EXPECT_EQ(others.OwnStorages(device_.device).size(), 2U);
  EXPECT_EQ(OwnStorages(), 2U);
  EXPECT_TRUE(Gradient(y).equal(plain_));
}

// As it does with slots: what no gradient can come to stays as long as the plan has it.
TEST_P(SavedSlotsTest, AGraphWithoutSlotsIsHeldUntilItIsDroppedOrLetGo) {
  for (const bool drops : {false, true}) {
    at::Tensor y = x_.exp();
    const StoragePtr storage = StoragePtrOf(y);
    slots_.Hold({at::Tensor(), y, torch::ones({2})});
    y.reset();
    EXPECT_EQ(storage.use_count(), 2U);  // the graph's, and this one
    drops ? slots_.Drop() : slots_.LetGo();
    EXPECT_EQ(storage.use_count(), 1U);
  }
}

TEST_P(SavedSlotsTest, AnInputThatIsWrittenOverIsFound) {
  const at::Tensor y = FirstForward(/*keeps=*/false);
  Refill(Part);
  {
    const at::NoGradGuard no_grad;
    x_.add_(1);
  }
  EXPECT_THAT(WhatOf([&] { Gradient(y); }), HasSubstr("modified by an inplace operation"));
}

INSTANTIATE_TEST_SUITE_P(Devices, SavedSlotsTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage

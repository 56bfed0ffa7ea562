#include "client/torch/execute/saved_tensor_scope.h"

#include <ATen/SavedTensorHooks.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/torch/base/torch_status.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/device_use.h"
#include "client/torch/offload/simulated_device.h"

namespace stowage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const c10::Device kCpu(c10::DeviceType::CPU);

std::vector<size_t> Sizes(const SavedTensorScope& scope) {
  std::vector<size_t> sizes;
  for (const StoragePtr& storage : scope.OwnedByGraph(kCpu)) sizes.push_back(storage->nbytes());
  return sizes;
}

at::Tensor Leaf(int64_t size) { return torch::rand({size}).requires_grad_(); }

TEST(SavedTensorScope, FindsWhatOnlyTheGraphHoldsInTheOrderInWhichItWasSaved) {
  const at::Tensor x = Leaf(8);
  const at::Tensor constant = torch::rand({8});
  const SavedTensorScope scope;
  at::Tensor y;
  {
    const at::Tensor wide = (x * constant).repeat({2}).tanh();  // its output, 64 bytes
    const at::Tensor view = wide.view({4, 4});
    y = view.exp().mul(view).sum(0).sigmoid();  // exp's output, 64, read twice; 16 is y's own
  }
  EXPECT_THAT(Sizes(scope), ElementsAre(64, 64));
  y.sum().backward();
  EXPECT_THAT(Sizes(scope), IsEmpty());
}

TEST(SavedTensorScope, WhatOthersHoldIsNotTheGraphs) {
  const at::Tensor x = Leaf(8);
  const SavedTensorScope scope;
  at::Tensor held = x.exp();
  const at::Tensor y = held.exp().sum();
  EXPECT_THAT(Sizes(scope), ElementsAre(32));
  held.reset();
  EXPECT_THAT(Sizes(scope), ElementsAre(32, 32));
}

TEST(SavedTensorScope, GradientsAreTheSame) {
  const at::Tensor x = Leaf(1000);
  const auto gradient = [&] {
    return torch::autograd::grad({(x.tanh() * x.exp()).relu_().view({10, 100}).softmax(1).sum()},
                                 {x})[0];
  };
  const at::Tensor plain = gradient();
  const SavedTensorScope scope;
  EXPECT_TRUE(gradient().equal(plain));
}

TEST(SavedTensorScope, ATensorThatWasWrittenOverIsFoundOut) {
  const at::Tensor x = Leaf(8);
  at::Tensor loss;
  {
    const SavedTensorScope scope;
    at::Tensor y = x.exp();
    loss = (y * y).sum();
    y.add_(1);
  }
  try {
    loss.backward();
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("modified by an inplace operation"));
  }
}

TEST(SavedTensorScope, BytesThatMoveAreFoundByTheBackward) {
  const at::Tensor x = Leaf(8);
  const at::Tensor expected = torch::autograd::grad({x.exp().exp().sum()}, {x})[0];
  at::Tensor loss;
  std::vector<StoragePtr> storages;
  {
    const SavedTensorScope scope;
    loss = x.exp().exp().sum();
    storages = scope.OwnedByGraph(kCpu);
  }
  ASSERT_EQ(storages.size(), 2U);
  for (const StoragePtr& storage : storages) {
    c10::DataPtr elsewhere = c10::GetAllocator(c10::DeviceType::CPU)->allocate(storage->nbytes());
    std::memcpy(elsewhere.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr(std::move(elsewhere));
  }
  loss.backward();
  EXPECT_TRUE(x.grad().equal(expected));
}

TEST(SavedTensorScope, ScopesNestAndOtherThreadsHaveTheirOwn) {
  const at::Tensor x = Leaf(8);
  const SavedTensorScope outer;
  const at::Tensor first = x.exp().exp().sum();
  at::Tensor second;
  {
    const SavedTensorScope inner;
    second = x.exp().sum();
    EXPECT_THAT(Sizes(inner), ElementsAre(32));
  }
  at::Tensor third;
  std::thread([&] { third = x.exp().sum(); }).join();
  EXPECT_THAT(Sizes(outer), ElementsAre(32, 32));
}

// What an embedded Python does when torch is imported.
class ForeignEngine final : public torch::autograd::Engine {
 public:
  static torch::autograd::Engine& Get() {
    static auto* const engine = new ForeignEngine();
    return *engine;
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    ++asked;
    return nullptr;
  }
  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs,
                                         bool keep_graph, bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    ++executed;
    return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    ++notes;
    return Engine::make_anomaly_metadata();
  }
  int asked = 0;
  int executed = 0;
  int notes = 0;
};

TEST(SavedTensorScope, AnotherEngineStaysInForceOutsideOfScopes) {
  auto& foreign = static_cast<ForeignEngine&>(ForeignEngine::Get());
  const at::Tensor x = Leaf(8);
  { const SavedTensorScope before_it_was_installed; }
  torch::autograd::set_default_engine_stub(&ForeignEngine::Get);
  {
    const SavedTensorScope scope;
    const at::Tensor y = x.exp().exp().sum();
    EXPECT_THAT(Sizes(scope), ElementsAre(32, 32));
    EXPECT_EQ(foreign.asked, 0);
  }
  EXPECT_EQ(&torch::autograd::Engine::get_default_engine(), &foreign);
  x.exp().sum().backward();
  EXPECT_GT(foreign.asked, 0);
}

// As a penalty on gradients does it.
TEST(SavedTensorScope, ABackwardInAScopeIsRunByTheEngineThatIsInstalled) {
  auto& foreign = static_cast<ForeignEngine&>(ForeignEngine::Get());
  torch::autograd::set_default_engine_stub(&ForeignEngine::Get);
  const int executed = foreign.executed;
  const int notes = foreign.notes;
  const at::Tensor x = Leaf(8);
  const auto penalty = [&x] {
    const at::Tensor slope = torch::autograd::grad({x.exp().sum()}, {x}, {}, true, true)[0];
    return slope.square().sum();
  };
  const at::Tensor expected = torch::autograd::grad({penalty()}, {x})[0];
  torch::autograd::AnomalyMode::set_enabled(true);
  at::Tensor loss;
  {
    const SavedTensorScope scope;
    loss = penalty();
    EXPECT_THAT(Sizes(scope), testing::Contains(32));
  }
  torch::autograd::AnomalyMode::set_enabled(false);
  EXPECT_EQ(foreign.executed, executed + 3);
  EXPECT_GT(foreign.notes, notes);
  loss.backward();
  EXPECT_TRUE(x.grad().equal(expected));
}

// What a compiler traces within a stage.
TEST(SavedTensorScope, WhatIsTracedIsNotSeen) {
#if STOWAGE_TORCH_AT_LEAST(2, 7)
  const at::Tensor x = Leaf(8);
  const SavedTensorScope scope;
  const bool traced = at::SavedTensorDefaultHooks::set_tracing(true);
  const at::Tensor inside = x.exp().exp().sum();
  at::SavedTensorDefaultHooks::set_tracing(traced);
  EXPECT_THAT(Sizes(scope), IsEmpty());
  const at::Tensor outside = x.exp().exp().sum();
  EXPECT_THAT(Sizes(scope), ElementsAre(32, 32));
#else
  GTEST_SKIP() << "LibTorch before 2 has no compiler that traces";
#endif
}

TEST(SavedTensorScope, WhereHooksAreForbiddenNothingCanMove) {
  const CopyCost cost{int64_t{1} << 30, Nanos(1)};
  const auto device =
      SimulatedDevice::Create({cost, cost, /*full_duplex=*/true, Bytes(1 << 20)}).value();
  const at::Tensor x = Leaf(8);
  const auto forward = [&x] { return x.exp().exp(); };
  EXPECT_EQ(MovableParts(device.get(), forward).size(), 1U);
  at::SavedTensorDefaultHooks::disable("none here");
  try {
    MovableParts(device.get(), forward);
    ADD_FAILURE();
  } catch (const StageRuleError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("hooks are forbidden here: none here"));
  }
  at::SavedTensorDefaultHooks::enable();
}

// Bytes that no tensor of the graph has.
at::Tensor Bytes1024() { return torch::empty({1024}, torch::kByte); }

class MovablePartsTest : public ::testing::Test {
 protected:
  MovablePartsTest() {
    const CopyCost cost{int64_t{1} << 30, Nanos(1)};
    device_ = SimulatedDevice::Create({cost, cost, /*full_duplex=*/true, Bytes(1 << 20)}).value();
  }

  static void OnAnotherThread(const std::function<void()>& run) { std::thread(run).join(); }

  std::unique_ptr<SimulatedDevice> device_;
  const at::Tensor x_ = Leaf(8);
};

TEST_F(MovablePartsTest, WhatOtherThreadsAllocateIsTheirs) {
  at::Tensor theirs;
  const auto parts = MovableParts(device_.get(), [&] {
    OnAnotherThread([&] { theirs = Bytes1024(); });
    return x_.exp().exp();
  });
  EXPECT_EQ(parts.size(), 1U);
}

TEST_F(MovablePartsTest, WhatOtherThreadsFreeHidesNothing) {
  at::Tensor theirs, hidden;
  OnAnotherThread([&] { theirs = torch::empty({4096}, torch::kByte); });
  EXPECT_THROW(MovableParts(device_.get(),
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
    MovableParts(&shared, forward);
    ADD_FAILURE();
  } catch (const ImmovableError& error) {
    ADD_FAILURE() << error.what();
  } catch (const StageRuleError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("another thread steps on this device"));
  }
  // Of this thread alone it cannot move.
  at::Tensor hidden;
  EXPECT_THROW(MovableParts(&shared,
                            [&] {
                              hidden = Bytes1024();
                              return x_.exp().exp();
                            }),
               ImmovableError);
}

TEST(DeviceUse, OthersAreSeenWhetherTheyWereThereOrCame) {
  const c10::Device gpu(c10::DeviceType::CUDA, 1);
  const DeviceUse own(gpu);
  const DeviceUse within(gpu);
  const DeviceWatch alone(gpu);
  EXPECT_FALSE(alone.SawOthers());
  std::thread([&gpu] {
    const DeviceUse use({c10::DeviceType::CUDA, 2});
    EXPECT_TRUE(DeviceWatch(gpu).SawOthers());
  }).join();
  EXPECT_FALSE(alone.SawOthers());
  std::thread([&gpu] { const DeviceUse use(gpu); }).join();
  EXPECT_TRUE(alone.SawOthers());
  EXPECT_FALSE(DeviceWatch(gpu).SawOthers());
}

}  // namespace
}  // namespace stowage

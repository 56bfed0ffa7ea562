#include "client/torch/execute/packing_scope.h"

#include <ATen/SavedTensorHooks.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <thread>

#include "client/torch/base/torch_version.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/held_backward.h"

namespace stowage {
namespace {

at::Tensor Leaf(int64_t size) { return torch::rand({size}).requires_grad_(); }

// Saves as autograd would.
class KeepingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& tensor) override { tensor_ = tensor.tensor_data(); }
  at::Tensor call_unpack_hook() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

class CountingScope : public PackingScope {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override {
    ++saved_;
    return std::make_unique<KeepingHooks>();
  }
  int saved() const { return saved_; }

 private:
  int saved_ = 0;
};

TEST(PackingScope, ScopesNestAndOtherThreadsHaveTheirOwn) {
  const at::Tensor x = Leaf(8);
  CountingScope outer;
  const at::Tensor first = x.exp().exp().sum();
  at::Tensor second;
  {
    CountingScope inner;
    second = x.exp().sum();
    EXPECT_EQ(inner.saved(), 1);
  }
  at::Tensor third;
  std::thread([&] { third = x.exp().sum(); }).join();
  EXPECT_EQ(outer.saved(), 2);
}

TEST(OwnSavingScope, AutogradKeepsWhatAnOuterScopeDoesNotSee) {
  const at::Tensor x = Leaf(8);
  CountingScope outer;
  at::Tensor y;
  {
    const OwnSavingScope own(/*yields=*/false);
    y = x.exp().sum();
  }
  EXPECT_EQ(outer.saved(), 0);
  EXPECT_TRUE(torch::autograd::grad({y}, {x})[0].equal(x.exp()));
  EXPECT_EQ(outer.saved(), 1);  // by the line above
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
    return get_base_engine().execute(roots, inputs, keep_graph, create_graph, accumulate_grad,
                                     outputs);
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    ++notes;
    return Engine::make_anomaly_metadata();
  }
  int asked = 0;
  int executed = 0;
  int notes = 0;
};

TEST(PackingScope, AnotherEngineStaysInForceOutsideOfScopes) {
  auto& foreign = static_cast<ForeignEngine&>(ForeignEngine::Get());
  const at::Tensor x = Leaf(8);
  { CountingScope before_it_was_installed; }
  torch::autograd::set_default_engine_stub(&ForeignEngine::Get);
  {
    CountingScope scope;
    const at::Tensor y = x.exp().exp().sum();
    EXPECT_EQ(scope.saved(), 2);
    EXPECT_EQ(foreign.asked, 0);
  }
  EXPECT_EQ(&torch::autograd::Engine::get_default_engine(), &foreign);
  x.exp().sum().backward();
  EXPECT_GT(foreign.asked, 0);
  // Its hooks come before autograd's own saving where that yields to them, and only there.
  for (const bool yields : {false, true}) {
    const int asked = foreign.asked;
    const OwnSavingScope own(yields);
    x.exp().exp().sum();
    EXPECT_EQ(foreign.asked - asked, yields ? 2 : 0);
  }
}

// As a penalty on gradients does it.
TEST(PackingScope, ABackwardInAScopeIsRunByTheEngineThatIsInstalled) {
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
    CountingScope scope;
    loss = penalty();
    EXPECT_GT(scope.saved(), 0);
  }
  torch::autograd::AnomalyMode::set_enabled(false);
  EXPECT_EQ(foreign.executed, executed + 3);
  EXPECT_GT(foreign.notes, notes);
  loss.backward();
  EXPECT_TRUE(x.grad().equal(expected));
}

// What autograd's thread for the device holds of a backward would else be in a forward's peak, or not.
TEST(InnerBackwards, EndWhenTheDevicesThreadHasLetGo) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  SKIP_IF_MISSING(device);
  { const HeldBackward counts(device.device); }
  const at::Tensor x = torch::ones({8}).to(device.device).requires_grad_();
  const auto asked = [&x] {
    const int64_t before = BackwardsAsked();
    EXPECT_TRUE(torch::autograd::grad({x.exp().sum()}, {x})[0].defined());
    return BackwardsAsked() - before;
  };
  EXPECT_EQ(asked(), 1);
  {
    const InnerBackwards waits(device.device);
    EXPECT_EQ(asked(), 2);
    CountingScope scope;
    EXPECT_EQ(asked(), 2);
    EXPECT_GT(scope.saved(), 0);
    const InnerBackwards of_the_cpu(c10::kCPU);
    EXPECT_EQ(asked(), 2);
  }
  EXPECT_EQ(asked(), 1);
  // One that throws ends, too.
  const InnerBackwards waits(device.device);
  const int64_t before = BackwardsAsked();
  EXPECT_THROW(torch::autograd::grad({x.exp().sum()}, {torch::ones({1}).requires_grad_()}),
               c10::Error);
  EXPECT_EQ(BackwardsAsked() - before, 2);
}

// What a compiler traces within a stage.
TEST(PackingScope, WhatIsTracedIsNotSeen) {
#if STOWAGE_TORCH_AT_LEAST(2, 7)
  const at::Tensor x = Leaf(8);
  CountingScope scope;
  const bool traced = at::SavedTensorDefaultHooks::set_tracing(true);
  const at::Tensor inside = x.exp().exp().sum();
  at::SavedTensorDefaultHooks::set_tracing(traced);
  EXPECT_EQ(scope.saved(), 0);
  const at::Tensor outside = x.exp().exp().sum();
  EXPECT_EQ(scope.saved(), 2);
#else
  GTEST_SKIP() << "LibTorch before 2 has no compiler that traces";
#endif
}

}  // namespace
}  // namespace stowage

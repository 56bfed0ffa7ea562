#include "client/torch/saved_tensor_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/torch.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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
  int asked = 0;
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

}  // namespace
}  // namespace stowage

#include "tests/client/device/test_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

namespace stowage {
namespace {

class TestDeviceTest : public ::testing::Test {
 protected:
  const std::unique_ptr<TestDevice> device_ = *TestDevice::Create();
  const c10::Device d_ = device_->device();
};

TEST_F(TestDeviceTest, WhatRunsThereIsWhatTheCpuComputes) {
  const at::Tensor a = torch::randn({4, 6}), b = torch::randn({6, 5});
  const at::Tensor there = at::relu(at::mm(a.to(d_), b.to(d_)) + 1).sum(1);
  EXPECT_EQ(there.device(), d_);
  EXPECT_TRUE(at::equal(there.to(at::kCPU), at::relu(at::mm(a, b) + 1).sum(1)));
}

TEST_F(TestDeviceTest, WorkRunsLater) {
  const at::Tensor a = torch::ones({8}, d_);
  TestDevice::Synchronize();
  TestDevice::compute().Hold();
  const at::Tensor b = a + 1;
  EXPECT_FALSE(TestDevice::compute().idle());
  const int64_t waits = TestDevice::waits();
  EXPECT_EQ(b[3].item<float>(), 2);
  EXPECT_EQ(TestDevice::waits(), waits + 1);
}

// For a value, for a stream of its own or another one, for a time.
TEST_F(TestDeviceTest, WhatTheHostWaitsForIsCounted) {
  const c10::impl::VirtualGuardImpl device(kTestDeviceType);
  const std::vector<std::function<void()>> ways = {
      [this] { torch::ones({1}, d_).item<float>(); },
      [&] { device.synchronizeStream(device.getStream(d_)); },
      [&] { device.synchronizeStream(device.getStreamFromGlobalPool(d_)); },
      [this] {
        const std::unique_ptr<StageTimer> timer = device_->MakeTimer();
        TestDevice::compute().Hold();
        timer->Start();
        timer->Stop();
        timer->Collect();
      }};
  for (size_t way = 0; way < ways.size(); ++way) {
    TestDevice::Synchronize();
    const int64_t before = TestDevice::waits();
    ways[way]();
    EXPECT_EQ(TestDevice::waits(), before + 1) << way;
  }
}

TEST_F(TestDeviceTest, ViewsAndWritesInPlaceShareMemory) {
  const at::Tensor a = torch::zeros({3, 4}, d_);
  const at::Tensor row = a.select(0, 1), columns = a.t().slice(0, 1, 3);
  row.add_(1);
  columns.mul_(3);
  at::Tensor expected = torch::zeros({3, 4});
  expected.select(0, 1).add_(1);
  expected.t().slice(0, 1, 3).mul_(3);
  EXPECT_EQ(row.storage().unsafeGetStorageImpl(), a.storage().unsafeGetStorageImpl());
  EXPECT_TRUE(at::equal(a.to(at::kCPU), expected));
}

// The loss and its gradients, of the module as it is here and once more after it was moved there.
template <class Forward>
void ExpectSameGradients(torch::nn::Module* module, c10::Device there, const Forward& loss_on) {
  const auto run = [&](c10::Device device) {
    const at::Tensor loss = loss_on(device);
    loss.backward();
    std::vector<at::Tensor> gradients = {loss.detach().to(at::kCPU)};
    for (const at::Tensor& parameter : module->parameters()) {
      gradients.push_back(parameter.grad().to(at::kCPU));
      parameter.mutable_grad().reset();
    }
    return gradients;
  };
  const std::vector<at::Tensor> expected = run(at::kCPU);
  for (const at::Tensor& parameter : module->parameters()) MoveTo(there, parameter);
  for (const at::Tensor& buffer : module->buffers()) MoveTo(there, buffer);
  const std::vector<at::Tensor> got = run(there);
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(at::allclose(expected[i], got[i], 1e-4, 1e-5)) << i;
}

TEST_F(TestDeviceTest, BackwardsRunThereOnAThreadOfAutograd) {
  torch::nn::Sequential module(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4),
                               torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                               torch::nn::Linear(36, 10));
  const at::Tensor input = torch::randn({2, 3, 8, 8}), target = torch::tensor({3, 7});
  ExpectSameGradients(module.get(), d_, [&](c10::Device device) {
    return torch::nn::functional::cross_entropy(module->forward(input.to(device)),
                                                target.to(device));
  });
}

TEST_F(TestDeviceTest, RecurrentNetworksTrainThere) {
  for (const bool bias : {false, true}) {
    torch::nn::LSTM module(torch::nn::LSTMOptions(6, 5).num_layers(2).bias(bias));
    const at::Tensor input = torch::randn({4, 3, 6});
    ExpectSameGradients(module.get(), d_, [&](c10::Device device) {
      const auto [output, state] = module->forward(input.to(device));
      return (output * output).sum() + std::get<1>(state).sum();
    });
  }
}

TEST_F(TestDeviceTest, RandomNumbersAreTheDevicesOwn) {
  at::Generator own = TestDevice::generator();
  const at::Tensor here = at::detail::getDefaultCPUGenerator().get_state();
  own.set_current_seed(5);
  const at::Tensor first = torch::rand({100}, d_), second = torch::rand({100}, d_);
  own.set_current_seed(5);
  EXPECT_TRUE(at::equal(torch::rand({100}, d_), first));
  EXPECT_TRUE(at::equal(torch::rand({100}, d_), second));
  EXPECT_FALSE(at::equal(first, second));
  EXPECT_TRUE(at::equal(at::detail::getDefaultCPUGenerator().get_state(), here));
  const at::Tensor dropped = at::dropout(torch::ones({1000}, d_), 0.5, true).to(at::kCPU);
  EXPECT_GT(dropped.eq(0).sum().item<int64_t>(), 300);
  EXPECT_LT(dropped.eq(0).sum().item<int64_t>(), 700);
}

TEST_F(TestDeviceTest, TheFirstMatrixProductOfAThreadTakesAWorkspaceAndKeepsIt) {
  const at::Tensor a = torch::randn({4, 4}, d_);
  at::mm(a, a);
  const int64_t warm = TestDevice::memory().stats().requested_bytes;
  at::mm(a, a);
  EXPECT_EQ(TestDevice::memory().stats().requested_bytes, warm);
  std::thread([&] { at::mm(a, a); }).join();
  EXPECT_EQ(TestDevice::memory().stats().requested_bytes, warm + TestDevice::kWorkspaceBytes);
}

TEST_F(TestDeviceTest, MemoryIsRefusedWithinALimitAfterWhatIsKeptWasGivenBack) {
  TestDevice::memory().Empty();
  const int64_t reserved = TestDevice::memory().stats().reserved_bytes;
  { const at::Tensor kept = torch::empty({30 << 20}, at::TensorOptions(d_).dtype(at::kByte)); }
  TestDevice::memory().SetLimit(reserved + (40 << 20));
  const int64_t retries = TestDevice::memory().stats().retries;
  const at::Tensor other = torch::empty({34 << 20}, at::TensorOptions(d_).dtype(at::kByte));
  EXPECT_EQ(TestDevice::memory().stats().retries, retries + 1);
  EXPECT_THROW(torch::empty({34 << 20}, at::TensorOptions(d_).dtype(at::kByte)),
               c10::OutOfMemoryError);
  TestDevice::memory().SetLimit(INT64_MAX);
}

TEST_F(TestDeviceTest, ALinkComesLaterWhereThereIsHostMemory) {
  EXPECT_EQ(device_->host(), nullptr);
  const CopyCost cost{int64_t{1} << 30, Nanos(1000)};
  const TransferModel link{cost, cost, /*full_duplex=*/false, Bytes(1 << 20)};
  EXPECT_FALSE(device_->SetLink(link).ok());
  const auto linked = *TestDevice::Create(std::nullopt, Bytes(1 << 20));
  EXPECT_EQ(linked->link(), nullptr);
  EXPECT_NE(linked->host(), nullptr);
  ASSERT_TRUE(linked->SetLink(link).ok());
  ASSERT_NE(linked->link(), nullptr);
  EXPECT_FALSE(linked->link()->full_duplex);
}

}  // namespace
}  // namespace stowage

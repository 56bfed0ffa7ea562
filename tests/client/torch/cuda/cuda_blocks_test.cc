// Steps on a GPU, served from a block of LibTorch's CUDA allocator. Skipped where there is no GPU.
#include "client/torch/cuda/cuda_blocks.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "client/torch/cuda/cuda_device.h"
#include "client/torch/memory/step_arena.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

constexpr int64_t kMiB = int64_t{1} << 20;

at::Device Gpu() { return {at::kCUDA, 0}; }

at::Tensor Block(int64_t bytes) {
  return torch::empty({bytes}, torch::TensorOptions().dtype(torch::kByte).device(Gpu()));
}

class CudaBlocksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no GPU";
    blocks_ = CudaBlocks::Install().value();
    device_ = CudaDevice::Create(0).value();
    arena_ = StepArena::Create({}, blocks_->Of(0)).value();
  }

  MemoryMeter* meter() { return device_->meter(); }

  CudaBlocks* blocks_ = nullptr;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<StepArena> arena_;
};

TEST_F(CudaBlocksTest, ForwardAndBackwardAreServedWithinWhatIsReserved) {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(256, 512), nn::GELU(), nn::Linear(512, 512), nn::ReLU(),
                     nn::Linear(512, 16));
  net->to(Gpu());
  const at::Tensor input = torch::randn({64, 256}).to(Gpu());
  // On the calling thread and on autograd's of the device.
  const auto step = [&] {
    for (at::Tensor& parameter : net->parameters()) {
      if (parameter.grad().defined()) parameter.mutable_grad().zero_();
    }
    net->forward(input).pow(2).mean().backward();
  };
  const auto gradients = [&] {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& parameter : net->parameters()) copies.push_back(parameter.grad().cpu());
    return copies;
  };
  step();
  const std::vector<at::Tensor> plain = gradients();
  meter()->ResetPeak();
  {
    const ArenaScope scope(arena_.get());
    step();
  }
  const Bytes peak = meter()->peak();
  ASSERT_TRUE(arena_->Prepare().ok());
  const Bytes budget = meter()->reserved();
  for (int i = 0; i < 3; ++i) {
    meter()->ResetPeak();
    {
      const ArenaScope scope(arena_.get());
      step();
    }
    EXPECT_EQ(arena_->report().counts.departed, 0);
    EXPECT_GT(arena_->report().counts.served, 10);
    EXPECT_LE(meter()->peak_reserved(), budget);
    EXPECT_LE(meter()->peak(), peak);
    const std::vector<at::Tensor> served = gradients();
    for (size_t k = 0; k < plain.size(); ++k) EXPECT_TRUE(served[k].equal(plain[k]));
  }
}

TEST_F(CudaBlocksTest, AllocatedBytesAreThoseInUseOfTheRegion) {
  {
    const ArenaScope scope(arena_.get());
    const at::Tensor a = Block(4 * kMiB);
    const at::Tensor b = Block(4 * kMiB);
  }
  const Bytes before = meter()->current();
  ASSERT_TRUE(arena_->Prepare().ok());
  EXPECT_LE(meter()->current(), before + Bytes(kMiB));
  meter()->ResetPeak();
  {
    const ArenaScope scope(arena_.get());
    const at::Tensor a = Block(4 * kMiB);
    EXPECT_GE(meter()->current(), before + Bytes(4 * kMiB));
    EXPECT_LT(meter()->current(), before + Bytes(6 * kMiB));
  }
  EXPECT_LT(meter()->peak(), before + Bytes(6 * kMiB));
  EXPECT_GE(meter()->peak(), before + Bytes(4 * kMiB));
}

TEST_F(CudaBlocksTest, AStreamThatABlockWasShownToIsWaitedFor) {
  const auto other = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, 0);
  const auto step = [&] {
    at::Tensor sum;
    {
      at::Tensor a = Block(16 * kMiB);
      a.fill_(3);
      c10::cuda::getCurrentCUDAStream(0).synchronize();
      c10::cuda::CUDACachingAllocator::recordStream(a.storage().data_ptr(), other);
      const c10::StreamGuard guard(other.unwrap());
      for (int i = 0; i < 50; ++i) a.bitwise_xor_(0);
      sum = a.to(at::kLong).sum();
    }
    // In the same place, by compute's stream.
    Block(16 * kMiB).fill_(7);
    other.synchronize();
    return sum.item<int64_t>();
  };
  EXPECT_EQ(step(), 3 * 16 * kMiB);
  {
    const ArenaScope scope(arena_.get());
    step();
  }
  ASSERT_TRUE(arena_->Prepare().ok());
  for (int i = 0; i < 5; ++i) {
    const ArenaScope scope(arena_.get());
    EXPECT_EQ(step(), 3 * 16 * kMiB);
  }
}

TEST_F(CudaBlocksTest, KnowsTheGpusThereAre) {
  EXPECT_NE(blocks_->Of(0), nullptr);
  EXPECT_EQ(blocks_->Of(-1), nullptr);
  EXPECT_EQ(blocks_->Of(1000), nullptr);
  EXPECT_EQ(CudaBlocks::Install().value(), blocks_);
}

}  // namespace
}  // namespace stowage

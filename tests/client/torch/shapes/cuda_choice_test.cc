// What LibTorch chooses for tensors of a GPU, and the rules then tell, on a LibTorch without CUDA: the tensors say that they
// are a GPU's and have no data, LibTorch is told that it has cuDNN. A program of its own, as that cannot be taken back.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <functional>
#include <vector>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/shapes/shape_scope.h"

namespace at {

struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs /*none*/) {}
  void initCUDA() const override {}
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(int64_t /*device*/) const override { return true; }
  bool compiledWithCuDNN() const override { return true; }
  long versionCuDNN() const override { return 90100; }
  double batchnormMinEpsilonCuDNN() const override { return 1e-5; }
};

REGISTER_CUDA_HOOKS(CUDAHooks);

}  // namespace at

namespace stowage {
namespace {

// Devices without streams or memory.
C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>);

const c10::Device kGpu(c10::DeviceType::CUDA, 0);
int draws = 0;  // of random numbers on it

at::Tensor OnGpu(at::IntArrayRef sizes) {
  const at::Tensor shape = at::empty(sizes, at::dtype(at::kFloat).device(at::kMeta));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      NewStorage(shape.storage().nbytes(), c10::DataPtr(nullptr, kGpu)),
      c10::DispatchKeySet(c10::DispatchKey::CUDA), shape.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor EmptyOnGpu(at::IntArrayRef sizes, c10::optional<at::ScalarType> /*type*/,
                      c10::optional<at::Layout> /*layout*/, c10::optional<at::Device> /*device*/,
                      c10::optional<bool> /*pinned*/, c10::optional<at::MemoryFormat> /*format*/) {
  return OnGpu(sizes);
}

at::Tensor& DrawOnGpu(at::Tensor& numbers, double /*from*/, double /*to*/,
                      c10::optional<at::Generator> /*generator*/) {
  ++draws;
  return numbers;
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", EmptyOnGpu);
  library.impl("uniform_", DrawOnGpu);
}

// Of the result, and of what is kept for the backward, which runs, too. The first input is kept by nobody else.
int64_t HeldOnGpu(const std::vector<at::Tensor>& leaves,
                  const std::function<at::Tensor(const std::vector<at::Tensor>&)>& run) {
  for (const at::Tensor& leaf : leaves) leaf.requires_grad_();
  TracedDevice on;
  on.device = kGpu;
  on.has_cpu_kernels = false;
  on.cuda_kernels = CudaKernels{90100, /*convolves_bfloat16=*/true};
  const auto scope = ShapeScope::Begin(TrackingAllocator::Get(), {}, on).value();
  const Bytes before = scope->meter()->current();
  std::vector<at::Tensor> inputs = leaves;
  inputs[0] = leaves[0].neg();
  const at::Tensor result = run(inputs);
  inputs.clear();
  const Bytes held = scope->meter()->current() - before;
  torch::autograd::backward({result}, {at::ones_like(result)});
  for (const at::Tensor& leaf : leaves) {
    EXPECT_EQ(leaf.grad().sizes(), leaf.sizes());
    leaf.mutable_grad().reset();
  }
  return held.value();
}

// 3168 bytes.
at::Tensor Batch() { return OnGpu({2, 4, 9, 11}); }

// Evaluating, cuDNN's keeps no statistics, LibTorch's own those of 4 channels.
TEST(CudaChoiceTest, BatchNormsAreCudnnsUnlessItIsOff) {
  const auto norm = [](bool training, bool cudnn) {
    const at::Tensor mean = OnGpu({4}), variance = OnGpu({4});
    return HeldOnGpu({Batch(), OnGpu({4}), OnGpu({4})}, [&](const std::vector<at::Tensor>& x) {
      return at::batch_norm(x[0], x[1], x[2], mean, variance, training, 0.1, 1e-5, cudnn);
    });
  };
  EXPECT_EQ(norm(/*training=*/true, /*cudnn=*/true), 3168 + 3168 + 16 + 16);
  EXPECT_EQ(norm(/*training=*/true, /*cudnn=*/false), 3168 + 3168 + 16 + 16);
  EXPECT_EQ(norm(/*training=*/false, /*cudnn=*/true), 3168 + 3168);
  EXPECT_EQ(norm(/*training=*/false, /*cudnn=*/false), 3168 + 3168 + 16 + 16);
}

TEST(CudaChoiceTest, ConvolutionsPoolsAndProducts) {
  EXPECT_EQ(HeldOnGpu({Batch(), OnGpu({8, 4, 3, 3}), OnGpu({8})},
                      [](const std::vector<at::Tensor>& x) {
                        return at::conv2d(x[0], x[1], x[2], 1, 1);
                      }),
            3168 + 6336);
  EXPECT_EQ(
      HeldOnGpu({Batch()},
                [](const std::vector<at::Tensor>& x) { return at::max_pool2d(x[0], 3, 2, 1); }),
      3168 + 960 + 1920);
  EXPECT_EQ(HeldOnGpu({Batch()},
                      [](const std::vector<at::Tensor>& x) {
                        return at::adaptive_avg_pool2d(x[0], {3, 2});
                      }),
            3168 + 192);
  EXPECT_EQ(
      HeldOnGpu({OnGpu({6, 5}), OnGpu({7, 5}), OnGpu({7})},
                [](const std::vector<at::Tensor>& x) { return at::linear(x[0], x[1], x[2]); }),
      120 + 168);
  EXPECT_EQ(HeldOnGpu({OnGpu({3, 5, 4}), OnGpu({4}), OnGpu({4})},
                      [](const std::vector<at::Tensor>& x) {
                        return at::layer_norm(x[0], {4}, x[1], x[2]);
                      }),
            240 + 240 + 60 + 60);
}

// A byte for each number; the CPU's is a tensor of factors.
TEST(CudaChoiceTest, DropoutsAreOneOperationThatDraws) {
  const int before = draws;
  EXPECT_EQ(HeldOnGpu({OnGpu({6, 5})},
                      [](const std::vector<at::Tensor>& x) {
                        return at::dropout(x[0], 0.4, /*train=*/true);
                      }),
            120 + 30);
  EXPECT_EQ(draws, before + 1);
}

}  // namespace
}  // namespace stowage

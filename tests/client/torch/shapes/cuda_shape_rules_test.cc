// What a ShapeScope says of operations on a CUDA GPU, against what PyTorch's derivatives.yaml and its kernels for CUDA say
// that they keep. There is no GPU: the tensors are the CPU's, the kernels those that are named.
#include "client/torch/shapes/cuda_shape_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/torch/base/torch_version.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/shapes/shape_scope.h"

namespace stowage {
namespace {

using Inputs = std::vector<at::Tensor>;
using CudaRun = std::function<at::Tensor(const Inputs&)>;
using testing::HasSubstr;

const CudaKernels kCudnn{90100, /*convolves_bfloat16=*/true};
const CudaKernels kNoCudnn;

// Of the first input, which nobody but the operation holds, and the others.
struct CudaCase {
  std::string name;
  int64_t held;  // bytes: of the result, and of what is kept for the backward
  Inputs inputs;
  CudaRun run;
};

std::unique_ptr<ShapeScope> BeginOnCuda(const CudaKernels& kernels) {
  TracedDevice on;
  on.has_cpu_kernels = false;
  on.cuda_kernels = kernels;
  return ShapeScope::Begin(TrackingAllocator::Get(), {}, on).value();
}

Inputs Leaves(const Inputs& inputs) {
  Inputs leaves;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(input.detach());
    if (input.is_floating_point()) leaves.back().requires_grad_();
  }
  return leaves;
}

// Keeps nothing but what it makes.
at::Tensor RunOn(const CudaCase& c, const Inputs& leaves) {
  Inputs inputs = leaves;
  inputs[0] = leaves[0].neg();
  return c.run(inputs);
}

struct Told {
  int64_t held;
  Inputs gradients;
};

Told Tell(const CudaCase& c, const CudaKernels& kernels) {
  const Inputs leaves = Leaves(c.inputs);
  const auto scope = BeginOnCuda(kernels);
  const Bytes before = scope->meter()->current();
  const at::Tensor result = RunOn(c, leaves);
  Told told{(scope->meter()->current() - before).value(), {}};
  torch::autograd::backward({result}, {at::ones_like(result)});
  for (const at::Tensor& leaf : leaves) told.gradients.push_back(leaf.grad());
  return told;
}

void ExpectHeld(const std::vector<CudaCase>& cases, const CudaKernels& kernels = kCudnn) {
  for (const CudaCase& c : cases) {
    SCOPED_TRACE(c.name);
    try {
      const Told told = Tell(c, kernels);
      EXPECT_EQ(told.held, c.held);
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        if (!c.inputs[i].is_floating_point()) continue;
        ASSERT_TRUE(told.gradients[i].defined()) << i;
        EXPECT_EQ(told.gradients[i].sizes(), c.inputs[i].sizes()) << i;
        EXPECT_EQ(told.gradients[i].scalar_type(), c.inputs[i].scalar_type()) << i;
      }
    } catch (const c10::Error& error) {
      ADD_FAILURE() << error.what_without_backtrace();
    }
  }
}

std::string CudaRefusal(const CudaCase& c, const CudaKernels& kernels) {
  try {
    Tell(c, kernels);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "told";
}

// 792 elements, 3168 bytes.
at::Tensor Images(at::ScalarType type = at::kFloat) { return torch::ones({2, 4, 9, 11}, type); }
at::Tensor ImagesLast(at::ScalarType type = at::kFloat) {
  return Images(type).contiguous(at::MemoryFormat::ChannelsLast);
}
at::Tensor Ones(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return torch::ones(sizes, type);
}

CudaRun Conv(int64_t groups) {
  return [=](const Inputs& x) { return at::conv2d(x[0], x[1], x[2], 1, 1, 1, groups); };
}

// input and weight: convolution_backward(grad, input, weight, ...).
TEST(CudaShapeRulesTest, ConvolutionsKeepTheirInput) {
  const at::Tensor bias = Ones({8});
  ExpectHeld({
      // 2 * 8 * 9 * 11 elements come out
      {"plain", 3168 + 6336, {Images(), Ones({8, 4, 3, 3}), bias}, Conv(1)},
      {"grouped", 3168 + 6336, {Images(), Ones({8, 1, 3, 3}), bias}, Conv(4)},
      {"of half precision",
       (3168 + 6336) / 2,
       {Images(at::kHalf), Ones({8, 4, 3, 3}, at::kHalf), Ones({8}, at::kHalf)},
       Conv(1)},
      // 2 * 8 * 18 * 34
      {"transposed",
       3168 + 39168,
       {Images(), Ones({4, 8, 3, 2}), bias},
       [](const Inputs& x) {
         return at::conv_transpose2d(x[0], x[1], x[2], {2, 3}, {1, 0}, {1, 2});
       }},
      // 2 * 8 * 18 * 34 of which a group makes half
      {"transposed, grouped",
       3168 + 39168,
       {Images(), Ones({4, 4, 3, 2}), bias},
       [](const Inputs& x) {
         return at::conv_transpose2d(x[0], x[1], x[2], {2, 3}, {1, 0}, {1, 2}, /*groups=*/2);
       }},
      // 2 * 4 * 20, 2 * 8 * 9
      {"of lines",
       640 + 576,
       {Ones({2, 4, 20}), Ones({8, 4, 5}), bias},
       [](const Inputs& x) { return at::conv1d(x[0], x[1], x[2], 2, 1); }},
      // 2 * 4 * 5 * 6 * 7, 2 * 8 * 3 * 4 * 5
      {"of volumes",
       6720 + 3840,
       {Ones({2, 4, 5, 6, 7}), Ones({8, 4, 3, 3, 3}), bias},
       [](const Inputs& x) { return at::conv3d(x[0], x[1], x[2]); }},
  });
}

TEST(CudaShapeRulesTest, ChannelsLastOfConvolutionsIsCudnnsAlone) {
  const auto last = [](at::ScalarType type) {
    return CudaCase{
        "channels last", 0, {ImagesLast(type), Ones({8, 4, 3, 3}, type), Ones({8}, type)}, Conv(1)};
  };
  const auto is_last = [](const at::Tensor& x) {
    return x.is_contiguous(at::MemoryFormat::ChannelsLast);
  };
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const CudaCase c = last(type);
    const Inputs leaves = Leaves(c.inputs);
    const auto scope = BeginOnCuda(kCudnn);
    const at::Tensor result = RunOn(c, leaves);
    EXPECT_TRUE(is_last(result)) << type;
    torch::autograd::backward({result}, {at::ones_like(result)});
    EXPECT_TRUE(is_last(leaves[0].grad())) << type;
  }
  const char* const refusal = "aten::convolution of channels last has a layout that shapes tell";
  EXPECT_THAT(CudaRefusal(last(at::kFloat), kNoCudnn), HasSubstr(refusal));
  EXPECT_THAT(CudaRefusal(last(at::kFloat), {7600, true}), HasSubstr(refusal));
  EXPECT_THAT(CudaRefusal(last(at::kDouble), kCudnn), HasSubstr(refusal));
  EXPECT_THAT(CudaRefusal(last(at::kBFloat16), {90100, false}), HasSubstr(refusal));
  CudaCase padded = last(at::kFloat);
  padded.inputs[1] = Ones({4, 8, 3, 3});
  padded.run = [](const Inputs& x) {
    return at::conv_transpose2d(x[0], x[1], x[2], /*stride=*/1, /*padding=*/0,
                                /*output_padding=*/1, /*groups=*/1, /*dilation=*/2);
  };
  EXPECT_THAT(CudaRefusal(padded, kCudnn), HasSubstr(refusal));
}

CudaRun CudnnNorm(bool training) {
  return [training, mean = Ones({4}), variance = Ones({4})](const Inputs& x) {
    return std::get<0>(at::cudnn_batch_norm(x[0], x[1], x[2], mean, variance, training, 0.1, 1e-5));
  };
}

CudaRun NativeNorm(bool training, at::ScalarType type = at::kFloat) {
  return [training, mean = Ones({4}, type), variance = Ones({4}, type)](const Inputs& x) {
    return std::get<0>(
        at::native_batch_norm(x[0], x[1], x[2], mean, variance, training, 0.1, 1e-5));
  };
}

// input, result1 and result2: mean and deviation of 4 channels; and cuDNN's reserve, which is empty.
TEST(CudaShapeRulesTest, BatchNormsKeepTheirInputAndStatistics) {
  const at::Tensor scale = Ones({4});
  const at::Tensor half = Ones({4}, at::kHalf);
  ExpectHeld({
      {"cuDNN's, training", 3168 + 3168 + 16 + 16, {Images(), scale, scale}, CudnnNorm(true)},
      {"cuDNN's, evaluating", 3168 + 3168, {Images(), scale, scale}, CudnnNorm(false)},
      {"cuDNN's, of half precision",
       1584 + 1584 + 16 + 16,
       {Images(at::kHalf), scale, scale},
       CudnnNorm(true)},
      {"training", 3168 + 3168 + 16 + 16, {Images(), scale, scale}, NativeNorm(true)},
      // The CPU keeps none.
      {"evaluating", 3168 + 3168 + 16 + 16, {Images(), scale, scale}, NativeNorm(false)},
      // The CPU sums in half precision.
      {"all of half precision",
       1584 + 1584 + 16 + 16,
       {Images(at::kHalf), half, half},
       NativeNorm(true, at::kHalf)},
  });
}

TEST(CudaShapeRulesTest, BatchNormsOfChannelsLastAreToldOnlyWhereNothingIsInReserve) {
  const at::Tensor scale = Ones({4});
  {
    const auto scope = BeginOnCuda(kCudnn);
    const at::Tensor evaluated = CudnnNorm(false)({ImagesLast().neg(), scale, scale});
    EXPECT_TRUE(evaluated.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  EXPECT_THAT(CudaRefusal({"", 0, {ImagesLast(), scale, scale}, CudnnNorm(true)}, kCudnn),
              HasSubstr("aten::cudnn_batch_norm of a tensor that is not contiguous"));
  EXPECT_THAT(CudaRefusal({"", 0, {ImagesLast(), scale, scale}, NativeNorm(true)}, kCudnn),
              HasSubstr("aten::native_batch_norm of a tensor that is not contiguous"));
}

// Neither schema says that running statistics are written to.
TEST(CudaShapeRulesTest, BatchNormsInTrainingWriteToTheirStatistics) {
  for (const bool cudnn : {false, true}) {
    for (const bool training : {false, true}) {
      SCOPED_TRACE(testing::Message() << "cudnn " << cudnn << ", training " << training);
      const at::Tensor mean = Ones({4}), variance = Ones({4}), scale = Ones({4});
      TracedDevice on;
      on.has_cpu_kernels = false;
      on.cuda_kernels = kCudnn;
      const auto scope = ShapeScope::Begin(TrackingAllocator::Get(), {mean, variance}, on).value();
      const at::Tensor x = Images().neg();
      cudnn ? static_cast<void>(
                  at::cudnn_batch_norm(x, scale, scale, mean, variance, training, 0.1, 1e-5))
            : static_cast<void>(
                  at::native_batch_norm(x, scale, scale, mean, variance, training, 0.1, 1e-5));
      EXPECT_EQ(mean.data_ptr<float>()[0] != 1, training);
      EXPECT_EQ(variance.data_ptr<float>()[0] != 1, training);
    }
  }
}

TEST(CudaShapeRulesTest, OtherNormsKeepTheirInputAndStatistics) {
  const at::Tensor scale = Ones({4});
  const at::Tensor half = Ones({4}, at::kBFloat16);
  const auto layer = [](const Inputs& x) { return at::layer_norm(x[0], {4}, x[1], x[2]); };
  const auto group = [](const Inputs& x) { return at::group_norm(x[0], 2, x[1], x[2]); };
  ExpectHeld({
      // 15 rows
      {"layer", 240 + 240 + 60 + 60, {Ones({3, 5, 4}), scale, scale}, layer},
      {"layer, of half precision",
       120 + 120 + 60 + 60,
       {Ones({3, 5, 4}, at::kBFloat16), half, half},
       layer},
      // 2 images, 2 groups
      {"group", 3168 + 3168 + 16 + 16, {Images(), scale, scale}, group},
  });
  EXPECT_THAT(CudaRefusal({"", 0, {ImagesLast(), scale, scale}, group}, kCudnn),
              HasSubstr("aten::native_group_norm of a tensor that is not contiguous"));
}

TEST(CudaShapeRulesTest, PoolsKeepTheirInput) {
  ExpectHeld({
      // 2 * 4 * 5 * 6 elements, and where each came from, in 8 bytes
      {"most",
       3168 + 960 + 1920,
       {Images()},
       [](const Inputs& x) { return std::get<0>(at::max_pool2d_with_indices(x[0], 3, 2, 1)); }},
      {"mean",
       3168 + 960,
       {Images()},
       [](const Inputs& x) { return at::avg_pool2d(x[0], 3, 2, 1); }},
      // 2 * 4 * 3 * 2
      {"adaptive",
       3168 + 192,
       {Images()},
       [](const Inputs& x) {
         return at::adaptive_avg_pool2d(x[0], {3, 2});
       }},
      {"adaptive, channels last",
       3168 + 192,
       {ImagesLast()},
       [](const Inputs& x) {
         return at::adaptive_avg_pool2d(x[0], {3, 2});
       }},
      // 2 * 4 * 5 * 6 * 7, 2 * 4 * 2 * 3 * 2
      {"adaptive, of volumes",
       6720 + 384,
       {Ones({2, 4, 5, 6, 7})},
       [](const Inputs& x) {
         return at::adaptive_avg_pool3d(x[0], {2, 3, 2});
       }},
  });
}

TEST(CudaShapeRulesTest, LookupsKeepTheirIndices) {
  ExpectHeld({
      // indices and weight are there before: 2 * 7 rows of 3
      {"embedding",
       168,
       {Ones({3}), Ones({5, 3}), torch::zeros({2, 7}, torch::kLong)},
       [](const Inputs& x) { return at::embedding(x[1], x[2]) + x[0]; }},
      {"index_select",
       72,
       {Ones({5, 3}), torch::zeros({6}, torch::kLong)},
       [](const Inputs& x) { return x[0].index_select(0, x[1]); }},
      // its mask: one byte for each of 20
      {"where",
       80 + 20,
       {Ones({4, 5})},
       [](const Inputs& x) { return at::where(x[0] > 0, x[0], x[0].neg()); }},
  });
}

TEST(CudaShapeRulesTest, ProductsKeepTheirInputs) {
  ExpectHeld({
      {"linear",
       120 + 168,
       {Ones({6, 5}), Ones({7, 5}), Ones({7})},
       [](const Inputs& x) { return at::linear(x[0], x[1], x[2]); }},
      {"of batches",
       96 + 120,
       {Ones({2, 3, 4}), Ones({2, 4, 5})},
       [](const Inputs& x) { return at::bmm(x[0], x[1]); }},
  });
}

// Each of 30 numbers, 120 bytes.
TEST(CudaShapeRulesTest, LossesKeepWhatTheyCompare) {
  const at::Tensor numbers = Ones({6, 5});
  const at::Tensor target = Ones({6, 5});
  const at::Tensor classes = torch::zeros({6}, torch::kLong);
  ExpectHeld({
      // the logarithms, the sum of weights
      {"nll",
       120 + 4 + 4,
       {numbers},
       [=](const Inputs& x) { return at::nll_loss(x[0].log_softmax(1), classes); }},
      {"nll of images",
       480 + 4 + 4,
       {Ones({2, 5, 3, 4})},
       [of = torch::zeros({2, 3, 4}, torch::kLong)](const Inputs& x) {
         return at::nll_loss2d(x[0], of);
       }},
      // the mean lies in the memory of what it is the mean of
      {"squares",
       120 + 120,
       {numbers},
       [=](const Inputs& x) { return at::mse_loss(x[0], target); }},
      {"smooth",
       120 + 120,
       {numbers},
       [=](const Inputs& x) { return at::smooth_l1_loss(x[0], target); }},
      {"huber", 120 + 4, {numbers}, [=](const Inputs& x) { return at::huber_loss(x[0], target); }},
      {"binary",
       120 + 120,
       {numbers},
       [=](const Inputs& x) { return at::binary_cross_entropy(x[0], target); }},
      {"binary of logits",
       120 + 4,
       {numbers},
       [=](const Inputs& x) { return at::binary_cross_entropy_with_logits(x[0], target); }},
      // The CPU keeps as much again for its backward.
      {"logistic", 120 + 120, {numbers}, [](const Inputs& x) { return at::log_sigmoid(x[0]); }},
  });
}

TEST(CudaShapeRulesTest, DropoutsKeepAMask) {
  const auto dropout = [](c10::optional<bool> training) -> CudaRun {
    return [=](const Inputs& x) { return std::get<0>(at::native_dropout(x[0], 0.4, training)); };
  };
  ExpectHeld({
      {"in training", 120 + 30, {Ones({6, 5})}, dropout(true)},
      {"in training unless told", 120 + 30, {Ones({6, 5})}, dropout(c10::nullopt)},
      {"evaluating", 120 + 30, {Ones({6, 5})}, dropout(false)},
      {"of the first kind",
       120 + 30,
       {Ones({6, 5})},
       [](const Inputs& x) { return std::get<0>(at::_fused_dropout(x[0], 0.6)); }},
  });
  // The CPU hands its input on.
  const auto scope = BeginOnCuda(kCudnn);
  const at::Tensor input = Ones({6, 5}).neg();
  const at::Tensor left = std::get<0>(at::native_dropout(input, 0.4, false));
  EXPECT_FALSE(left.is_alias_of(input));
}

// Those that the meta device knows, and those that it does not.
TEST(CudaShapeRulesTest, ElementwiseOperationsKeepInputOrResult) {
  using Elementwise = at::Tensor (*)(const at::Tensor&);
  const auto of = [](const char* name, int64_t held, Elementwise op) {
    return CudaCase{name, held, {Ones({6, 5})}, [op](const Inputs& x) { return op(x[0]); }};
  };
  ExpectHeld({
      of("relu", 120, [](const at::Tensor& x) { return at::relu(x); }),
      of("tanh", 120, [](const at::Tensor& x) { return at::tanh(x); }),
      of("softmax", 120, [](const at::Tensor& x) { return at::softmax(x, -1); }),
      of("add", 120, [](const at::Tensor& x) { return at::add(x, x); }),
      of("gelu", 240, [](const at::Tensor& x) { return at::gelu(x); }),
      of("silu", 240, [](const at::Tensor& x) { return at::silu(x); }),
      of("hardtanh", 240, [](const at::Tensor& x) { return at::hardtanh(x); }),
      of("hardswish", 240, [](const at::Tensor& x) { return at::hardswish(x); }),
      of("flip", 120, [](const at::Tensor& x) { return at::flip(x, 0); }),
      of("roll", 120, [](const at::Tensor& x) { return at::roll(x, 1, 0); }),
  });
}

#if STOWAGE_TORCH_AT_LEAST(2, 7)
// query, key, value, result, a sum for each row in single precision, and the state of random numbers. Query and result are of
// 2 * 3 * 7 * 8 numbers; key and value are there before.
TEST(CudaShapeRulesTest, AttentionKeepsItsInputsResultAndASumForEachRow) {
  const auto flash = [](const Inputs& x) {
    return std::get<0>(at::_scaled_dot_product_flash_attention(x[0], x[1], x[2]));
  };
  const auto efficient = [](const Inputs& x) {
    return std::get<0>(at::_scaled_dot_product_efficient_attention(
        x[0], x[1], x[2], x.size() > 3 ? c10::optional<at::Tensor>(x[3]) : c10::nullopt,
        /*compute_log_sumexp=*/true));
  };
  const auto heads = [](int64_t rows, at::ScalarType type = at::kFloat) {
    return Ones({2, 3, rows, 8}, type);
  };
  ExpectHeld({
      // 7 sums for each of 6 heads; {2} and {} of 8 bytes
      {"flash",
       672 + 672 + 168 + 16 + 8,
       {heads(7, at::kBFloat16), heads(5, at::kBFloat16), heads(5, at::kBFloat16)},
       flash},
      // 32 sums for each head; two numbers of 8 bytes on the host, which is this device, too
      {"efficient", 1344 + 1344 + 768 + 8 + 8, {heads(7), heads(5), heads(5)}, efficient},
      {"efficient, with a bias",
       1344 + 1344 + 768 + 8 + 8,
       {heads(7), heads(5), heads(5), Ones({2, 3, 7, 5})},
       efficient},
  });
  EXPECT_THAT(CudaRefusal({"", 0, {Ones({2, 6, 7, 8}), heads(5), heads(5)}, flash}, kCudnn),
              HasSubstr("aten::_scaled_dot_product_flash_attention with groups of heads"));
}

// Heads lie beside each other in a row, as parts of one product have them.
TEST(CudaShapeRulesTest, AttentionsResultsLieByRows) {
  const at::Tensor fused = Ones({2, 7, 72}, at::kBFloat16);
  const auto part = [&](int64_t i) {
    return fused.narrow(2, 24 * i, 24).view({2, 7, 3, 8}).transpose(1, 2);
  };
  const auto scope = BeginOnCuda(kCudnn);
  for (const at::Tensor& result :
       {std::get<0>(at::_scaled_dot_product_flash_attention(part(0).neg(), part(1), part(2))),
        std::get<0>(at::_scaled_dot_product_efficient_attention(part(0).neg(), part(1), part(2), {},
                                                                true))}) {
    EXPECT_EQ(result.sizes(), at::IntArrayRef({2, 3, 7, 8}));
    EXPECT_EQ(result.strides(), at::IntArrayRef({168, 8, 24, 1}));
  }
}
#endif

#if STOWAGE_TORCH_AT_LEAST(2, 5)
TEST(CudaShapeRulesTest, AttentionOfCudnnIsRefusedByName) {
  const at::Tensor heads = Ones({2, 3, 7, 8}, at::kHalf);
  EXPECT_THAT(CudaRefusal({"",
                           0,
                           {heads, heads, heads},
                           [](const Inputs& x) {
                             return std::get<0>(at::_scaled_dot_product_cudnn_attention(
                                 x[0], x[1], x[2], {}, /*compute_log_sumexp=*/true));
                           }},
                          kCudnn),
              HasSubstr("aten::_scaled_dot_product_cudnn_attention has no known shape"));
}
#endif

// What cuDNN keeps of an LSTM depends on its version and the GPU.
TEST(CudaShapeRulesTest, WhatHasNoRuleIsRefusedByName) {
  const at::Tensor image = Ones({2, 3, 5, 5});
  EXPECT_THAT(CudaRefusal({"",
                           0,
                           {image, Ones({2, 5, 5, 2})},
                           [](const Inputs& x) { return at::cudnn_grid_sampler(x[0], x[1]); }},
                          kCudnn),
              HasSubstr("aten::cudnn_grid_sampler has no known shape without data"));
  EXPECT_THAT(
      CudaRefusal({"",
                   0,
                   {Ones({3, 3, 2}), Ones({30}), Ones({1, 3, 3})},
                   [](const Inputs& x) {
                     return std::get<0>(at::_cudnn_rnn(
                         x[0], {x[1]}, 1, {}, x[2], {}, /*mode=*/2, /*hidden_size=*/3,
                         /*proj_size=*/0, /*num_layers=*/1, /*batch_first=*/false, /*dropout=*/0,
                         /*train=*/true, /*bidirectional=*/false, {}, {}));
                   }},
                  kCudnn),
      HasSubstr("aten::_cudnn_rnn"));
}

}  // namespace
}  // namespace stowage

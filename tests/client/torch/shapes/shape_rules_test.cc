// Holds what a ShapeScope says of operations, and of their backwards, against LibTorch's CPU kernels.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/torch/base/torch_version.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/shapes/shape_scope.h"

namespace stowage {
namespace {

namespace F = torch::nn::functional;
using Tensors = std::vector<at::Tensor>;

struct Case {
  std::string name;
  Tensors inputs;  // those of floating type want gradients
  std::function<Tensors(const Tensors&)> run;
};

// What of results and gradients code can see without looking at data.
std::string Describe(const Tensors& tensors) {
  std::ostringstream text;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      text << "none; ";
      continue;
    }
    text << tensor.scalar_type() << tensor.sizes() << tensor.strides() << "of "
         << tensor.storage().nbytes() << "; ";
  }
  return text.str();
}

std::string ResultsAndGradients(const Case& c) {
  Tensors inputs;
  for (const at::Tensor& input : c.inputs) {
    inputs.push_back(input.detach());
    if (input.is_floating_point()) inputs.back().requires_grad_();
  }
  Tensors seen = c.run(inputs);
  torch::autograd::backward({seen[0]}, {at::ones_like(seen[0])});
  for (at::Tensor& result : seen) result = result.detach();
  for (const at::Tensor& input : inputs) seen.push_back(input.grad());
  return Describe(seen);
}

std::string FromShapes(const Case& c) {
  const auto scope = ShapeScope::Begin(TrackingAllocator::Get(), {});
  EXPECT_TRUE(scope.ok()) << scope.status();
  std::string seen = ResultsAndGradients(c);
  EXPECT_TRUE(scope.value()->Check().ok()) << scope.value()->Check();
  return seen;
}

void ExpectAllTold(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string real = ResultsAndGradients(c);
    try {
      EXPECT_EQ(FromShapes(c), real);
    } catch (const c10::Error& error) {
      ADD_FAILURE() << error.what_without_backtrace();
    }
  }
}

at::Tensor Image(int64_t channels = 4) { return torch::randn({2, channels, 9, 11}); }
at::Tensor Last(const at::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }
at::Tensor Indices(at::IntArrayRef sizes) { return torch::randint(5, sizes, torch::kLong); }

TEST(ShapeRulesTest, Convolutions) {
  const auto conv = [](int64_t stride, int64_t pad, int64_t dilation, int64_t groups) {
    return [=](const Tensors& x) -> Tensors {
      return {at::conv2d(x[0], x[1], x[2], stride, pad, dilation, groups)};
    };
  };
  const at::Tensor bias = torch::randn({8});
  ExpectAllTold({
      {"plain", {Image(), torch::randn({8, 4, 3, 3}), bias}, conv(1, 1, 1, 1)},
      {"strided", {Image(), torch::randn({8, 4, 3, 3}), bias}, conv(2, 0, 1, 1)},
      {"dilated", {Image(), torch::randn({8, 4, 3, 3}), bias}, conv(1, 2, 2, 1)},
      {"grouped", {Image(), torch::randn({8, 1, 3, 3}), bias}, conv(1, 1, 1, 4)},
      {"channels last", {Last(Image()), torch::randn({8, 4, 3, 3}), bias}, conv(1, 1, 1, 1)},
      {"weight last", {Image(), Last(torch::randn({8, 4, 3, 3})), bias}, conv(1, 1, 1, 1)},
      {"of one pixel", {Image(), torch::randn({8, 4, 1, 1}), bias}, conv(1, 0, 1, 1)},
      {"transposed",
       {Image(), torch::randn({4, 8, 3, 2}), bias},
       [](const Tensors& x) -> Tensors {
         return {at::conv_transpose2d(x[0], x[1], x[2], {2, 3}, {1, 0}, {1, 2})};
       }},
      {"of lines",
       {torch::randn({2, 4, 20}), torch::randn({8, 4, 5}), bias},
       [](const Tensors& x) -> Tensors { return {at::conv1d(x[0], x[1], x[2], 2, 1)}; }},
      {"of volumes",
       {torch::randn({2, 4, 5, 6, 7}), torch::randn({8, 4, 3, 3, 3}), bias},
       [](const Tensors& x) -> Tensors { return {at::conv3d(x[0], x[1], x[2])}; }},
  });
}

TEST(ShapeRulesTest, Norms) {
  const Tensors scales = {torch::randn({4}), torch::randn({4})};
  const auto batch = [](bool training) {
    return [=](const Tensors& x) -> Tensors {
      const at::Tensor mean = torch::zeros({4});
      const at::Tensor variance = torch::ones({4});
      return {at::batch_norm(x[0], x[1], x[2], mean, variance, training, 0.1, 1e-5, true)};
    };
  };
  ExpectAllTold({
      {"batch, training", {Image(), scales[0], scales[1]}, batch(true)},
      {"batch, evaluating", {Image(), scales[0], scales[1]}, batch(false)},
      {"batch, channels last", {Last(Image()), scales[0], scales[1]}, batch(true)},
      {"batch, of rows", {torch::randn({7, 4}), scales[0], scales[1]}, batch(true)},
      {"layer",
       {torch::randn({3, 5, 4}), scales[0], scales[1]},
       [](const Tensors& x) -> Tensors { return {at::layer_norm(x[0], {4}, x[1], x[2])}; }},
      {"layer, bare, transposed",
       {torch::randn({3, 5, 4}).transpose(0, 1)},
       [](const Tensors& x) -> Tensors {
         return {at::layer_norm(x[0], {5 - 2, 4})};
       }},
      {"group",
       {Image(), scales[0], scales[1]},
       [](const Tensors& x) -> Tensors { return {at::group_norm(x[0], 2, x[1], x[2])}; }},
  });
}

TEST(ShapeRulesTest, Pools) {
  ExpectAllTold({
      {"adaptive",
       {Image()},
       [](const Tensors& x) -> Tensors {
         return {at::adaptive_avg_pool2d(x[0], {3, 2})};
       }},
      {"adaptive, channels last",
       {Last(Image())},
       [](const Tensors& x) -> Tensors {
         return {at::adaptive_avg_pool2d(x[0], {3, 2})};
       }},
      {"global",
       {Image()},
       [](const Tensors& x) -> Tensors {
         return {at::adaptive_avg_pool2d(x[0], {1, 1})};
       }},
      {"global, channels last",
       {Last(Image())},
       [](const Tensors& x) -> Tensors {
         return {at::adaptive_avg_pool2d(x[0], {1, 1})};
       }},
      {"most",
       {Image()},
       [](const Tensors& x) -> Tensors { return {at::max_pool2d(x[0], 3, 2, 1)}; }},
      {"mean",
       {Image()},
       [](const Tensors& x) -> Tensors { return {at::avg_pool2d(x[0], 3, 2, 1)}; }},
  });
}

TEST(ShapeRulesTest, Lookups) {
  ExpectAllTold({
      {"embedding",
       {torch::randn({5, 3}), Indices({2, 7})},
       [](const Tensors& x) -> Tensors { return {at::embedding(x[0], x[1])}; }},
      {"index_select",
       {Image(), Indices({6}).clamp(0, 3)},
       [](const Tensors& x) -> Tensors { return {x[0].index_select(-3, x[1])}; }},
      {"gather",
       {Image(), torch::zeros({2, 4, 9, 2}, torch::kLong)},
       [](const Tensors& x) -> Tensors { return {x[0].gather(3, x[1])}; }},
      {"index",
       {Image(), Indices({6}).clamp(0, 1)},
       [](const Tensors& x) -> Tensors { return {x[0].index({x[1]})}; }},
      {"where",
       {torch::randn({4, 1}), torch::randn({5})},
       [](const Tensors& x) -> Tensors { return {at::where(x[0] > 0, x[0], x[1])}; }},
  });
}

TEST(ShapeRulesTest, Losses) {
  const at::Tensor shares = torch::rand({6, 5});
  const at::Tensor numbers = torch::randn({6, 5});
  ExpectAllTold({
      {"nll",
       {numbers, Indices({6})},
       [](const Tensors& x) -> Tensors { return {at::nll_loss(x[0].log_softmax(1), x[1])}; }},
      {"nll of images",
       {torch::randn({2, 5, 3, 4}), Indices({2, 3, 4})},
       [](const Tensors& x) -> Tensors { return {at::nll_loss2d(x[0], x[1])}; }},
      {"nll of images, unreduced",
       {torch::randn({2, 5, 3, 4}), Indices({2, 3, 4})},
       [](const Tensors& x) -> Tensors { return {at::nll_loss2d(x[0], x[1], {}, 0)}; }},
      {"binary",
       {shares, shares.detach()},
       [](const Tensors& x) -> Tensors { return {at::binary_cross_entropy(x[0], x[1].detach())}; }},
      {"binary of logits",
       {numbers, shares},
       [](const Tensors& x) -> Tensors {
         return {F::binary_cross_entropy_with_logits(x[0], x[1].detach())};
       }},
      {"binary of logits, weighted, unreduced",
       {numbers, shares, torch::rand({5}), torch::rand({5})},
       [](const Tensors& x) -> Tensors {
         return {at::binary_cross_entropy_with_logits(x[0], x[1].detach(), x[2].detach(),
                                                      x[3].detach(), 0)};
       }},
      {"squares",
       {numbers, shares},
       [](const Tensors& x) -> Tensors { return {at::mse_loss(x[0], x[1])}; }},
      {"smooth",
       {numbers, shares},
       [](const Tensors& x) -> Tensors { return {at::smooth_l1_loss(x[0], x[1])}; }},
      {"binary, unreduced",
       {shares, shares.detach()},
       [](const Tensors& x) -> Tensors {
         return {at::binary_cross_entropy(x[0], x[1].detach(), {}, 0)};
       }},
      {"huber, reduced",
       {numbers, shares},
       [](const Tensors& x) -> Tensors { return {at::huber_loss(x[0], x[1])}; }},
      {"huber",
       {numbers, shares},
       [](const Tensors& x) -> Tensors { return {at::huber_loss(x[0], x[1], 0)}; }},
      {"logistic", {numbers}, [](const Tensors& x) -> Tensors { return {at::log_sigmoid(x[0])}; }},
  });
}

TEST(ShapeRulesTest, Dropouts) {
  const auto dropout = [](c10::optional<bool> training) {
    return [=](const Tensors& x) -> Tensors {
      const auto [left, mask] = at::native_dropout(x[0] * 2, 0.4, training);
      return {left, mask};
    };
  };
  ExpectAllTold({
      {"in training", {Image()}, dropout(true)},
      {"in training unless told", {Image()}, dropout(c10::nullopt)},
      {"of rows that lie apart", {Image().transpose(0, 1).slice(3, 0, 11, 2)}, dropout(true)},
      {"evaluating", {Image()}, dropout(false)},
  });
}

#if STOWAGE_TORCH_AT_LEAST(2, 0)
TEST(ShapeRulesTest, Attention) {
  const at::Tensor fused = torch::randn({2, 7, 72});
  const auto heads = [](const at::Tensor& x) { return x.view({2, 7, 3, 8}).transpose(1, 2); };
  ExpectAllTold({
      {"of its own rows",
       {fused},
       [heads](const Tensors& x) -> Tensors {
         const Tensors parts = x[0].split(24, 2);
         return {at::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                                  {}, 0, /*is_causal=*/true)};
       }},
      {"of others, masked",
       {torch::randn({2, 3, 7, 8}), torch::randn({2, 3, 5, 8}), torch::zeros({7, 5})},
       [](const Tensors& x) -> Tensors {
         return {at::scaled_dot_product_attention(x[0], x[1], x[1], x[2].detach())};
       }},
      {"of half precision",
       {torch::randn({3, 2, 7, 8}, torch::kBFloat16).transpose(0, 1)},
       [](const Tensors& x) -> Tensors {
         return {at::scaled_dot_product_attention(x[0], x[0], x[0])};
       }},
  });
}
#endif

TEST(ShapeRulesTest, ViewsAndElements) {
  ExpectAllTold({
      {"views",
       {Image()},
       [](const Tensors& x) -> Tensors {
         return {x[0].transpose(1, 2).slice(0, 1).reshape({9, -1}).unsqueeze(0)};
       }},
      {"split", {Image()}, [](const Tensors& x) { return x[0].split(3, 3); }},
      {"stack",
       {Image(), Image()},
       [](const Tensors& x) -> Tensors { return {at::stack(x, 1).flip(0).roll(1, 1)}; }},
      {"in place",
       {Image()},
       [](const Tensors& x) -> Tensors { return {x[0].clone().mul_(2).squeeze_().relu_()}; }},
      {"activations",
       {Image()},
       [](const Tensors& x) -> Tensors {
         return {at::gelu(at::silu(at::hardtanh(at::leaky_relu(at::elu(x[0]))))) +
                 at::hardswish(x[0]).tanh().sigmoid()};
       }},
      {"types",
       {Image()},
       [](const Tensors& x) -> Tensors {
         return {(x[0].to(at::kDouble) * 2 + x[0]).to(at::kFloat), x[0] > 1, x[0].argmax(1)};
       }},
      {"matrices",
       {torch::randn({3, 4, 5}), torch::randn({5, 2})},
       [](const Tensors& x) -> Tensors {
         return {x[0].matmul(x[1]), at::einsum("bij,jk->bk", {x[0], x[1]})};
       }},
  });
}

}  // namespace
}  // namespace stowage

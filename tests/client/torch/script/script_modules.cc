#include "tests/client/torch/script/script_modules.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "tests/client/torch/script/scripted_modules.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

using Traced = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// What torch.jit.trace does, of a module in C++.
ScriptSample Trace(const nn::Module& parts, const Traced& forward, std::vector<at::Tensor> inputs,
                   at::Tensor target) {
  torch::jit::Module module("__torch__.Traced");
  const auto plain = [](std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  };
  for (const auto& each : parts.named_parameters()) {
    module.register_parameter(plain(each.key()), each.value(), /*is_buffer=*/false);
  }
  for (const auto& each : parts.named_buffers()) {
    module.register_buffer(plain(each.key()), each.value());
  }
  const auto body = [&forward](torch::jit::Stack stack) {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : stack) tensors.push_back(value.toTensor());
    const std::vector<at::Tensor> made = forward(tensors);
    if (made.size() == 1) return torch::jit::Stack{made[0]};
    return torch::jit::Stack{c10::ivalue::Tuple::create({made[0], made[1]})};
  };
  const torch::jit::Stack stack(inputs.begin(), inputs.end());
  const auto traced = torch::jit::tracer::trace(
      stack, body, [](const at::Tensor&) { return std::string(); }, /*strict=*/true,
      /*force_outplace=*/false, &module);
  const auto function = module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), traced.first->graph);
  module.type()->addMethod(function);
  return {module, std::move(inputs), std::move(target)};
}

nn::Conv2d Conv(int64_t in, int64_t out, int64_t kernel = 3, int64_t stride = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).stride(stride).bias(false));
}

struct Block : nn::Module {
  Block(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module("conv1", Conv(in, out, 3, stride))),
        conv2(register_module("conv2", Conv(out, out))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (in == out) return;
    shortcut =
        register_module("shortcut", nn::Sequential(Conv(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y));
    y += shortcut.is_empty() ? x : shortcut->forward(x);
    return torch::relu_(y);
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential shortcut{nullptr};
};

struct Residual : nn::Module {
  Residual() {
    register_module("stem", stem);
    register_module("bn", bn);
    for (int64_t i = 0; i < 6; ++i) {
      const std::string name = "block" + std::to_string(i);
      blocks.push_back(register_module(
          name, std::make_shared<Block>(i < 5 ? 8 : 16, i < 4 ? 8 : 16, i == 4 ? 2 : 1)));
    }
    register_module("head", head);
  }
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& x) {
    at::Tensor y = torch::max_pool2d(bn(stem(x[0])).relu_(), 2);
    y = blocks[0]->forward(y);
    const at::Tensor early = y.mean({2, 3});
    for (size_t i = 1; i < blocks.size(); ++i) y = blocks[i]->forward(y);
    return {head(torch::adaptive_avg_pool2d(y, {1, 1}).flatten(1)), early};
  }
  nn::Conv2d stem = Conv(3, 8);
  nn::BatchNorm2d bn{8};
  std::vector<std::shared_ptr<Block>> blocks;
  nn::Linear head{16, 5};
};

struct Branches : nn::Module {
  Branches() {
    register_module("stem", stem);
    for (int64_t i = 0; i < 6; ++i) {
      convs.push_back(register_module("conv" + std::to_string(i), Conv(8, 8, i % 3 == 0 ? 1 : 3)));
      norms.push_back(register_module("norm" + std::to_string(i), nn::BatchNorm2d(8)));
    }
    register_module("head", head);
  }
  at::Tensor Basic(size_t i, const at::Tensor& x) { return norms[i](convs[i](x)).relu_(); }
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& x) {
    const at::Tensor y = torch::sigmoid(stem(x[0]));
    const at::Tensor a = Basic(0, y);
    const at::Tensor b = Basic(2, Basic(1, y));
    const at::Tensor c = Basic(5, Basic(4, Basic(3, y)));
    const at::Tensor d = torch::avg_pool2d(y, 3, 1, 1);
    const at::Tensor all = torch::dropout(torch::cat({a, b, c, d}, 1), 0.2, true);
    return {head(all.mean({2, 3}))};
  }
  nn::Conv2d stem = Conv(3, 8);
  std::vector<nn::Conv2d> convs;
  std::vector<nn::BatchNorm2d> norms;
  nn::Linear head{32, 5};
};

struct Attention : nn::Module {
  Attention() {
    weight = register_parameter("weight", torch::randn({20, 16}) * 0.2);
    for (size_t i = 0; i < 2; ++i) {
      qkv.push_back(register_module("qkv" + std::to_string(i), nn::Linear(16, 48)));
      norm.push_back(
          register_module("norm" + std::to_string(i), nn::LayerNorm(nn::LayerNormOptions({16}))));
    }
    mask = register_buffer("mask", torch::full({8, 8}, -1e9).triu(1));
  }
  at::Tensor Attend(size_t i, const at::Tensor& x) {
    const std::vector<at::Tensor> parts = qkv[i](norm[i](x)).chunk(3, 2);
    const at::Tensor scores = parts[0].matmul(parts[1].transpose(1, 2)) / 4.0 + mask;
    return torch::dropout(torch::softmax(scores, 2), 0.1, true).matmul(parts[2]);
  }
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& x) {
    at::Tensor h = torch::embedding(weight, x[0]);
    for (size_t i = 0; i < 2; ++i) h = h + Attend(i, h);
    // Through the vocabulary and back, so that the weight has three uses.
    h = h + torch::softmax(torch::linear(h, weight), 2).matmul(weight);
    return {torch::linear(h, weight).flatten(0, 1)};
  }
  at::Tensor weight;
  at::Tensor mask;
  std::vector<nn::Linear> qkv;
  std::vector<nn::LayerNorm> norm;
};

template <class Parts>
ScriptSample TraceOf(std::vector<at::Tensor> inputs, at::Tensor target) {
  const auto parts = std::make_shared<Parts>();
  return Trace(
      *parts, [&parts](const std::vector<at::Tensor>& x) { return parts->forward(x); },
      std::move(inputs), std::move(target));
}

}  // namespace

const std::vector<std::string>& ScriptSampleNames() {
  static const auto* const kNames = [] {
    auto* const names = new std::vector<std::string>{"residual", "branches", "attention"};
    names->insert(names->end(), ScriptedNames().begin(), ScriptedNames().end());
    return names;
  }();
  return *kNames;
}

ScriptSample MakeScriptSample(const std::string& name) {
  torch::manual_seed(1);
  const at::Tensor labels = torch::randint(5, {3}, torch::kLong);
  if (name == "residual") return TraceOf<Residual>({torch::randn({3, 3, 24, 24})}, labels);
  if (name == "branches") return TraceOf<Branches>({torch::randn({3, 3, 16, 16})}, labels);
  if (name == "attention") {
    return TraceOf<Attention>({torch::randint(20, {3, 8}, torch::kLong)},
                              torch::randint(20, {24}, torch::kLong));
  }
  return MakeScriptedSample(name);
}

}  // namespace stowage

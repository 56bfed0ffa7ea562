#include "tests/client/torch/script/scripted_modules.h"

#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/torch.h>

#include <memory>
#include <utility>

namespace stowage {
namespace {

// Knows exceptions beside torch.*.
struct Resolver : torch::jit::NativeResolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(
      const std::string& name, torch::jit::GraphFunction& method,
      const torch::jit::SourceRange& place) override {
    if (name == "Exception") return std::make_shared<torch::jit::ExceptionValue>(name);
    return NativeResolver::resolveValue(name, method, place);
  }
};

at::Tensor Trained(at::Tensor values) { return values.requires_grad_(); }

ScriptSample Scripted() {
  torch::jit::Module module("__torch__.Scripted");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("slope", c10::FloatType::get(), 0.1);
  module.register_parameter("conv", Trained(torch::randn({8, 3, 3, 3}) * 0.3), false);
  module.register_parameter("more", Trained(torch::randn({8, 8, 3, 3}) * 0.1), false);
  module.register_parameter("gain", Trained(torch::rand({8})), false);
  module.register_parameter("shift", Trained(torch::rand({8})), false);
  module.register_parameter("head", Trained(torch::randn({5, 8})), false);
  module.register_buffer("mean", torch::zeros({8}));
  module.register_buffer("variance", torch::ones({8}));
  module.register_buffer("steps", torch::zeros({1}, torch::kLong));
  module.register_buffer("mask", (torch::rand({1, 8, 1, 1}) > 0.2).to(torch::kFloat));
  module.define(R"(
    def norm(self, x):
        if x.dim() != 4:
            raise Exception("norm wants images")
        if self.training:
            self.steps.add_(1)
        return torch.batch_norm(x, self.gain, self.shift, self.mean, self.variance, self.training, 0.1, 1e-5, False)

    def forward(self, x):
        n = x.size(0)
        side = x.size(2)
        y = torch.conv2d(x, self.conv, None, [1, 1], [1, 1])
        y = self.norm(y) * self.mask
        found = [y]
        for i in range(2):
            y = torch.leaky_relu_(torch.conv2d(y, self.more, None, [1, 1], [1, 1]), self.slope)
            found.append(y)
        z = torch.stack(found).sum(0)
        z[:, 0:2].mul_(0.5)
        if self.training:
            z = torch.dropout(z, 0.3, True)
        scale = torch.arange(side * side) * (1.0 / float(side))
        z = (z.reshape([n, 8, side * side]) * scale).mean(2)
        return torch.linear(z, self.head)
  )",
                std::make_shared<Resolver>());
  return {module, {torch::randn({3, 3, 12, 12})}, torch::randint(5, {3}, torch::kLong)};
}

// Modules that know each other.
class Family {
 public:
  torch::jit::Module New(const std::string& type) {
    torch::jit::Module module("__torch__." + type, unit_, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), true);
    return module;
  }

  // A convolution and a norm that counts its batches.
  torch::jit::Module Unit(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
    torch::jit::Module unit = New("Unit");
    unit.register_attribute("stride", c10::IntType::get(), stride);
    unit.register_attribute("padding", c10::IntType::get(), kernel / 2);
    unit.register_parameter("weight", Trained(torch::randn({out, in, kernel, kernel}) * 0.2),
                            false);
    unit.register_parameter("gain", Trained(torch::rand({out})), false);
    unit.register_parameter("shift", Trained(torch::rand({out})), false);
    unit.register_buffer("mean", torch::zeros({out}));
    unit.register_buffer("variance", torch::ones({out}));
    unit.register_buffer("steps", torch::zeros({1}, torch::kLong));
    unit.define(R"(
      def forward(self, x):
          if self.training:
              self.steps.add_(1)
          y = torch.conv2d(x, self.weight, None, [self.stride, self.stride], [self.padding, self.padding])
          return torch.batch_norm(y, self.gain, self.shift, self.mean, self.variance, self.training, 0.1, 1e-5, False)
    )");
    return unit;
  }

 private:
  std::shared_ptr<torch::jit::CompilationUnit> unit_ =
      std::make_shared<torch::jit::CompilationUnit>();
};

torch::jit::Module Block(Family* family, int64_t in, int64_t out) {
  torch::jit::Module block = family->New("Block");
  block.register_module("first", family->Unit(in, out, 3, in == out ? 1 : 2));
  block.register_module("second", family->Unit(out, out, 3));
  if (in != out) block.register_module("shortcut", family->Unit(in, out, 1, 2));
  const std::string rest = in == out ? "x" : "self.shortcut.forward(x)";
  block.define(R"(
    def forward(self, x):
        y = torch.relu_(self.first.forward(x))
        y = self.second.forward(y)
        y += )" +
               rest +
               R"(
        return torch.relu_(y)
  )");
  return block;
}

ScriptSample Residual() {
  Family family;
  torch::jit::Module net = family.New("Residual");
  net.register_module("stem", family.Unit(3, 8, 3));
  for (int i = 0; i < 5; ++i) {
    const int64_t out = i < 3 ? 8 : 16;
    net.register_module("block" + std::to_string(i), Block(&family, i < 4 ? 8 : 16, out));
  }
  net.register_parameter("head", Trained(torch::randn({5, 16})), false);
  net.define(R"(
    def forward(self, x):
        y = torch.max_pool2d(torch.relu_(self.stem.forward(x)), [2, 2])
        y = self.block1.forward(self.block0.forward(y))
        y = self.block2.forward(y)
        early = y.mean([2, 3])
        y = self.block4.forward(self.block3.forward(y))
        if y.dim() == 4:
            y = torch.adaptive_avg_pool2d(y, [1, 1]).flatten(1)
        return torch.linear(y, self.head), early
  )");
  return {net, {torch::randn({3, 3, 24, 24})}, torch::randint(5, {3}, torch::kLong)};
}

ScriptSample Branches() {
  Family family;
  torch::jit::Module net = family.New("Branches");
  net.register_module("stem", family.Unit(3, 8, 3));
  for (int i = 0; i < 4; ++i) {
    net.register_module("unit" + std::to_string(i), family.Unit(8, 8, i % 2 == 0 ? 1 : 3));
  }
  net.register_parameter("head", Trained(torch::randn({5, 32})), false);
  net.define(R"(
    def forward(self, x):
        y = torch.sigmoid(self.stem.forward(x))
        found = [self.unit0.forward(y), self.unit1.forward(y)]
        found.append(self.unit3.forward(torch.relu(self.unit2.forward(y))))
        if y.size(2) > 4:
            found.append(torch.avg_pool2d(y, [3, 3], [1, 1], [1, 1]))
        z = torch.cat(found, 1)
        gate = torch.gt(z, 0.1).to(z.dtype)
        z = torch.dropout(z * gate, 0.2, self.training) * (1.0 / float(len(found)))
        places = torch.arange(z.size(3)) * (1.0 / float(z.size(3)))
        z = torch.tanh(z + places)
        return torch.linear(z.sum([2, 3]), self.head), z
  )");
  return {net, {torch::randn({3, 3, 16, 16})}, torch::randint(5, {3}, torch::kLong)};
}

torch::jit::Module AttentionLayer(Family* family, int64_t width, int64_t heads) {
  torch::jit::Module layer = family->New("Layer");
  layer.register_attribute("heads", c10::IntType::get(), heads);
  layer.register_parameter("gain", Trained(torch::rand({width})), false);
  layer.register_parameter("shift", Trained(torch::rand({width})), false);
  layer.register_parameter("qkv", Trained(torch::randn({3 * width, width}) * 0.2), false);
  layer.register_parameter("out", Trained(torch::randn({width, width}) * 0.2), false);
  layer.define(R"(
    def split(self, x):
        return x.view([x.size(0), x.size(1), self.heads, x.size(2) // self.heads]).transpose(1, 2)

    def forward(self, x):
        b, n, width = x.size()
        y = torch.layer_norm(x, [width], self.gain, self.shift)
        q, k, v = torch.chunk(torch.linear(y, self.qkv), 3, 2)
        mask = torch.triu(torch.full([n, n], -1e9), 1)
        scores = torch.matmul(self.split(q), self.split(k).transpose(2, 3)) / float(n) + mask
        p = torch.dropout(torch.softmax(scores, 3), 0.1, self.training)
        y = torch.matmul(p, self.split(v)).transpose(1, 2).reshape([b, n, width])
        return x + torch.linear(y, self.out)
  )");
  return layer;
}

ScriptSample Attention() {
  Family family;
  torch::jit::Module net = family.New("Attention");
  net.register_parameter("words", Trained(torch::randn({20, 16}) * 0.2), false);
  net.register_parameter("places", Trained(torch::randn({12, 16}) * 0.2), false);
  for (int i = 0; i < 2; ++i) {
    net.register_module("layer" + std::to_string(i), AttentionLayer(&family, 16, 2));
  }
  net.define(R"(
    def forward(self, x):
        h = torch.embedding(self.words, x)
        h = h + torch.embedding(self.places, torch.arange(x.size(1)))
        h = self.layer1.forward(self.layer0.forward(h))
        mask = torch.triu(torch.full([h.size(1), h.size(1)], 1.0)).unsqueeze(2)
        h = torch.relu((h.unsqueeze(1) * mask).sum(2)) + h
        return torch.linear(h, self.words).flatten(0, 1)
  )");
  return {net, {torch::randint(20, {3, 8}, torch::kLong)}, torch::randint(20, {24}, torch::kLong)};
}

}  // namespace

const std::vector<std::string>& ScriptedNames() {
  static const auto* const kNames = new std::vector<std::string>{
      "scripted", "scripted_residual", "scripted_branches", "scripted_attention"};
  return *kNames;
}

ScriptSample MakeScriptedSample(const std::string& name) {
  torch::manual_seed(1);
  if (name == "scripted_residual") return Residual();
  if (name == "scripted_branches") return Branches();
  if (name == "scripted_attention") return Attention();
  return Scripted();
}

torch::jit::Module MakeScripted(const std::string& source) {
  torch::jit::Module module("__torch__.Scripted");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("w", torch::ones({4, 4}), false);
  module.register_buffer("seen", torch::zeros({4}));
  module.register_attribute("some", c10::ListType::ofTensors(),
                            c10::List<at::Tensor>({torch::ones({4}, torch::requires_grad())}));
  module.define(source);
  return module;
}

}  // namespace stowage

#include "client/torch/execute/parameter_gradients.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

#include "client/torch/base/autograd_node.h"
#include "client/torch/execute/run_backward.h"

namespace stowage {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

// By part, the trainable parameters that it uses, each once, as numbers in the order of their first use; calls `add` for
// each new one, and for each use of one in a part `use`.
std::vector<std::vector<int>> UsesOf(const std::vector<std::vector<at::Tensor>>& parts,
                                     const std::function<void(const at::Tensor&)>& add,
                                     const std::function<void(int)>& use) {
  std::vector<std::vector<int>> uses(parts.size());
  std::unordered_map<const c10::TensorImpl*, int> index;
  for (size_t part = 0; part < parts.size(); ++part) {
    for (const at::Tensor& parameter : parts[part]) {
      if (!parameter.requires_grad()) continue;
      const auto [known, is_new] =
          index.emplace(parameter.unsafeGetTensorImpl(), static_cast<int>(index.size()));
      if (is_new) add(parameter);
      std::vector<int>& used = uses[part];
      if (std::find(used.begin(), used.end(), known->second) != used.end()) continue;
      used.push_back(known->second);
      use(known->second);
    }
  }
  return uses;
}

}  // namespace

CompleteGradients::CompleteGradients(const std::vector<std::vector<at::Tensor>>& parts,
                                     OnGradientReady ready)
    : ready_(std::move(ready)) {
  if (!ready_) return;
  uses_ = UsesOf(
      parts, [this](const at::Tensor& parameter) { trained_.push_back({parameter}); },
      [this](int number) { ++trained_[static_cast<size_t>(number)].parts_left; });
}

void CompleteGradients::Finish(int part) {
  if (!ready_) return;
  const std::vector<int>& uses = uses_[static_cast<size_t>(part)];
  for (auto use = uses.rbegin(); use != uses.rend(); ++use) {
    Trained& trained = trained_[static_cast<size_t>(*use)];
    if (--trained.parts_left == 0) ready_(trained.parameter);
  }
}

// Stands in for the gradient accumulator of a parameter in the graphs of its uses. Runs as early as
// that would.
class ParameterGradients::GradientSum : public Node {
 public:
  explicit GradientSum(const at::Tensor& parameter)
      : Node(/*sequence_nr=*/UINT64_MAX), sum_(at::empty_like(parameter.variable_data())) {
    add_input_metadata(parameter);
  }

  variable_list apply(variable_list&& gradients) override {
    at::Tensor& gradient = gradients[0];
    if (!gradient.defined()) return {};
    if (!sum_.defined()) {
      // The sum so far, and what came since.
      sum_ = std::move(gradient);
    } else {
      // Not added to zeros, which would make +0 of -0.
      gradient.is_sparse() ? sum_.zero_().add_(gradient) : sum_.copy_(gradient);
    }
    has_gradient_ = true;
    return {};
  }

  // Undefined if no gradient came.
  at::Tensor Get() const { return has_gradient_ ? sum_ : at::Tensor(); }
  // The same, which has to come back as a gradient: nobody else holds it, so that the engine adds to it in place.
  at::Tensor Take() { return has_gradient_ ? std::move(sum_) : at::Tensor(); }

 private:
  at::Tensor sum_;
  bool has_gradient_ = false;
};

struct ParameterGradients::Trained {
  explicit Trained(at::Tensor tensor) : parameter(std::move(tensor)) {}

  at::Tensor parameter;
  int parts_left = 0;
  // Of a parameter of several parts: its own accumulator, and what stands in for it.
  NodePtr accumulator;
  NodePtrTo<GradientSum> sum;
};

ParameterGradients::ParameterGradients(const std::vector<std::vector<at::Tensor>>& parts,
                                       OnGradientReady ready)
    : uses_(UsesOf(
          parts,
          [this](const at::Tensor& parameter) {
            trained_.push_back(std::make_unique<Trained>(parameter));
          },
          [this](int number) { ++trained_[static_cast<size_t>(number)]->parts_left; })),
      ready_(std::move(ready)) {
  for (const std::unique_ptr<Trained>& trained : trained_) {
    if (trained->parts_left == 1) continue;
    trained->accumulator = torch::autograd::impl::grad_accumulator(trained->parameter);
    trained->sum = MakeNode<GradientSum>(trained->parameter);
  }
}

ParameterGradients::ParameterGradients(ParameterGradients&&) noexcept = default;
ParameterGradients::~ParameterGradients() = default;

ParameterGradients::Recording::Recording(ParameterGradients* gradients, int part)
    : uses_(gradients->uses_[static_cast<size_t>(part)]), gradients_(gradients) {
  for (const int use : uses_) {
    const Trained& trained = *gradients_->trained_[static_cast<size_t>(use)];
    if (trained.sum)
      torch::autograd::impl::set_grad_accumulator(trained.parameter, WeakNode(trained.sum));
  }
}

ParameterGradients::Recording::~Recording() {
  for (const int use : uses_) {
    const Trained& trained = *gradients_->trained_[static_cast<size_t>(use)];
    if (!trained.sum) continue;
    torch::autograd::impl::set_grad_accumulator(trained.parameter, WeakNode(trained.accumulator));
  }
}

// The sums so far are roots, too: the engine adds what the part gives to them as it adds it up in a graph
// of the whole model.
void ParameterGradients::Backward(int part, std::vector<at::Tensor> outputs,
                                  std::vector<at::Tensor> gradients) {
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> sums;
  for (const int use : uses_[static_cast<size_t>(part)]) {
    const Trained& trained = *trained_[static_cast<size_t>(use)];
    at::Tensor sum = trained.sum ? trained.sum->Take() : at::Tensor();
    if (!sum.defined()) continue;
    roots.emplace_back(trained.sum, 0);
    sums.push_back(std::move(sum));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    roots.push_back(torch::autograd::impl::gradient_edge(outputs[i]));
    sums.push_back(gradients[i].defined() ? std::move(gradients[i]) : at::ones_like(outputs[i]));
  }
  outputs.clear();
  gradients.clear();
  RunBackwardFrom(std::move(roots), std::move(sums));
}

void ParameterGradients::Finish(int part) {
  const std::vector<int>& uses = uses_[static_cast<size_t>(part)];
  for (auto use = uses.rbegin(); use != uses.rend(); ++use) {
    Trained& trained = *trained_[static_cast<size_t>(*use)];
    if (--trained.parts_left > 0) continue;
    if (trained.sum) {
      const at::Tensor sum = trained.sum->Get();
      if (sum.defined()) RunBackwardAt({Edge(trained.accumulator, 0)}, {sum});
    }
    if (ready_) ready_(trained.parameter);
  }
}

}  // namespace stowage

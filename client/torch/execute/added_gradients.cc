#include "client/torch/execute/added_gradients.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace stowage {
namespace {

using torch::autograd::FunctionPostHook;
using torch::autograd::variable_list;

// Takes a gradient that nobody needs. Runs as early as the accumulator for which it stands.
class GradientSink : public torch::autograd::Node {
 public:
  explicit GradientSink(const at::Tensor& parameter) : Node(/*sequence_nr=*/UINT64_MAX) {
    add_input_metadata(parameter);
  }
  variable_list apply(variable_list&&) override { return {}; }
};

}  // namespace

// After the accumulator, which has not failed then.
class AddedGradients::Hook : public FunctionPostHook {
 public:
  explicit Hook(std::shared_ptr<bool> added) : added_(std::move(added)) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    *added_ = true;
    return outputs;
  }

 private:
  const std::shared_ptr<bool> added_;
};

AddedGradients::AddedGradients(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    Watched watched{parameter, torch::autograd::impl::grad_accumulator(parameter),
                    std::make_shared<bool>(false)};
    watched.hook = watched.accumulator->add_post_hook(std::make_unique<Hook>(watched.added));
    watched_.push_back(std::move(watched));
  }
}

// An accumulator lives as long as anybody's graph does.
AddedGradients::~AddedGradients() {
  for (const Watched& watched : watched_) watched.accumulator->del_post_hook(watched.hook);
}

std::vector<at::Tensor> AddedGradients::Parameters() const {
  std::vector<at::Tensor> parameters;
  for (const Watched& watched : watched_) {
    if (*watched.added) parameters.push_back(watched.parameter);
  }
  return parameters;
}

LeavingGradients::LeavingGradients(const std::vector<at::Tensor>& parameters)
    : sinks_(parameters,
             [](const at::Tensor& parameter) { return MakeNode<GradientSink>(parameter); }) {}

}  // namespace stowage

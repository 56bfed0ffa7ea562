#include "client/torch/execute/new_gradients.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/base/tensor_storage.h"

namespace stowage {

using torch::autograd::Edge;
using torch::autograd::FunctionPostHook;
using torch::autograd::Node;
using torch::autograd::variable_list;

Bytes NewGradients::State::TakePeak() {
  peak = std::max(peak, meter->TakeRecentPeak() - taken);
  return peak;
}

// Between an edge and the accumulator, which the engine runs next.
class NewGradients::Passage : public Node {
 public:
  Passage(std::shared_ptr<State> state, const Watched& watched, uint64_t number)
      : Node(std::numeric_limits<uint64_t>::max() - 1 - number), state_(std::move(state)) {
    add_next_edge(Edge(watched.accumulator, 0));
    add_input_metadata(watched.parameter);
  }

  variable_list apply(variable_list&& gradients) override {
    state_->TakePeak();
    return std::move(gradients);
  }

  std::string name() const override { return "StowageFirstGradient"; }

 private:
  std::shared_ptr<State> state_;
};

// After the accumulator. What happened in there, a copy at most, is the gradient's.
class NewGradients::Hook : public FunctionPostHook {
 public:
  Hook(std::shared_ptr<State> state, at::Tensor parameter)
      : state_(std::move(state)), parameter_(std::move(parameter)) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    const at::Tensor& gradient = parameter_.grad();
    if (is_first_ && gradient.defined()) {
      is_first_ = false;
      state_->meter->TakeRecentPeak();
      const c10::StorageImpl* const storage = StorageOf(gradient);
      // Several may be parts of one.
      if (storage != nullptr && state_->gradients.insert(storage).second) {
        state_->taken += Bytes(static_cast<int64_t>(storage->nbytes()));
      }
    }
    return outputs;
  }

 private:
  std::shared_ptr<State> state_;
  at::Tensor parameter_;
  bool is_first_ = true;
};

NewGradients::NewGradients(const ModelTensors& model, MemoryMeter* meter)
    : state_(std::make_shared<State>(State{meter, Bytes(0), Bytes(0), {}})) {
  for (const at::Tensor& parameter : model.parameters()) {
    const std::vector<at::Tensor>& tied = model.tied_parameters();
    const bool is_tied = std::any_of(tied.begin(), tied.end(), [&](const at::Tensor& other) {
      return other.is_same(parameter);
    });
    if (!parameter.requires_grad() || parameter.grad().defined() || is_tied) continue;
    Watched watched{parameter, torch::autograd::impl::grad_accumulator(parameter)};
    watched.hook = watched.accumulator->add_post_hook(std::make_unique<Hook>(state_, parameter));
    watched_.emplace(watched.accumulator.get(), std::move(watched));
  }
}

// An accumulator lives as long as anybody's graph does.
NewGradients::~NewGradients() {
  for (const auto& [node, watched] : watched_) watched.accumulator->del_post_hook(watched.hook);
}

NodePtr NewGradients::Before(const Node* accumulator, uint64_t number) const {
  const auto found = watched_.find(accumulator);
  if (found == watched_.end()) return nullptr;
  return MakeNode<Passage>(state_, found->second, number);
}

}  // namespace stowage

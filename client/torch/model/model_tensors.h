// What a model trains and updates: its parameters and buffers, each once, whatever parts of the model
// share them; and whether its modules are in train(). Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_MODEL_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_MODEL_MODEL_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stowage {

// What one part of a model was found to use (client/torch/profile/found_state.h).
struct FoundState {
  std::string op_kind;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

// Of a module and those in it, in a fixed order: whether each is in train().
using ModuleModes = std::function<std::vector<bool>()>;

// Of a torch::nn::Module; empty of anything else that has a forward, whose modes are nobody's to see.
template <class Module>
auto ModesOf(const std::shared_ptr<Module>& module, int)
    -> decltype(module->modules().front()->is_training(), ModuleModes()) {
  return [modules = module->modules()] {
    std::vector<bool> training;
    for (const auto& part : modules) training.push_back(part->is_training());
    return training;
  };
}
template <class Module>
ModuleModes ModesOf(const std::shared_ptr<Module>&, ...) {
  return {};
}

class ModelTensors {
 public:
  // In the order of their first use.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<at::Tensor>& buffers() const { return buffers_; }
  // Those of the parameters that several parts of the model use. While one that is trained has gradients
  // of some of its parts, a step holds a second one (ParameterGradients).
  const std::vector<at::Tensor>& tied_parameters() const { return tied_parameters_; }

  // Modes of all parts that tell, in order: what eval() and train() have set now. O(modules).
  std::vector<bool> modes() const;

  // Gives every trainable parameter that has none a zeroed gradient: gradients do not belong to the activation budget, and
  // where they exist before a step nothing has to be left out of what it takes.
  void EnsureGradients() const;
  // Zeroes the gradients in place.
  void ZeroGradients() const;

 protected:
  // Those of one more part of the model.
  void AddTensors(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& buffers,
                  ModuleModes modes = {});
  // To what a part lists, and to all, what it lists not.
  void AddFound(const FoundState& found, std::string* op_kind, std::vector<at::Tensor>* parameters,
                std::vector<at::Tensor>* buffers);

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> tied_parameters_;
  std::vector<ModuleModes> modes_;
};

// Whether any of them is to be trained.
bool AnyTrains(const std::vector<at::Tensor>& parameters);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_MODEL_TENSORS_H_

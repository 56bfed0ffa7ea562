// What a model trains and updates: its parameters and buffers, each once, whatever parts of the model
// share them. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_MODEL_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_MODEL_MODEL_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stowage {

// What one part of a model was found to use (client/torch/profile/found_state.h).
struct FoundState {
  std::string op_kind;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

class ModelTensors {
 public:
  // In the order of their first use.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<at::Tensor>& buffers() const { return buffers_; }
  // Those of the parameters that several parts of the model use. While one that is trained has gradients
  // of some of its parts, a step holds a second one (ParameterGradients).
  const std::vector<at::Tensor>& tied_parameters() const { return tied_parameters_; }

  // Gives every trainable parameter that has none a zeroed gradient: gradients do not belong to the
  // activation budget and so must exist before a step.
  void EnsureGradients() const;
  // Zeroes the gradients in place.
  void ZeroGradients() const;

 protected:
  // Those of one more part of the model.
  void AddTensors(const std::vector<at::Tensor>& parameters,
                  const std::vector<at::Tensor>& buffers);
  // To what a part lists, and to all, what it lists not.
  void AddFound(const FoundState& found, std::string* op_kind, std::vector<at::Tensor>* parameters,
                std::vector<at::Tensor>* buffers);

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> tied_parameters_;
};

// Whether any of them is to be trained.
bool AnyTrains(const std::vector<at::Tensor>& parameters);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_MODEL_TENSORS_H_

// A graph of one node whose backward is what is left of a planned step.
#ifndef STOWAGE_CLIENT_TORCH_PLANNED_BACKWARD_H_
#define STOWAGE_CLIENT_TORCH_PLANNED_BACKWARD_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stowage {

// The second half of a step. Functions throw.
class PlannedRest {
 public:
  virtual ~PlannedRest() = default;
  // From the gradient of the output to that of the input, undefined if it asks for none. Called again if
  // the graph was kept.
  virtual at::Tensor Backward(at::Tensor gradient) = 0;
};

// Where a gradient of `input` goes; nowhere if it asks for none.
torch::autograd::Edge EdgeTo(const at::Tensor& input);

// Makes `rest` the backward of `output`, a tensor without a graph, and `next` what it goes on to. It is
// destroyed when the graph is: after its backward unless that keeps the graph, or when it fails.
void SetBackward(const at::Tensor& output, torch::autograd::Edge next,
                 std::unique_ptr<PlannedRest> rest);

// What is read by a forward and, where that runs again, in the backward. Holds none of it.
class TensorVersions {
 public:
  TensorVersions(std::string what, const std::vector<at::Tensor>& tensors);
  // Throws c10::Error if one was written over since the construction.
  void CheckUnchanged() const;

 private:
  std::string what_;
  std::vector<c10::VariableVersion> counters_;
  std::vector<uint32_t> versions_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PLANNED_BACKWARD_H_

// The batch that a plan was made for: a step may be smaller in every dimension, not of another
// form, and not under another autocast. Fewer but longer sequences have no more bytes of input and yet need more memory inside.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_BATCH_SHAPE_H_
#define STOWAGE_CLIENT_TORCH_MODEL_BATCH_SHAPE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/base/tensors.h"

namespace stowage {

// Type and sizes of a tensor; of an undefined one, Undefined and none.
struct TensorShape {
  static TensorShape Of(const at::Tensor& tensor);

  at::ScalarType type = at::ScalarType::Undefined;
  std::vector<int64_t> sizes;
};

struct BatchShape {
  // With the autocast that is in force.
  static BatchShape Of(const Tensors& inputs, const Tensors& targets);

  // INVALID_ARGUMENT unless there are as many tensors as planned, each of the planned type, of the planned number of
  // dimensions and with no dimension larger than planned; of inputs also unless the planned autocast is in force.
  absl::Status CheckInputs(const std::vector<at::Tensor>& tensors) const;
  absl::Status CheckTargets(const std::vector<at::Tensor>& tensors) const;

  std::vector<TensorShape> inputs;
  std::vector<TensorShape> targets;
  std::string autocast;  // AutocastState::ToString
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_BATCH_SHAPE_H_

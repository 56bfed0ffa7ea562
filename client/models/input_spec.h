// The inputs of a network as a user writes them, and random tensors that are so.
#ifndef STOWAGE_CLIENT_MODELS_INPUT_SPEC_H_
#define STOWAGE_CLIENT_MODELS_INPUT_SPEC_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/model/batch_shape.h"

namespace stowage {

// "8x3x224x224", "8x3x224x224:bfloat16", "8x128:int64<30522".
struct InputSpec {
  std::vector<int64_t> sizes;  // at least one, each at least 1
  at::ScalarType type = at::kFloat;
  // Of integers: they are drawn from [0, below).
  int64_t below = 0;
};

// Those of a network in their order, with commas between. INVALID_ARGUMENT made by FieldError, with the
// name "input": no shape, a size < 1, an unknown type, integers without their range, more elements than
// 2^40.
absl::StatusOr<std::vector<InputSpec>> ParseInputs(const std::string& text);

// Normal, or integers of the range, from LibTorch's random state. Throws what LibTorch throws.
at::Tensor DrawInput(const InputSpec& input);

// "8x3x224x224 float32"; of a tensor without sizes "one float32".
std::string ToString(const TensorShape& shape);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_INPUT_SPEC_H_

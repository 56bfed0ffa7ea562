// A TorchScript module as one flat graph over its inputs and its tensors: the first half of an import.
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_LOWER_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_LOWER_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/script/script_node.h"

namespace stowage {

struct ScriptAttribute {
  at::Tensor tensor;
  std::string path;  // "layer1.0.conv1.weight"
  bool is_parameter = false;
};

struct LoweredScript {
  // Inputs: the module's own, then one for each attribute. No calls, no objects; of branches and loops
  // only those that shapes decide. What an op in place returns goes by the name of what it wrote over.
  std::shared_ptr<torch::jit::Graph> graph;
  size_t own_inputs = 0;
  std::vector<ScriptAttribute> attributes;
  // What the module returns, tuples and lists taken apart.
  std::vector<ScriptValue*> returned;
};

// The module's `forward` in the state, training or not, that the module is in. The module's own graph
// is left as it is; tensors are the module's. UNIMPLEMENTED: what ScriptModel says it refuses; the
// message names the node and where it came from. Throws what LibTorch throws.
absl::StatusOr<LoweredScript> LowerScript(const torch::jit::Module& module);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_LOWER_H_

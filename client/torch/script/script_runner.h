// Runs one segment of a cut TorchScript graph.
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_RUNNER_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_RUNNER_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <memory>
#include <string>
#include <vector>

#include "client/torch/script/script_cut.h"
#include "client/torch/script/script_lower.h"

namespace stowage {

// Op by op as the interpreter finds them: nothing is fused or differentiated ahead, autograd records
// what it sees, as without TorchScript. Not thread-safe.
class ScriptRunner {
 public:
  ScriptRunner(const LoweredScript& script, const ScriptSegment& segment, const std::string& name);

  // `inputs` are the segment's inputs, then its shapes, for which anything of the same shape, type and
  // device will do. Throws what its ops throw.
  at::Tensor Run(const std::vector<at::Tensor>& inputs) const;

  // Of the segment, in the order of its attributes.
  const std::vector<ScriptAttribute>& attributes() const { return attributes_; }

 private:
  std::vector<ScriptAttribute> attributes_;
  torch::jit::Code code_;
  std::vector<at::Tensor> constants_;
};

// A tensor of the same shape, type and device that holds one element.
at::Tensor ShapeOf(const at::Tensor& tensor);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_RUNNER_H_

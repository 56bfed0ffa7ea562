// A TorchScript module as a GraphModel: a second front end onto the same graphs.
//
// Traced modules, and scripted ones as far as they can be cut: what calls Python, branches or loops by
// what a tensor holds, sets attributes of the module, writes over its inputs or parameters, takes or
// returns anything but tensors (tuples and lists of them may be returned), or has no place where one
// tensor alone is in use, is refused. How it is cut: script_cut.h.
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_MODEL_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/model/graph_model.h"

namespace torch {
namespace jit {
struct Module;
}  // namespace jit
}  // namespace torch

namespace stowage {

struct ScriptModel {
  // Its inputs are those of forward. There is no loss yet: add it as a last node that reads `outputs`.
  GraphModel model;
  // What forward returns, tuples and lists taken apart, as nodes of the model.
  std::vector<int> outputs;
};

// The model trains the module's own parameters and updates its own buffers. It is of the module as it
// is now: in training mode or not (a trace has baked in the mode that it was made in), with its present
// attributes; a module moved to another type or device takes the model along, but not constants in
// its graph, nor profiles and gradients that were made before: import it again. Parameters with
// requires_grad false are not trained, later changes of that are seen.
//
// Nodes have names and kinds that depend on the graph alone; a kind is the names of its ops.
// UNIMPLEMENTED: something is refused; the message names the op, its place in the source, and the
// rule. INVALID_ARGUMENT: the module has no forward. What a segment runs is op by op what the module
// runs without optimisation of its own (torch::jit::setGraphExecutorOptimize(false)).
absl::StatusOr<ScriptModel> ImportScript(const torch::jit::Module& module, const std::string& name);

// Of a file that torch.jit.save wrote. INVALID_ARGUMENT: it cannot be loaded.
absl::StatusOr<ScriptModel> ImportScriptFile(const std::string& path);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_MODEL_H_

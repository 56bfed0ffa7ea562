// Cuts the ops of a lowered TorchScript graph into the segments that become nodes of a GraphModel.
//
// The rule: a segment is a run of ops in program order. It ends after the first op at which it reads a
// tensor made before it, exactly one value made in it is used later, which is a tensor, and no write
// over memory made in it is to come. So an op is a segment of its own, but ops that write in place are
// with the maker of the tensor, and chunks and splits with their readers, until one tensor is left.
// Ops that read no earlier tensor (but parameters, say) go with those after them up to the first place
// for a cut at which one has been read, if that ends the segment, and else are by themselves.
// O(ops * longest segment).
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_CUT_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_CUT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/script/script_lower.h"
#include "client/torch/script/script_node.h"
#include "client/torch/script/script_ops.h"

namespace stowage {

struct ScriptSegment {
  std::vector<ScriptNode*> ops;
  // Outputs of earlier segments, or inputs of the module; the first is one whose memory the output may
  // share, if any does.
  std::vector<ScriptValue*> inputs;
  // The same, but only their shapes are asked for. Together never empty.
  std::vector<ScriptValue*> shapes;
  std::vector<ScriptValue*> attributes;  // inputs of the graph that are none of the module
  ScriptValue* output = nullptr;
  bool is_random = false;
};

// In an order in which each can run. UNIMPLEMENTED: an op after which no cut leaves one tensor (the
// message names it), or a returned value that no segment can make. The script must outlive the result.
absl::StatusOr<std::vector<ScriptSegment>> CutScript(const LoweredScript& script,
                                                     const ScriptOps& ops);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_CUT_H_

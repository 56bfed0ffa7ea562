// Which values of a TorchScript graph may share memory, and which nodes write over it: by the alias
// annotations of the ops' schemas, whatever the order of the nodes.
//
// Coarser than what a run would show (two views of one tensor count as one memory), never finer, but
// for ops that return their input without saying so. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_ALIAS_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_ALIAS_H_

#include <torch/csrc/jit/ir/ir.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/torch/script/script_node.h"

namespace stowage {

class ScriptAliases {
 public:
  explicit ScriptAliases(torch::jit::Graph* graph);

  // A number that values have in common if they may share memory. A list or tuple that is only put
  // together has one of its own, apart from those of what is in it.
  int ClassOf(const ScriptValue* value) const;
  // Those that the node, or one in its blocks, writes over.
  std::vector<int> WrittenBy(const ScriptNode* node) const;
  // Whether anybody writes over it, or over what is in it.
  bool IsWritten(const ScriptValue* value) const;

 private:
  int Index(const ScriptValue* value);
  int Root(int index) const;
  void Join(const ScriptValue* a, const ScriptValue* b);
  // Of what a value holds: the elements, if it was put together, else itself.
  std::vector<const ScriptValue*> Parts(const ScriptValue* value) const;
  void Add(ScriptNode* node);
  void AddBySchema(const ScriptNode* node, const c10::FunctionSchema& schema);
  void AddBlocks(ScriptNode* node);
  void JoinAll(const ScriptNode* node);

  std::unordered_map<const ScriptValue*, int> index_;
  std::vector<int> parent_;
  std::unordered_map<const ScriptNode*, std::vector<const ScriptValue*>> writes_;
  std::unordered_set<int> written_;  // roots
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_ALIAS_H_

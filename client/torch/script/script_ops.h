// The ops of a lowered TorchScript graph that a cut runs between, with what each of them reads.
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_OPS_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_OPS_H_

#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/script/script_alias.h"
#include "client/torch/script/script_lower.h"
#include "client/torch/script/script_node.h"

namespace stowage {

struct ScriptOp {
  ScriptNode* node = nullptr;
  // Made by other ops, or inputs of the graph; each once. `shapes`: it asks only for their shapes.
  std::vector<ScriptValue*> data;
  std::vector<ScriptValue*> shapes;
  std::vector<int> written;  // classes of memory that it writes over
  std::vector<int> touched;  // ... that it reads, writes or makes
  bool has_effects = false;
  bool is_random = false;
};

class ScriptOps {
 public:
  // UNIMPLEMENTED: an op writes over an input of the module, a parameter or a constant. The script
  // must outlive the object.
  static absl::StatusOr<ScriptOps> Create(const LoweredScript& script);

  // In program order, but where an op in place comes later than what it writes over: see Gather.
  const std::vector<ScriptOp>& ops() const { return ops_; }
  // By op: whether what comes after may be cut from it. Not between the making of a tensor and the
  // last write over it.
  std::vector<bool> MayCutAfter() const;
  // No op: constants, arithmetic on shapes, lists. Every segment that needs such a value makes it
  // anew.
  bool IsMadeAnew(const ScriptNode* node) const {
    return IsConstant(node) || made_anew_.count(node) > 0;
  }
  const ScriptAliases& aliases() const { return aliases_; }

 private:
  explicit ScriptOps(const LoweredScript& script);
  bool CanBeMadeAnew(ScriptNode* node) const;
  ScriptOp MakeOp(ScriptNode* node) const;
  void Read(ScriptValue* value, bool shape_only, std::unordered_set<const ScriptNode*>* seen,
            ScriptOp* op) const;
  absl::Status CheckWrites() const;
  void Gather(size_t writer);
  bool OnlyWritesAttributes(const ScriptOp& op) const;
  bool Makes(const ScriptOp& op, int memory) const;
  size_t FirstMaker(size_t writer) const;

  const LoweredScript& script_;
  ScriptAliases aliases_;
  std::unordered_set<const ScriptNode*> made_anew_;
  std::vector<ScriptOp> ops_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_OPS_H_

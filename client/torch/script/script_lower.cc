#include "client/torch/script/script_lower.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/loop_unrolling.h>
#include <torch/csrc/jit/passes/lower_tuples.h>
#include <torch/csrc/jit/passes/peephole.h>
#include <torch/csrc/jit/passes/remove_mutation.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

namespace prim = c10::prim;

absl::Status Refuse(const ScriptNode* node, const std::string& rule) {
  return absl::UnimplementedError(absl::StrCat(Describe(node), ": ", rule));
}

// Replaces what is read of the module by constants and by inputs of the graph.
class AttributeReader {
 public:
  AttributeReader(const torch::jit::Module& module, LoweredScript* script) : script_(script) {
    objects_[script->graph->inputs()[0]] = {module._ivalue(), ""};
    for (const at::Tensor& parameter : module.parameters()) {
      parameters_.insert(parameter.unsafeGetTensorImpl());
    }
  }

  // What it cannot replace stays: it may be where nobody comes.
  void Run() {
    Read(script_->graph->block());
    for (auto node = reads_.rbegin(); node != reads_.rend(); ++node) {
      if (!(*node)->hasUses()) (*node)->destroy();
    }
  }

 private:
  struct Object {
    c10::intrusive_ptr<c10::ivalue::Object> object;
    std::string path;
  };

  void Read(torch::jit::Block* block) {
    for (ScriptNode* node : block->nodes()) {
      for (torch::jit::Block* inner : node->blocks()) Read(inner);
      if (node->kind() == prim::GetAttr) ReadAttribute(node);
    }
  }

  void ReadAttribute(ScriptNode* node) {
    const auto owner = objects_.find(node->input());
    if (owner == objects_.end()) return;
    reads_.push_back(node);
    const std::string name = node->s(c10::attr::name);
    const std::string path =
        owner->second.path.empty() ? name : absl::StrCat(owner->second.path, ".", name);
    const c10::IValue value = owner->second.object->getAttr(name);
    if (value.isTensor()) {
      node->output()->replaceAllUsesWith(InputFor(value.toTensor(), path));
    } else if (value.isObject()) {
      objects_[node->output()] = {value.toObject(), path};
    } else {
      const torch::jit::WithInsertPoint before(node);
      const auto constant = torch::jit::tryInsertConstant(*script_->graph, value);
      if (constant) node->output()->replaceAllUsesWith(*constant);
    }
  }

  ScriptValue* InputFor(const at::Tensor& tensor, const std::string& path) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    ScriptValue*& input = inputs_[impl];
    if (input == nullptr) {
      input = script_->graph->addInput();
      input->setType(c10::TensorType::get());
      script_->attributes.push_back({tensor, path, parameters_.count(impl) > 0});
    }
    return input;
  }

  LoweredScript* script_;
  std::unordered_map<const ScriptValue*, Object> objects_;
  std::unordered_map<const c10::TensorImpl*, ScriptValue*> inputs_;
  std::set<const c10::TensorImpl*> parameters_;
  std::vector<ScriptNode*> reads_;
};

void Simplify(std::shared_ptr<torch::jit::Graph> graph) {
  // What a trace saw of shapes holds for one batch only.
  torch::jit::EraseShapeInformation(graph);
  torch::jit::ConstantPropagationImmutableTypes(graph);
  torch::jit::PeepholeOptimize(graph, /*disable_shape_peepholes=*/true);
  torch::jit::UnrollConstantLoops(graph);
  torch::jit::ConstantPropagationImmutableTypes(graph);
  torch::jit::LowerSimpleTuples(graph);
  torch::jit::RemoveListMutation(graph);
  torch::jit::EliminateDeadCode(graph);
}

// An op in place returns the tensor that it was given.
void RenameInPlace(torch::jit::Block* block) {
  for (ScriptNode* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) RenameInPlace(inner);
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr || schema->is_vararg() || schema->returns().size() != 1) continue;
    const c10::Argument& result = schema->returns()[0];
    if (!WritesTo(result)) continue;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const c10::Argument& argument = schema->arguments()[i];
      if (!WritesTo(argument) || AliasSets(argument) != AliasSets(result)) continue;
      node->output()->replaceAllUsesWith(node->input(i));
      break;
    }
  }
}

absl::Status CheckKind(const ScriptNode* node) {
  static const auto* const kOtherShape = new std::set<std::string>{
      "as_strided_", "resize_",        "resize_as_", "set_",       "squeeze_",
      "swapaxes_",   "swapdims_",      "t_",         "transpose_", "unsqueeze_",
      "detach_",     "requires_grad_", "set_data"};
  static const auto* const kStructure = new std::set<std::string>{
      "prim::Constant",     "prim::ListConstruct", "prim::TupleConstruct", "prim::TupleUnpack",
      "prim::TupleIndex",   "prim::TupleSlice",    "prim::ListUnpack",     "prim::If",
      "prim::Loop",         "prim::Uninitialized", "prim::unchecked_cast", "prim::RaiseException",
      "prim::DictConstruct"};
  const std::string kind = node->kind().toQualString();
  if (kStructure->count(kind) > 0) return absl::OkStatus();
  if (kind == "prim::GetAttr") {
    const c10::Type& type = *node->output()->type();
    // A module that something is done to, which is then refused.
    if (type.kind() == c10::TypeKind::ClassType) return absl::OkStatus();
    return Refuse(node, absl::StrCat("reads the module's attribute '", node->s(c10::attr::name),
                                     "', a ", type.str(), ", of which no constant can be made"));
  }
  if (kind == "prim::PythonOp") return Refuse(node, "a call into Python cannot be imported");
  if (kind == "prim::CallMethod" || kind == "prim::CallFunction") {
    return Refuse(node, "a call that cannot be inlined");
  }
  if (kind == "prim::SetAttr") {
    return Refuse(node, absl::StrCat("sets the module's attribute '", node->s(c10::attr::name),
                                     "', which a recompute would do again"));
  }
  if (kind == "prim::Enter" || kind == "prim::Exit") {
    return Refuse(node, "a 'with' reaches over more than one op");
  }
  if (kind == "prim::requires_grad" || kind == "aten::requires_grad") {
    return Refuse(node, "asks for gradients, which not all forwards of a plan have");
  }
  if (kOtherShape->count(ShortName(node)) > 0) {
    return Refuse(node, "changes a tensor in place otherwise than by writing to it");
  }
  if (node->maybeOperator() == nullptr || kind == "prim::fork" || kind == "aten::wait" ||
      kind == "prim::awaitable") {
    return Refuse(node, "no op that can be cut");
  }
  return absl::OkStatus();
}

absl::Status CheckControl(const ScriptNode* node) {
  if (node->blocks().empty()) return absl::OkStatus();
  const bool is_loop = node->kind() == prim::Loop;
  std::vector<const ScriptValue*> deciding = {node->input(0)};
  if (is_loop) deciding.insert(deciding.end(), {node->input(1), node->blocks()[0]->outputs()[0]});
  const ScriptNode* read = nullptr;
  for (const ScriptValue* value : deciding) {
    if (read == nullptr) read = FindDataRead(value);
  }
  // Which of its iterations is the last may depend on anything that it carries on.
  if (is_loop && read == nullptr) {
    for (const ScriptValue* carried : node->outputs()) {
      if (read == nullptr && !HoldsTensors(*carried->type())) read = FindDataRead(carried);
    }
  }
  if (read == nullptr) return absl::OkStatus();
  return Refuse(node, absl::StrCat("what a tensor holds decides it (", Describe(read),
                                   "): a plan is made before that is known"));
}

absl::Status DropSelf(torch::jit::Graph* graph) {
  const ScriptValue* self = graph->inputs()[0];
  if (self->hasUses()) {
    return Refuse(self->uses()[0].user, "it takes the module itself, which has no place in a cut");
  }
  graph->eraseInput(0);
  return absl::OkStatus();
}

absl::Status CheckNodes(const torch::jit::Graph& graph) {
  absl::Status status;
  for (const ScriptNode* node : graph.nodes()) {
    VisitNested(node, [&status](const ScriptNode* each) {
      if (status.ok()) status = CheckKind(each);
      if (status.ok()) status = CheckControl(each);
    });
  }
  return status;
}

absl::Status CheckInputs(const LoweredScript& script) {
  for (size_t i = 0; i < script.own_inputs; ++i) {
    const ScriptValue* input = script.graph->inputs()[i];
    if (IsTensor(input)) continue;
    return absl::UnimplementedError(absl::StrCat("input ", i, " (", input->debugName(), ") is a ",
                                                 input->type()->str(), ": inputs must be tensors"));
  }
  if (script.own_inputs > 0) return absl::OkStatus();
  return absl::UnimplementedError("forward takes no input");
}

absl::Status FindReturned(const ScriptValue* value, std::vector<ScriptValue*>* returned) {
  if (IsTensor(value)) {
    returned->push_back(const_cast<ScriptValue*>(value));
    return absl::OkStatus();
  }
  if (!IsPacking(value->node())) {
    return absl::UnimplementedError(absl::StrCat("forward returns a ", value->type()->str(),
                                                 ": it must be a tensor, or a tuple or list "
                                                 "written as such"));
  }
  for (const ScriptValue* part : value->node()->inputs()) {
    absl::Status status = FindReturned(part, returned);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoweredScript> LowerScript(const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  if (!method) return absl::InvalidArgumentError("the module has no method 'forward'");
  LoweredScript script;
  script.graph = method->graph()->copy();
  torch::jit::Inline(*script.graph);
  script.own_inputs = script.graph->inputs().size() - 1;
  AttributeReader(module, &script).Run();
  Simplify(script.graph);
  RenameInPlace(script.graph->block());
  absl::Status status = CheckNodes(*script.graph);
  if (status.ok()) status = DropSelf(script.graph.get());
  if (status.ok()) status = CheckInputs(script);
  for (const ScriptValue* output : script.graph->outputs()) {
    if (status.ok()) status = FindReturned(output, &script.returned);
  }
  if (!status.ok()) return status;
  return script;
}

}  // namespace stowage

#include "client/torch/script/script_model.h"

#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/script/script_cut.h"
#include "client/torch/script/script_lower.h"
#include "client/torch/script/script_ops.h"
#include "client/torch/script/script_runner.h"
#include "solvers/model/digest.h"

namespace stowage {
namespace {

// So long that nobody reads on.
constexpr size_t kMaxKind = 120;

// "batch_norm+relu_".
std::string KindOf(const ScriptSegment& segment) {
  std::vector<std::string> ops;
  for (const ScriptNode* op : segment.ops) ops.push_back(ShortName(op));
  std::string kind = absl::StrJoin(ops, "+");
  if (kind.size() <= kMaxKind) return kind;
  return absl::StrCat(kind.substr(0, kMaxKind), "...", Sha256(kind).ToHex().substr(0, 16));
}

class ModelMaker {
 public:
  ModelMaker(const LoweredScript& script, const std::vector<ScriptSegment>& segments,
             std::string name)
      : script_(script), segments_(segments), made_{GraphModel(std::move(name)), {}} {}

  ScriptModel Make() {
    for (size_t i = 0; i < script_.own_inputs; ++i) {
      const ScriptValue* input = script_.graph->inputs()[i];
      nodes_[input] = made_.model.AddInput(absl::StrCat("input", i));
    }
    for (size_t i = 0; i < script_.own_inputs; ++i) {
      if (NeedsShape(script_.graph->inputs()[i])) ShapeNode(script_.graph->inputs()[i]);
    }
    for (const ScriptSegment& segment : segments_) Add(segment);
    for (const ScriptValue* value : script_.returned) made_.outputs.push_back(nodes_.at(value));
    return std::move(made_);
  }

 private:
  // Right after what it is the shape of, which the plan then need not keep.
  int ShapeNode(const ScriptValue* value) {
    const auto known = shapes_.find(value);
    if (known != shapes_.end()) return known->second;
    const int of = nodes_.at(value);
    ModelNode shape;
    shape.name = absl::StrCat("shape of ", made_.model.node(of).name);
    shape.op_kind = "shape";
    shape.inputs = {of};
    shape.detached = true;
    shape.forward = [](const std::vector<at::Tensor>& inputs) { return ShapeOf(inputs[0]); };
    const int node = made_.model.AddNode(std::move(shape));
    shapes_[value] = node;
    return node;
  }

  bool NeedsShape(const ScriptValue* value) const {
    return std::any_of(segments_.begin(), segments_.end(), [value](const ScriptSegment& segment) {
      return std::find(segment.shapes.begin(), segment.shapes.end(), value) != segment.shapes.end();
    });
  }

  std::string NameOf(const ScriptSegment& segment, const ScriptRunner& runner) {
    std::string name = ShortName(segment.ops.back());
    if (!runner.attributes().empty()) {
      const std::string& path = runner.attributes()[0].path;
      const size_t dot = path.rfind('.');
      name = dot == std::string::npos ? path : path.substr(0, dot);
    }
    const int uses = ++uses_[name];
    return uses == 1 ? name : absl::StrCat(name, "#", uses);
  }

  void Add(const ScriptSegment& segment) {
    ModelNode node;
    node.op_kind = KindOf(segment);
    const auto runner = std::make_shared<const ScriptRunner>(script_, segment, node.op_kind);
    node.name = NameOf(segment, *runner);
    node.random = segment.is_random;
    for (const ScriptValue* input : segment.inputs) node.inputs.emplace_back(nodes_.at(input));
    for (const ScriptValue* input : segment.shapes) node.inputs.emplace_back(ShapeNode(input));
    for (const ScriptAttribute& attribute : runner->attributes()) {
      (attribute.is_parameter ? node.parameters : node.buffers).push_back(attribute.tensor);
    }
    node.forward = [runner](const std::vector<at::Tensor>& inputs) { return runner->Run(inputs); };
    nodes_[segment.output] = made_.model.AddNode(std::move(node));
    if (NeedsShape(segment.output)) ShapeNode(segment.output);
  }

  const LoweredScript& script_;
  const std::vector<ScriptSegment>& segments_;
  ScriptModel made_;
  std::unordered_map<const ScriptValue*, int> nodes_;
  std::unordered_map<const ScriptValue*, int> shapes_;
  std::map<std::string, int> uses_;
};

}  // namespace

absl::StatusOr<ScriptModel> ImportScript(const torch::jit::Module& module,
                                         const std::string& name) {
  try {
    const absl::StatusOr<LoweredScript> script = LowerScript(module);
    if (!script.ok()) return script.status();
    const absl::StatusOr<ScriptOps> ops = ScriptOps::Create(*script);
    if (!ops.ok()) return ops.status();
    const absl::StatusOr<std::vector<ScriptSegment>> segments = CutScript(*script, *ops);
    if (!segments.ok()) return segments.status();
    return ModelMaker(*script, *segments, name).Make();
  } catch (...) {
    return CurrentExceptionToStatus("importing " + name, absl::StatusCode::kInternal);
  }
}

absl::StatusOr<ScriptModel> ImportScriptFile(const std::string& path) {
  try {
    return ImportScript(torch::jit::load(path), path);
  } catch (...) {
    return CurrentExceptionToStatus("loading " + path, absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace stowage

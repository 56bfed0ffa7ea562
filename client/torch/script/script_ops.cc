#include "client/torch/script/script_ops.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

template <class T>
bool Has(const std::vector<T>& items, const T& item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

template <class T>
bool Overlap(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const T& item) { return Has(b, item); });
}

void AddOnce(ScriptValue* value, std::vector<ScriptValue*>* values) {
  if (!Has(*values, value)) values->push_back(value);
}

bool ReadsOutputOf(const ScriptOp& reader, const ScriptOp& maker) {
  const auto made_there = [&maker](const ScriptValue* value) {
    return value->node() == maker.node;
  };
  return std::any_of(reader.data.begin(), reader.data.end(), made_there) ||
         std::any_of(reader.shapes.begin(), reader.shapes.end(), made_there);
}

// Whether a run in the other order gives the same, bit for bit: of tensors that both read, gradients
// would be added up in another order.
bool MaySwap(const ScriptOp& first, const ScriptOp& second) {
  if (first.has_effects || second.has_effects) return false;
  if (first.is_random && second.is_random) return false;
  return !ReadsOutputOf(second, first) && !Overlap(first.data, second.data) &&
         !Overlap(first.written, second.touched) && !Overlap(second.written, first.touched);
}

}  // namespace

ScriptOps::ScriptOps(const LoweredScript& script) : script_(script), aliases_(script.graph.get()) {
  for (ScriptNode* node : script.graph->nodes()) {
    if (IsConstant(node)) continue;
    if (CanBeMadeAnew(node)) {
      made_anew_.insert(node);
    } else {
      ops_.push_back(MakeOp(node));
    }
  }
}

bool ScriptOps::CanBeMadeAnew(ScriptNode* node) const {
  if (HasEffects(node) || IsRandom(node) || !aliases_.WrittenBy(node).empty()) return false;
  for (const ScriptValue* output : node->outputs()) {
    if (aliases_.IsWritten(output) && !IsTensor(output)) return false;
  }
  if (IsPacking(node)) return true;
  if (IsUnpacking(node)) return made_anew_.count(node->input(0)->node()) > 0;
  for (const ScriptValue* output : node->outputs()) {
    if (HoldsTensors(*output->type()) && !IsNumberAsTensor(output)) return false;
  }
  if (ReadsOnlyShape(node)) return true;
  // What a tensor holds would be another after a write.
  const std::vector<ScriptValue*> reads = ReadBy(node);
  return std::none_of(reads.begin(), reads.end(), [this](const ScriptValue* read) {
    return HoldsTensors(*read->type()) && aliases_.IsWritten(read);
  });
}

void ScriptOps::Read(ScriptValue* value, bool shape_only,
                     std::unordered_set<const ScriptNode*>* seen, ScriptOp* op) const {
  ScriptNode* node = value->node();
  if (IsConstant(node)) return;
  if (made_anew_.count(node) == 0) {
    return AddOnce(value, shape_only && IsTensor(value) ? &op->shapes : &op->data);
  }
  if (!seen->insert(node).second) return;
  for (ScriptValue* input : ReadBy(node)) {
    Read(input, ReadsOnlyShape(node), seen, op);
  }
}

ScriptOp ScriptOps::MakeOp(ScriptNode* node) const {
  ScriptOp op;
  op.node = node;
  op.has_effects = HasEffects(node);
  op.is_random = IsRandom(node);
  op.written = aliases_.WrittenBy(node);
  op.touched = op.written;
  std::unordered_set<const ScriptNode*> seen;
  for (ScriptValue* value : ReadBy(node)) Read(value, ReadsOnlyShapeOf(node, value), &seen, &op);
  for (const ScriptValue* value : op.data) op.touched.push_back(aliases_.ClassOf(value));
  for (const ScriptValue* value : node->outputs()) op.touched.push_back(aliases_.ClassOf(value));
  return op;
}

absl::Status ScriptOps::CheckWrites() const {
  const auto inputs = script_.graph->inputs();
  for (const ScriptOp& op : ops_) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!Has(op.written, aliases_.ClassOf(inputs[i]))) continue;
      if (i < script_.own_inputs) {
        return absl::UnimplementedError(absl::StrCat(Describe(op.node), ": may write over input ",
                                                     i, " (", inputs[i]->debugName(),
                                                     ") of the module, which is the caller's"));
      }
      const ScriptAttribute& attribute = script_.attributes[i - script_.own_inputs];
      if (!attribute.is_parameter) continue;
      return absl::UnimplementedError(
          absl::StrCat(Describe(op.node), ": may write over parameter '", attribute.path, "'"));
    }
    for (const ScriptValue* value : ReadBy(op.node)) {
      if (!IsConstant(value->node()) || !IsTensor(value)) continue;
      if (!Has(op.written, aliases_.ClassOf(value))) continue;
      return absl::UnimplementedError(
          absl::StrCat(Describe(op.node), ": may write over a constant of the graph"));
    }
  }
  return absl::OkStatus();
}

bool ScriptOps::Makes(const ScriptOp& op, int memory) const {
  return std::any_of(op.node->outputs().begin(), op.node->outputs().end(),
                     [&](const ScriptValue* output) { return aliases_.ClassOf(output) == memory; });
}

size_t ScriptOps::FirstMaker(size_t writer) const {
  for (size_t i = 0; i < writer; ++i) {
    for (const int memory : ops_[writer].written) {
      if (Makes(ops_[i], memory)) return i;
    }
  }
  return writer;
}

// As a norm counts its batches before it runs: that belongs to the op after it.
bool ScriptOps::OnlyWritesAttributes(const ScriptOp& op) const {
  const auto is_attribute = [this](const ScriptValue* value) {
    return value->node()->kind() == c10::prim::Param && value->offset() >= script_.own_inputs;
  };
  return !op.has_effects && op.shapes.empty() && !op.node->hasUses() &&
         std::all_of(op.data.begin(), op.data.end(), is_attribute);
}

// Between the making of a tensor and a write over it no cut can be. What stands there by chance goes
// before it, if that changes nothing: as the shortcut of a residual block, which runs between the last
// norm and the addition in place.
void ScriptOps::Gather(size_t writer) {
  const size_t maker = FirstMaker(writer);
  if (maker == writer) return;
  size_t first = maker;
  while (first > 0 && OnlyWritesAttributes(ops_[first - 1])) --first;
  std::vector<ScriptOp> before;
  std::vector<ScriptOp> held;
  for (size_t i = first; i < writer; ++i) {
    ScriptOp& op = ops_[i];
    const bool moves = i > maker && !Overlap(op.touched, ops_[writer].written) &&
                       std::all_of(held.begin(), held.end(),
                                   [&op](const ScriptOp& other) { return MaySwap(other, op); });
    (moves ? before : held).push_back(std::move(op));
  }
  auto next = std::move(before.begin(), before.end(), ops_.begin() + static_cast<int64_t>(first));
  std::move(held.begin(), held.end(), next);
}

std::vector<bool> ScriptOps::MayCutAfter() const {
  std::vector<bool> may(ops_.size(), true);
  for (size_t writer = 0; writer < ops_.size(); ++writer) {
    if (ops_[writer].written.empty()) continue;
    for (size_t i = FirstMaker(writer); i < writer; ++i) may[i] = false;
  }
  return may;
}

absl::StatusOr<ScriptOps> ScriptOps::Create(const LoweredScript& script) {
  ScriptOps ops(script);
  absl::Status status = ops.CheckWrites();
  if (!status.ok()) return status;
  for (size_t i = 0; i < ops.ops_.size(); ++i) {
    if (!ops.ops_[i].written.empty()) ops.Gather(i);
  }
  return ops;
}

}  // namespace stowage

#include "client/torch/script/script_cut.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

void AddUnlessThere(ScriptValue* value, std::vector<ScriptValue*>* values) {
  if (std::find(values->begin(), values->end(), value) == values->end()) values->push_back(value);
}

class Cutter {
 public:
  Cutter(const LoweredScript& script, const ScriptOps& ops)
      : script_(script), ops_(ops.ops()), aliases_(ops.aliases()), may_cut_(ops.MayCutAfter()) {
    const auto inputs = script.graph->inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      (i < script.own_inputs ? own_inputs_ : attributes_).insert(inputs[i]);
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (const ScriptValue* value : ops_[i].node->outputs()) made_at_[value] = i;
      for (const ScriptValue* value : ops_[i].data) last_use_[value] = i;
      for (const ScriptValue* value : ops_[i].shapes) last_use_[value] = i;
    }
    for (const ScriptValue* value : script.returned) last_use_[value] = kNever;
  }

  absl::StatusOr<std::vector<ScriptSegment>> Run() {
    absl::Status status = CheckReturned();
    if (!status.ok()) return status;
    std::vector<size_t> ends;
    for (size_t start = 0; start < ops_.size(); start = ends.back() + 1) {
      std::optional<size_t> end = EndOf(start);
      // Ops that make nothing belong to what is before them.
      if (!end && Live(start, ops_.size() - 1).empty() && !ends.empty()) {
        ends.pop_back();
        start = ends.empty() ? 0 : ends.back() + 1;
        if (Live(start, ops_.size() - 1).size() == 1) end = ops_.size() - 1;
      }
      if (!end) return RefuseAt(start);
      ends.push_back(*end);
    }
    std::vector<ScriptSegment> segments;
    size_t start = 0;
    for (const size_t end : ends) {
      segments.push_back(Make(start, end));
      start = end + 1;
    }
    return segments;
  }

 private:
  absl::Status CheckReturned() const {
    for (const ScriptValue* value : script_.returned) {
      if (made_at_.count(value) > 0 || own_inputs_.count(value) > 0) continue;
      return absl::UnimplementedError(
          absl::StrCat("forward returns ", value->debugName(),
                       ", which is a parameter, a buffer, a constant or a number"));
    }
    return absl::OkStatus();
  }

  absl::Status RefuseAt(size_t start) const {
    const std::vector<const ScriptValue*> live = Live(start, ops_.size() - 1);
    const ScriptOp& op = ops_[start];
    if (live.empty()) {
      return absl::UnimplementedError(
          absl::StrCat(Describe(op.node), ": makes nothing that forward returns"));
    }
    return absl::UnimplementedError(
        absl::StrCat(Describe(op.node),
                     ": from here to the end of forward no cut leaves exactly one tensor; at "
                     "the end ",
                     live.size(), " are in use"));
  }

  // Values made in ops start..end that are used later.
  std::vector<const ScriptValue*> Live(size_t start, size_t end) const {
    std::vector<const ScriptValue*> live;
    for (size_t i = start; i <= end; ++i) {
      for (const ScriptValue* value : ops_[i].node->outputs()) {
        const auto last = last_use_.find(value);
        if (last != last_use_.end() && last->second > end) live.push_back(value);
      }
    }
    return live;
  }

  bool IsFromBefore(const ScriptValue* value, size_t start) const {
    const auto made = made_at_.find(value);
    return made == made_at_.end() ? own_inputs_.count(value) > 0 : made->second < start;
  }

  bool ReadsFromBefore(size_t op, size_t start) const {
    const auto before = [&](const ScriptValue* value) { return IsFromBefore(value, start); };
    return std::any_of(ops_[op].data.begin(), ops_[op].data.end(), before) ||
           std::any_of(ops_[op].shapes.begin(), ops_[op].shapes.end(), before);
  }

  // Nothing if there is no end by the rule.
  std::optional<size_t> EndOf(size_t start) const {
    std::optional<size_t> by_itself;
    bool reads = false;
    for (size_t end = start; end < ops_.size(); ++end) {
      reads |= ReadsFromBefore(end, start);
      if (!may_cut_[end]) continue;
      const std::vector<const ScriptValue*> live = Live(start, end);
      const bool ends = live.size() == 1 && IsTensor(live[0]);
      if (ends && reads) return end;
      if (reads && by_itself) return by_itself;
      if (ends && !by_itself) by_itself = end;
    }
    return by_itself;
  }

  void Sort(ScriptValue* value, size_t start, bool shape_only, ScriptSegment* segment) const {
    if (attributes_.count(value) > 0) {
      AddUnlessThere(value, &segment->attributes);
    } else if (IsFromBefore(value, start)) {
      AddUnlessThere(value, shape_only ? &segment->shapes : &segment->inputs);
    }
  }

  ScriptSegment Make(size_t start, size_t end) const {
    ScriptSegment segment;
    for (size_t i = start; i <= end; ++i) {
      const ScriptOp& op = ops_[i];
      segment.ops.push_back(op.node);
      segment.is_random |= op.is_random;
      for (ScriptValue* value : op.data) Sort(value, start, false, &segment);
      for (ScriptValue* value : op.shapes) Sort(value, start, true, &segment);
    }
    segment.output = const_cast<ScriptValue*>(Live(start, end)[0]);
    const auto is_read = [&segment](const ScriptValue* value) {
      return std::find(segment.inputs.begin(), segment.inputs.end(), value) != segment.inputs.end();
    };
    segment.shapes.erase(std::remove_if(segment.shapes.begin(), segment.shapes.end(), is_read),
                         segment.shapes.end());
    const auto may_share = [&](const ScriptValue* value) {
      return aliases_.ClassOf(value) == aliases_.ClassOf(segment.output);
    };
    std::stable_partition(segment.inputs.begin(), segment.inputs.end(), may_share);
    if (segment.inputs.empty() && segment.shapes.empty()) {
      segment.shapes.push_back(script_.graph->inputs()[0]);
    }
    return segment;
  }

  const LoweredScript& script_;
  const std::vector<ScriptOp>& ops_;
  const ScriptAliases& aliases_;
  const std::vector<bool> may_cut_;
  std::unordered_set<const ScriptValue*> own_inputs_;
  std::unordered_set<const ScriptValue*> attributes_;
  std::unordered_map<const ScriptValue*, size_t> made_at_;
  std::unordered_map<const ScriptValue*, size_t> last_use_;
};

}  // namespace

absl::StatusOr<std::vector<ScriptSegment>> CutScript(const LoweredScript& script,
                                                     const ScriptOps& ops) {
  return Cutter(script, ops).Run();
}

}  // namespace stowage

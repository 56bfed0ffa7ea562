#include "solvers/transfer/internal/compute_trace.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"

namespace stowage {

bool HasParts(const Chain& chain) {
  for (int l = 1; l <= chain.length() + 1; ++l) {
    if (chain.stage(l).parts() > 0) return true;
  }
  return false;
}

std::vector<PartGroup> PartGroupsOf(const Stage& stage) {
  std::vector<PartGroup> groups;
  const int last = stage.parts();
  if (last == 0) return groups;
  const Bytes enough = std::max(Bytes(stage.saved.value() / 8), Bytes(1));
  const Bytes least = Bytes(enough.value() / 100);
  PartGroup next;
  for (int part = 1; part < last; ++part) {
    const Bytes bytes = stage.part(part);
    if (bytes <= least) continue;
    next.parts.push_back(part);
    next.bytes += bytes;
    if (next.bytes < enough) continue;
    groups.push_back(std::move(next));
    next = PartGroup();
  }
  if (!next.parts.empty() && !groups.empty()) {
    PartGroup& before = groups.back();
    before.parts.insert(before.parts.end(), next.parts.begin(), next.parts.end());
    before.bytes += next.bytes;
  } else if (!next.parts.empty()) {
    groups.push_back(std::move(next));
  }
  groups.push_back({{last}, stage.part(last)});
  return groups;
}

namespace {

// Follows the tensors of a schedule from step to step, for the trace of it.
class TensorLives {
 public:
  // Of a schedule that the evaluator has accepted, with its timeline; tensors are of stages 0..last.
  TensorLives(const Schedule& compute, const std::vector<TimelinePoint>& timeline, int last)
      : lives_(2 * (static_cast<size_t>(last) + 1)) {
    trace_.steps.reserve(timeline.size());
    for (const TimelinePoint& point : timeline) {
      trace_.steps.push_back({point.end - point.start, std::max(point.running, point.held)});
    }
    const auto first = std::find_if(compute.begin(), compute.end(),
                                    [](const Instruction& i) { return i.op == Op::kBackward; });
    trace_.first_backward = static_cast<int>(first - compute.begin());
  }

  bool Held(TensorKind kind, int stage) const { return lives_[Index(kind, stage)].held; }
  // A step of -1: held from the start.
  void Make(TensorKind kind, int stage, Bytes bytes, int step) {
    lives_[Index(kind, stage)] = {true, false, {kind, stage, bytes, step, step, 0, 0}, nullptr};
  }

  // What a stage saves, in groups (not empty), which outlive this; what Read says is of the last one
  // alone.
  void MakeInGroups(int stage, const std::vector<PartGroup>& groups, int step) {
    Make(TensorKind::kSaved, stage, groups.back().bytes, step);
    Life& life = lives_[Index(TensorKind::kSaved, stage)];
    life.tensor.parts = groups.back().parts;
    life.groups = &groups;
  }

  void Read(TensorKind kind, int stage, int step) {
    Life& life = lives_[Index(kind, stage)];
    if (step < trace_.first_backward) {
      life.tensor.last_read = step;
    } else if (life.tensor.made < trace_.first_backward && !life.crosses) {
      life.crosses = true;
      life.tensor.next_read = step;
    }
  }

  // Over what is held: it may not leave before.
  void Write(TensorKind kind, int stage, int step) {
    Read(kind, stage, step);
    if (step < trace_.first_backward) lives_[Index(kind, stage)].tensor.made = step;
  }

  void Drop(TensorKind kind, int stage, int step) {
    Life& life = lives_[Index(kind, stage)];
    Read(kind, stage, step);
    life.held = false;
    if (!life.crosses) return;
    if (life.groups != nullptr) DropGroups(life, step);
    life.tensor.dropped = step;
    trace_.tensors.push_back(life.tensor);
  }

  ComputeTrace Finish() {
    const int end = static_cast<int>(trace_.steps.size());
    std::vector<ComputeTrace::Tensor>& tensors = trace_.tensors;
    for (Life& life : lives_) {
      if (!life.held || !life.crosses) continue;
      life.tensor.dropped = end;
      tensors.push_back(life.tensor);
    }
    const auto useless = [](const ComputeTrace::Tensor& t) {
      return t.bytes == Bytes(0) || t.next_read <= t.last_read + 1;
    };
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(), useless), tensors.end());
    std::sort(tensors.begin(), tensors.end(),
              [](const ComputeTrace::Tensor& a, const ComputeTrace::Tensor& b) {
                return std::tie(a.last_read, b.next_read, a.stage, a.kind, a.parts) <
                       std::tie(b.last_read, a.next_read, b.stage, b.kind, b.parts);
              });
    return std::move(trace_);
  }

 private:
  struct Life {
    bool held = false;
    bool crosses = false;                            // made before the boundary and read after it
    ComputeTrace::Tensor tensor;                     // or of its last group
    const std::vector<PartGroup>* groups = nullptr;  // null: it has none
  };

  // All but the last, which nothing reads between where they are made and where they are dropped.
  void DropGroups(const Life& life, int step) {
    for (size_t g = 0; g + 1 < life.groups->size(); ++g) {
      const PartGroup& group = (*life.groups)[g];
      ComputeTrace::Tensor tensor = life.tensor;
      tensor.bytes = group.bytes;
      tensor.parts = group.parts;
      tensor.last_read = tensor.made;
      tensor.next_read = tensor.dropped = step;
      trace_.tensors.push_back(std::move(tensor));
    }
  }

  static size_t Index(TensorKind kind, int stage) {
    return 2 * static_cast<size_t>(stage) + static_cast<size_t>(kind);
  }

  ComputeTrace trace_;
  std::vector<Life> lives_;
};

class ChainWalk {
 public:
  ChainWalk(const Chain& chain, Granularity granularity, TensorLives* lives)
      : chain_(chain), lives_(*lives), groups_(static_cast<size_t>(chain.length()) + 2) {
    Make(TensorKind::kActivation, 0, -1);
    if (granularity == Granularity::kWhole) return;
    for (int l = 1; l <= chain.length() + 1; ++l) GroupsAt(l) = PartGroupsOf(chain.stage(l));
  }

  void Step(int step, const Instruction& i) {
    const int l = i.stage;
    switch (i.op) {
      case Op::kForwardSave:
        ReadInput(l, step);
        Make(TensorKind::kSaved, l, step);
        break;
      case Op::kForwardNoSave:
      case Op::kForwardNoSaveFreeInput:
        ReadInput(l, step);
        Make(TensorKind::kActivation, l, step);
        if (i.op == Op::kForwardNoSaveFreeInput) lives_.Drop(TensorKind::kActivation, l - 1, step);
        break;
      case Op::kBackward:
        ReadInput(l, step);
        lives_.Drop(TensorKind::kSaved, l, step);
        if (lives_.Held(TensorKind::kActivation, l - 1)) {
          lives_.Drop(TensorKind::kActivation, l - 1, step);
        }
        break;
      case Op::kDropSavedKeepOutput:
        lives_.Drop(TensorKind::kSaved, l, step);
        Make(TensorKind::kActivation, l, step);
        break;
      default:
        lives_.Drop(i.tensor, l, step);
    }
  }

 private:
  void Make(TensorKind kind, int l, int step) {
    if (kind == TensorKind::kSaved && !GroupsAt(l).empty()) {
      return lives_.MakeInGroups(l, GroupsAt(l), step);
    }
    const Bytes bytes = kind == TensorKind::kSaved ? chain_.stage(l).saved : chain_.activation(l);
    lives_.Make(kind, l, bytes, step);
  }

  void ReadInput(int l, int step) {
    const bool plain = lives_.Held(TensorKind::kActivation, l - 1);
    lives_.Read(plain ? TensorKind::kActivation : TensorKind::kSaved, l - 1, step);
  }

  std::vector<PartGroup>& GroupsAt(int l) { return groups_[static_cast<size_t>(l)]; }

  const Chain& chain_;
  TensorLives& lives_;
  std::vector<std::vector<PartGroup>> groups_;  // by stage; empty: it moves as a whole
};

constexpr TensorKind kTensor = TensorKind::kActivation;
constexpr TensorKind kExtras = TensorKind::kSaved;

class GraphWalk {
 public:
  GraphWalk(const Graph& graph, TensorLives* lives) : graph_(graph), lives_(*lives) {}

  void Step(int step, const Instruction& i) {
    const int p = i.stage - 1;
    if (i.op == Op::kDiscard) {
      lives_.Drop(i.tensor, i.stage, step);
    } else if (i.op == Op::kBackward) {
      Backward(p, step);
    } else {
      Forward(i.op, p, step);
    }
  }

 private:
  // By the owner of the storage; views are in it.
  void Read(int position, int step) { lives_.Read(kTensor, graph_.storage(position) + 1, step); }

  void Forward(Op op, int p, int step) {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) Read(static_cast<int>(input.vertex), step);
    if (op == Op::kForwardSave && v.extra_saved > Bytes(0)) {
      lives_.Make(kExtras, p + 1, v.extra_saved, step);
    }
    if (v.alias == AliasKind::kInPlace) {
      lives_.Write(kTensor, graph_.storage(p) + 1, step);
    } else if (v.alias == AliasKind::kNone && lives_.Held(kTensor, p + 1)) {
      Read(p, step);  // renews the extras beside its output, which has to be there for it
    } else if (v.alias == AliasKind::kNone) {
      lives_.Make(kTensor, p + 1, graph_.bytes(p), step);
    }
  }

  void Backward(int p, int step) {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) {
      if (input.backward_needs) Read(static_cast<int>(input.vertex), step);
    }
    if (v.backward_needs_output) Read(p, step);
    if (lives_.Held(kExtras, p + 1)) lives_.Drop(kExtras, p + 1, step);
  }

  const Graph& graph_;
  TensorLives& lives_;
};

}  // namespace

absl::StatusOr<ComputeTrace> TraceOf(const Instance& instance, const Schedule& compute,
                                     Granularity granularity) {
  absl::Status status = CheckNoCommunication(compute);
  if (!status.ok()) return status;
  std::vector<TimelinePoint> timeline;
  // A trace is of what is computed: a schedule with copies is refused, as it is without a link.
  const Evaluator evaluator(instance.WithLink(std::nullopt));
  const absl::StatusOr<Simulation> simulation = evaluator.Run(compute, &timeline);
  if (!simulation.ok()) return simulation.status();
  TensorLives lives(compute, timeline,
                    instance.is_graph() ? instance.graph().size() : instance.chain().length() + 1);
  const auto follow = [&](auto walk) {
    for (size_t step = 0; step < compute.size(); ++step) {
      walk.Step(static_cast<int>(step), compute[step]);
    }
    return lives.Finish();
  };
  if (instance.is_graph()) return follow(GraphWalk(instance.graph(), &lives));
  return follow(ChainWalk(instance.chain(), granularity, &lives));
}

}  // namespace stowage

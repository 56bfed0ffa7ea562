#include "solvers/transfer/internal/trace_problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

// One half of a replay: ops 0..n-1 in order, each starting as soon as the one before it has ended
// and the offloads so far have left memory for it.
enum class Half {
  kForward,
  kBackward,  // in reversed time: prefetches are offloads then
};

struct HalfCopy {
  Nanos start;
  Nanos end;
  Nanos release;  // of its memory
};

struct HalfTimeline {
  std::vector<Nanos> start;      // by op
  std::vector<HalfCopy> copies;  // by place in the set
  Nanos end;                     // of the last op
};

class Loop {
 public:
  Loop(const OffloadProblem& problem, const OffloadSet& set, Half half)
      : problem_(problem), set_(set), half_(half), held_(problem.activation(0)) {}

  std::optional<HalfTimeline> Run() {
    timeline_.start.reserve(static_cast<size_t>(problem_.size()));
    timeline_.copies.reserve(set_.size());
    for (int i = 0; i < problem_.size(); ++i) {
      if (!Start(i)) return std::nullopt;
    }
    timeline_.end = time_;
    return std::move(timeline_);
  }

 private:
  bool Start(int i) {
    const OffloadOp& op = problem_.op(i);
    const bool forward = half_ == Half::kForward;
    const Bytes need = problem_.activation(i + 1) + (forward ? op.forward_need : op.backward_need);
    const Nanos ready = time_;  // of the forward's input, which is made by the op before it
    while (held_ + need > problem_.memory()) {
      if (released_ == timeline_.copies.size()) return false;
      time_ = std::max(time_, timeline_.copies[released_].release);
      held_ -= problem_.activation(set_[released_]);
      ++released_;
    }
    timeline_.start.push_back(time_);
    time_ += forward ? op.forward_time : op.backward_time;
    held_ += problem_.activation(i + 1);
    if (timeline_.copies.size() < set_.size() && set_[timeline_.copies.size()] == i) {
      Copy(i, forward ? ready : time_);
    }
    return true;
  }

  // The copy of activation i, whose op ends now; the link takes it from `ready` on.
  void Copy(int i, Nanos ready) {
    HalfCopy copy;
    copy.start = std::max(link_free_, ready);
    copy.end =
        copy.start + (half_ == Half::kForward ? problem_.OffloadTime(i) : problem_.PrefetchTime(i));
    copy.release = std::max(copy.end, time_);
    link_free_ = copy.end;
    timeline_.copies.push_back(copy);
  }

  const OffloadProblem& problem_;
  const OffloadSet& set_;
  const Half half_;
  HalfTimeline timeline_;
  Bytes held_;  // as far as releases have been needed
  size_t released_ = 0;
  Nanos time_;
  Nanos link_free_;
};

// Nothing if some op never fits. The host's memory is not looked at. O(n).
std::optional<HalfTimeline> ReplayHalf(const OffloadProblem& problem, const OffloadSet& set,
                                       Half half) {
  return Loop(problem, set, half).Run();
}

// Finds the least idle time between the halves. Times of the forward half count from its start,
// leads of the backward half from its start backwards: a prefetch with lead d starts d before the
// first backward.
class Stitch {
 public:
  Stitch(const OffloadProblem& problem, const OffloadSet& set, const HalfTimeline& forward,
         const HalfTimeline& backward)
      : problem_(problem), set_(set), forward_(forward), backward_(backward) {}

  Nanos LeastIdle() {
    if (set_.empty()) return Nanos(0);
    first_lead_ = Lead(set_.size() - 1);
    Require(forward_.copies.back().end, first_lead_);
    ForwardsBesidePrefetches();
    BackwardsBesideOffloads();
    return idle_;
  }

 private:
  Nanos Lead(size_t place) const { return backward_.copies[place].end - backward_.end; }

  // What happens `lead` before the first backward must not happen before `time`.
  void Require(Nanos time, Nanos lead) { idle_ = std::max(idle_, time + lead - forward_.end); }

  // Prefetches start after the last offload: a forward that they run beside holds, of the set, its
  // own input alone.
  void ForwardsBesidePrefetches() {
    Bytes on_host;
    size_t next = 0;
    for (int i = 0; i < problem_.size(); ++i) {
      for (; next < set_.size() && set_[next] < i; ++next)
        on_host += problem_.activation(set_[next]);
      const OffloadOp& op = problem_.op(i);
      const Bytes free_bytes =
          problem_.memory() - (problem_.prefix(i + 2) - on_host + op.forward_need);
      // The prefetches after those that find memory wait for the end of this forward.
      Bytes prefetched;
      for (size_t place = set_.size(); place-- > 0;) {
        prefetched += problem_.activation(set_[place]);
        if (prefetched > free_bytes) {
          Require(forward_.start[static_cast<size_t>(i)] + op.forward_time, Lead(place));
          break;
        }
        if (forward_.start[static_cast<size_t>(i)] + op.forward_time + Lead(place) <=
            forward_.end + idle_) {
          break;  // it and those after it start after this forward anyway
        }
      }
    }
  }

  // Before the first prefetch a backward needs so many of the offloads to have ended.
  void BackwardsBesideOffloads() {
    for (int i = problem_.size() - 1; i >= 0; --i) {
      const OffloadOp& op = problem_.op(i);
      // The lead of its start: reversed time ends it where the backward half starts it.
      const Nanos lead = backward_.start[static_cast<size_t>(i)] + op.backward_time - backward_.end;
      if (lead <= first_lead_) return;
      Bytes over = problem_.prefix(i + 2) + op.backward_need - problem_.memory();
      for (size_t place = 0; over > Bytes(0) && place < set_.size(); ++place) {
        over -= problem_.activation(set_[place]);
        if (over <= Bytes(0)) Require(forward_.copies[place].release, lead);
      }
    }
  }

  const OffloadProblem& problem_;
  const OffloadSet& set_;
  const HalfTimeline& forward_;
  const HalfTimeline& backward_;
  Nanos first_lead_;
  Nanos idle_;
};

OffloadTimeline Join(const OffloadSet& set, const HalfTimeline& forward,
                     const HalfTimeline& backward, Nanos idle, const OffloadProblem& problem) {
  OffloadTimeline timeline;
  timeline.makespan = forward.end + idle + backward.end;
  timeline.forward_start = forward.start;
  timeline.backward_start.reserve(forward.start.size());
  timeline.offloads.reserve(set.size());
  timeline.prefetches.reserve(set.size());
  for (int i = 0; i < problem.size(); ++i) {
    timeline.backward_start.push_back(timeline.makespan - backward.start[static_cast<size_t>(i)] -
                                      problem.op(i).backward_time);
  }
  for (size_t place = 0; place < set.size(); ++place) {
    timeline.offloads.push_back(
        {set[place], forward.copies[place].start, forward.copies[place].end});
  }
  for (size_t place = set.size(); place-- > 0;) {
    timeline.prefetches.push_back({set[place], timeline.makespan - backward.copies[place].end,
                                   timeline.makespan - backward.copies[place].start});
  }
  timeline.peak = PeakOf(problem, timeline);
  timeline.host_peak = problem.BytesOf(set);
  return timeline;
}

}  // namespace

std::optional<OffloadTimeline> ReplaySet(const OffloadProblem& problem, const OffloadSet& set) {
  if (problem.BytesOf(set) > problem.link().host_memory) return std::nullopt;
  std::optional<HalfTimeline> forward = ReplayHalf(problem, set, Half::kForward);
  if (!forward) return std::nullopt;
  std::optional<HalfTimeline> backward = ReplayHalf(problem, set, Half::kBackward);
  if (!backward) return std::nullopt;
  const Nanos idle = Stitch(problem, set, *forward, *backward).LeastIdle();
  return Join(set, *forward, *backward, idle, problem);
}

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

namespace {

// A place in one half, in the order of the ops: forwards as they run, backwards in reversed time.
struct Token {
  int step = -1;    // -1: takes nothing
  int tensor = -1;  // that may be on the host from here on
};

class Builder {
 public:
  explicit Builder(const ComputeTrace& trace) : trace_(trace) {
    deadlines_.reserve(trace.tensors.size());
    for (const ComputeTrace::Tensor& tensor : trace.tensors) {
      const int before = deadlines_.empty() ? tensor.next_read : deadlines_.back();
      deadlines_.push_back(std::min(before, tensor.next_read));
    }
  }

  void Run() {
    const std::vector<Token> forward = Forwards();
    const std::vector<Token> backward = Backwards();
    size_t f = 0, b = 0;
    for (size_t t = 0; t <= trace_.tensors.size(); ++t) {
      const size_t f_end = MarkAt(forward, f, t), b_end = MarkAt(backward, b, t);
      size_t places = std::max(f_end - f, b_end - b);
      // A backward that is the first to read a tensor again and drops it has nothing of it after it.
      const bool gone = t < trace_.tensors.size() && trace_.tensors[t].dropped == deadlines_[t];
      if (gone && b_end - b == places) ++places;
      // What fills up the halves comes before the forward steps of a stretch, so that its tensor has
      // been made, and after its backward ones.
      forward_.insert(forward_.end(), places - (f_end - f), Token());
      forward_.insert(forward_.end(), forward.begin() + Offset(f), forward.begin() + Offset(f_end));
      backward_.insert(backward_.end(), backward.begin() + Offset(b),
                       backward.begin() + Offset(b_end));
      backward_.insert(backward_.end(), places - (b_end - b), Token());
      if (t == trace_.tensors.size()) break;
      forward_.push_back(forward[f_end]);
      backward_.push_back(backward[b_end]);
      f = f_end + 1;
      b = b_end + 1;
    }
  }

  absl::StatusOr<TraceProblem> Finish(const TransferModel& link, Bytes memory) const {
    OffloadSpec spec;
    spec.link = link;
    spec.memory = memory;
    std::vector<int> tensor, forward_step, backward_step;
    for (const Token& token : forward_) {
      tensor.push_back(token.tensor);
      forward_step.push_back(token.step);
      spec.activations.push_back(token.tensor < 0 ? Bytes(0) : TensorAt(token.tensor).bytes);
    }
    for (const Token& token : backward_) backward_step.push_back(token.step);
    tensor.push_back(-1);
    spec.activations.push_back(Bytes(0));
    Bytes counted = spec.activations[0];  // activations up to the one that the op makes
    for (size_t i = 0; i < forward_.size(); ++i) {
      counted += spec.activations[i + 1];
      OffloadOp op;
      Fill(forward_[i].step, counted, &op.forward_time, &op.forward_need);
      Fill(backward_[i].step, counted, &op.backward_time, &op.backward_need);
      spec.ops.push_back(op);
    }
    absl::StatusOr<OffloadProblem> problem = OffloadProblem::Create(std::move(spec));
    if (!problem.ok()) return problem.status();
    return TraceProblem{*std::move(problem), std::move(tensor), std::move(forward_step),
                        std::move(backward_step)};
  }

 private:
  static std::ptrdiff_t Offset(size_t i) { return static_cast<std::ptrdiff_t>(i); }

  const ComputeTrace::Tensor& TensorAt(int t) const {
    return trace_.tensors[static_cast<size_t>(t)];
  }
  const ComputeTrace::Step& StepAt(int s) const { return trace_.steps[static_cast<size_t>(s)]; }

  void Fill(int step, Bytes counted, Nanos* time, Bytes* need) const {
    if (step < 0) return;
    *time = StepAt(step).time;
    *need = std::max(StepAt(step).need - counted, Bytes(0));
  }

  static size_t MarkAt(const std::vector<Token>& tokens, size_t from, size_t tensor) {
    while (from < tokens.size() && tokens[from].tensor != static_cast<int>(tensor)) ++from;
    return from;
  }

  // Whether a step says nothing that the one before it in the half does not say.
  bool Redundant(const std::vector<Token>& tokens, int step) const {
    if (StepAt(step).time > Nanos(0)) return false;
    const auto before = std::find_if(tokens.rbegin(), tokens.rend(),
                                     [](const Token& token) { return token.step >= 0; });
    return before != tokens.rend() && StepAt(before->step).need >= StepAt(step).need;
  }

  std::vector<Token> Forwards() const {
    std::vector<Token> tokens;
    const int count = static_cast<int>(trace_.tensors.size());
    int t = 0;
    for (; t < count && TensorAt(t).last_read < 0; ++t) tokens.push_back({-1, t});
    for (int step = 0; step < trace_.first_backward; ++step) {
      const bool reads = t < count && TensorAt(t).last_read == step && TensorAt(t).made < step;
      if (reads) {
        tokens.push_back({step, t++});
      } else if (!Redundant(tokens, step)) {
        tokens.push_back({step, -1});
      }
      for (; t < count && TensorAt(t).last_read == step; ++t) tokens.push_back({-1, t});
    }
    return tokens;
  }

  std::vector<Token> Backwards() const {
    std::vector<Token> tokens;
    const int count = static_cast<int>(trace_.tensors.size());
    int t = 0;
    for (int step = static_cast<int>(trace_.steps.size()) - 1; step >= trace_.first_backward;
         --step) {
      const auto due = [&] { return t < count && deadlines_[static_cast<size_t>(t)] == step; };
      if (due()) {
        tokens.push_back({step, t++});
      } else if (!Redundant(tokens, step)) {
        tokens.push_back({step, -1});
      }
      while (due()) tokens.push_back({-1, t++});
    }
    return tokens;
  }

  const ComputeTrace& trace_;
  std::vector<int> deadlines_;  // by tensor: the step that it has to be back for
  std::vector<Token> forward_;
  std::vector<Token> backward_;
};

}  // namespace

absl::StatusOr<TraceProblem> MakeTraceProblem(const ComputeTrace& trace, const TransferModel& link,
                                              Bytes memory) {
  Builder builder(trace);
  builder.Run();
  return builder.Finish(link, memory);
}

namespace {

// Where several go before one step, they go in this order.
enum class InsertionRank { kOffloadStart, kOffloadWait, kPrefetchStart, kPrefetchWait };

struct Insertion {
  int step;  // before it
  InsertionRank rank;
  Instruction instruction;
};

// Steps that the problem has, in the order in which they run.
struct TimedStep {
  int step;
  Nanos start;
  Nanos end;
};

class Placement {
 public:
  Placement(const ComputeTrace& trace, const TraceProblem& problem, const OffloadTimeline& timeline)
      : trace_(trace), problem_(problem), timeline_(timeline) {
    const size_t ops = problem.forward_step.size();
    for (size_t i = 0; i < ops; ++i) Time(problem.forward_step[i], timeline.forward_start[i]);
    for (size_t i = ops; i-- > 0;) Time(problem.backward_step[i], timeline.backward_start[i]);
  }

  std::vector<Insertion> Run() {
    for (const TimedCopy& copy : timeline_.offloads) Offload(copy);
    for (const TimedCopy& copy : timeline_.prefetches) Prefetch(copy);
    std::stable_sort(insertions_.begin(), insertions_.end(),
                     [](const Insertion& a, const Insertion& b) {
                       return std::tie(a.step, a.rank) < std::tie(b.step, b.rank);
                     });
    return std::move(insertions_);
  }

 private:
  void Time(int step, Nanos start) {
    if (step < 0) return;
    steps_.push_back({step, start, start + trace_.steps[static_cast<size_t>(step)].time});
  }

  // Null for what only fills up.
  const ComputeTrace::Tensor* TensorOf(const TimedCopy& copy) const {
    const int tensor = problem_.tensor[static_cast<size_t>(copy.activation)];
    return tensor < 0 ? nullptr : &trace_.tensors[static_cast<size_t>(tensor)];
  }

  void Offload(const TimedCopy& copy) {
    const ComputeTrace::Tensor* tensor = TensorOf(copy);
    if (tensor == nullptr) return;
    // Copies keep their order.
    start_ = std::max(start_, tensor->made + 1);
    Insert(start_, InsertionRank::kOffloadStart, OffloadStart(tensor->kind, tensor->stage),
           *tensor);
    while (leaving_ < steps_.size() &&
           (steps_[leaving_].step <= tensor->last_read || steps_[leaving_].start < copy.end)) {
      ++leaving_;
    }
    freed_ = leaving_ < steps_.size() ? FreeBefore(leaving_) : tensor->next_read;
    Insert(freed_, InsertionRank::kOffloadWait, OffloadWait(tensor->kind, tensor->stage), *tensor);
  }

  // Steps that the problem leaves out take no more than the one before, but from the boundary on than
  // the one after: there memory is freed before them.
  int FreeBefore(size_t i) const {
    if (steps_[i].step < trace_.first_backward || i == 0) return steps_[i].step;
    return std::max(trace_.first_backward, steps_[i - 1].step + 1);
  }

  void Prefetch(const TimedCopy& copy) {
    const ComputeTrace::Tensor* tensor = TensorOf(copy);
    if (tensor == nullptr) return;
    while (coming_ < steps_.size() &&
           (steps_[coming_].end <= copy.start || steps_[coming_].step < freed_)) {
      ++coming_;
    }
    const int before = coming_ < steps_.size() ? std::min(steps_[coming_].step, tensor->next_read)
                                               : tensor->next_read;
    Insert(before, InsertionRank::kPrefetchStart, PrefetchStart(tensor->kind, tensor->stage),
           *tensor);
    Insert(tensor->next_read, InsertionRank::kPrefetchWait,
           PrefetchWait(tensor->kind, tensor->stage), *tensor);
  }

  // The instruction for all of the tensor, part by part where it is made of parts.
  void Insert(int step, InsertionRank rank, Instruction instruction,
              const ComputeTrace::Tensor& tensor) {
    if (tensor.parts.empty()) insertions_.push_back({step, rank, instruction});
    for (const int part : tensor.parts) {
      instruction.part = static_cast<uint16_t>(part);
      insertions_.push_back({step, rank, instruction});
    }
  }

  const ComputeTrace& trace_;
  const TraceProblem& problem_;
  const OffloadTimeline& timeline_;
  std::vector<TimedStep> steps_;
  std::vector<Insertion> insertions_;
  int start_ = 0;       // the last offload starts before it
  int freed_ = 0;       // the last wait for an offload is before it
  size_t leaving_ = 0;  // in steps_
  size_t coming_ = 0;
};

}  // namespace

Schedule WithTransfers(const Schedule& compute, const ComputeTrace& trace,
                       const TraceProblem& problem, const OffloadTimeline& timeline) {
  const std::vector<Insertion> insertions = Placement(trace, problem, timeline).Run();
  Schedule schedule;
  schedule.reserve(compute.size() + insertions.size());
  size_t next = 0;
  for (size_t step = 0; step < compute.size(); ++step) {
    for (; next < insertions.size() && insertions[next].step == static_cast<int>(step); ++next) {
      schedule.push_back(insertions[next].instruction);
    }
    schedule.push_back(compute[step]);
  }
  return schedule;
}

}  // namespace stowage

#include "solvers/transfer/internal/trace_problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace stowage {
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

#include "solvers/offload/with_transfers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace stowage {
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

  // Steps that the problem leaves out take no more than the one before, but from the turn on than
  // the one after: there memory is freed before them.
  int FreeBefore(size_t i) const {
    if (steps_[i].step < trace_.turn || i == 0) return steps_[i].step;
    return std::max(trace_.turn, steps_[i - 1].step + 1);
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

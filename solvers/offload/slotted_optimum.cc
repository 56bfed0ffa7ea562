#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/offload/greedy.h"
#include "solvers/offload/relaxed_limits.h"
#include "solvers/offload/relaxed_optimum.h"
#include "solvers/offload/relaxed_recurrence.h"

namespace stowage {
namespace {

using absl::int128;

int64_t FloorOf(int128 value, int128 divisor) {
  const int128 quotient = value / divisor;
  return static_cast<int64_t>(value % divisor < 0 ? quotient - 1 : quotient);
}

int64_t CeilOf(int128 value, int128 divisor) { return -FloorOf(-value, divisor); }

// The instance in slots, as it is rounded now.
class Slots {
 public:
  Slots(const OffloadProblem& problem, int64_t slots)
      : problem_(problem), slots_(slots), memory_(problem.memory().value()) {
    RoundActivations();
    SetTimeUnits();
    instance_.memory = slots;
    instance_.host_memory = FloorOf(int128(problem.link().host_memory.value()) * slots, memory_);
    int128 out = 0, in = 0;  // what the link moves during the ops so far: bytes times 10^9
    int64_t out_slots = 0, in_slots = 0;
    for (int i = 0; i < problem.size(); ++i) {
      const OffloadOp& op = problem.op(i);
      out += int128(op.forward_time.value()) * problem.link().to_host.bytes_per_second;
      in += int128(op.backward_time.value()) * problem.link().to_device.bytes_per_second;
      instance_.ops.push_back({Moved(out, &out_slots) * instance_.offload_time,
                               Moved(in, &in_slots) * instance_.prefetch_time,
                               CeilOf(Scaled(op.forward_need), memory_),
                               CeilOf(Scaled(op.backward_need), memory_)});
    }
  }

  const RelaxedInstance<int64_t>& instance() const { return instance_; }

  // Rounds up the `count` activations that lack most, the first of equals; whether one lacked any.
  bool Raise(size_t count) {
    std::vector<std::pair<int128, size_t>> lacks;  // negative, hence what lacks most is least
    for (int i = 0; i <= problem_.size(); ++i) {
      const size_t at = static_cast<size_t>(i);
      const int128 spare =
          int128(instance_.activations[at]) * memory_ - Scaled(problem_.activation(i));
      if (spare < 0) lacks.emplace_back(spare, at);
    }
    count = std::min(count, lacks.size());
    std::partial_sort(lacks.begin(), lacks.begin() + static_cast<std::ptrdiff_t>(count),
                      lacks.end());
    for (size_t k = 0; k < count; ++k) ++instance_.activations[lacks[k].second];
    return count > 0;
  }

  // Idle time of the instance in nanoseconds, rounded up.
  Nanos TimeOf(int64_t idle) const {
    const int128 bytes = int128(idle) * memory_ / (int128(slots_) * instance_.offload_time);
    const int128 rate = problem_.link().to_host.bytes_per_second;
    return Nanos(static_cast<int64_t>(
        std::min<int128>(CeilOf(bytes * kNanosPerSecond, rate), kMaxTimeTotal)));
  }

 private:
  int128 Scaled(Bytes bytes) const { return int128(bytes.value()) * slots_; }

  void RoundActivations() {
    int64_t before = 0;
    for (int i = 0; i <= problem_.size(); ++i) {
      const int64_t after = CeilOf(Scaled(problem_.prefix(i + 1)), memory_);
      instance_.activations.push_back(after - before);
      before = after;
    }
    all_ = before + problem_.size() + 1;  // every one may be raised
  }

  // Slots that the link moves during one op: the partial sum rounded down, less those before. More
  // than there is to move makes no difference.
  int64_t Moved(int128 bytes, int64_t* before) const {
    // Sums of nearly 126 bits leave no room for the slots; those of that size need no rounding.
    constexpr int kRoom = 20;
    const bool large = (bytes >> (126 - kRoom)) != 0;
    const int128 after = large ? bytes / kNanosPerSecond * slots_ / memory_
                               : bytes * slots_ / (int128(memory_) * kNanosPerSecond);
    const int64_t capped =
        static_cast<int64_t>(std::min<int128>(after, std::numeric_limits<int64_t>::max() / 2));
    const int64_t moved = std::min(capped - *before, all_);
    *before = capped;
    return moved;
  }

  // A slot takes time in inverse proportion to the bandwidths, which are cut to what sums allow.
  void SetTimeUnits() {
    int64_t out = problem_.link().to_device.bytes_per_second;
    int64_t in = problem_.link().to_host.bytes_per_second;
    if (out == in) out = in = 1;
    const int64_t largest_sum = 8 * all_ * (2 * int64_t{problem_.size()} + 4);
    const int64_t room = std::max<int64_t>(kMaxTotal / largest_sum, 1);
    while (std::max(out, in) > std::min<int64_t>(room, 1 << 20)) {
      out >>= 1;
      in >>= 1;
    }
    instance_.offload_time = std::max<int64_t>(out, 1);
    instance_.prefetch_time = std::max<int64_t>(in, 1);
  }

  const OffloadProblem& problem_;
  const int64_t slots_;
  const int64_t memory_;
  int64_t all_ = 0;
  RelaxedInstance<int64_t> instance_;
};

}  // namespace

absl::StatusOr<RelaxedOptimum> SlottedRelaxedOptimum(const OffloadProblem& problem, int64_t slots,
                                                     const SolveOptions& options) {
  using Recurrence = RelaxedRecurrence<int64_t>;
  RelaxedLimits limits =
      RelaxedLimitsOf(problem, options, sizeof(Recurrence::State), /*beam=*/true);
  RelaxedOptimum optimum;
  optimum.slots = slots;
  if (problem.memory() < problem.least_memory() || problem.memory() == Bytes(0)) return optimum;
  Slots rounded(problem, slots);
  size_t raised = 1;
  do {
    ++optimum.passes;
    const Recurrence recurrence(rounded.instance());
    absl::StatusOr<RelaxedSolution<int64_t>> solution =
        recurrence.Solve({EagerSet(problem)}, limits, options);
    if (!solution.ok()) return solution.status();
    optimum.comparisons += solution->comparisons;
    for (OffloadSet& set : solution->sets) {
      if (problem.Admits(set)) optimum.sets.push_back(std::move(set));
    }
    if (!optimum.sets.empty()) {
      optimum.makespan = problem.ideal_time() + rounded.TimeOf(*solution->idle);
      return optimum;
    }
    // Sixteen passes with a quarter of the states cost as much as the first.
    if (optimum.passes == 1) limits.states = std::max<size_t>(limits.states / 4, 1);
    if (optimum.passes > MostSingleRaises(problem.size())) raised *= 2;
  } while (rounded.Raise(raised));
  return optimum;
}

}  // namespace stowage

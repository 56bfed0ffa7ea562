// What the solvers of memory-persistent schedules share: sizes, needs and prefix sums of the
// recurrence of Beaumont et al. 2019, Theorem 1, in bytes or in slots, and the least memory of
// every interval.
//
// An interval (s, t) is the subproblem that starts with a^{s-1} held (outside its memory) and
// delta^t held (inside) and ends with delta^{s-1}. Stages run from 1 to L+1.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_SPACE_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_SPACE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// More than any time above the ideal of a validated problem; two of them and a total still fit 64
// bits.
inline constexpr int64_t kInfinity = int64_t{1} << 61;

// The most stages that any recurrence over intervals takes: its tables and schedules grow with the
// square of them even where all are equal.
inline constexpr int kMaxIntervalStages = 4096;

// Up: what fits in units fits in bytes. Nearest: it may not, but errors of many sizes cancel, so
// that schedules made with it are better ones, once replayed in bytes. Cumulative: what is saved of stages 1..l together
// is rounded to nearest, so that of any run of stages it is wrong by one unit at most; the rest as in kNearest.
enum class Rounding { kUp, kNearest, kCumulative };

// Sizes of a chain in units: every size divided by `unit` and rounded by itself. unit = 1 is exact.
class PersistentSpace {
 public:
  PersistentSpace(const Chain& chain, int64_t unit, Rounding rounding = Rounding::kUp);

  int last() const { return last_; }
  int64_t activation(int l) const { return at(activation_, l); }
  int64_t saved(int l) const { return at(saved_, l); }
  int64_t input_gradient() const { return at(gradient_, 0); }

  // m_all(s, t): what keeping all of stage s needs when its backward comes after that of s+1..t.
  // Where s = t the forward, a recompute, may stop early.
  int64_t KeepAllNeed(int s, int t) const {
    const int64_t need = std::max(gradient(t) + SavingNeed(s), BackwardNeed(s));
    return s < t ? need : std::min(need, at(stopped_need_, s));
  }
  // Its two parts: the forward that saves (delta^t comes on top) and the backward.
  int64_t SavingNeed(int s) const { return saved(s) + at(saving_overhead_, s); }
  int64_t BackwardNeed(int s) const { return gradient(s) + saved(s) + at(backward_overhead_, s); }

  // The part of m_0(s, s', t) that does not depend on t (delta^t comes on top), for s' = s+1, s+2,
  // ... : start with FirstRunNeed(s), then fold in ExtendRunNeed for each further stage s'-1.
  int64_t FirstRunNeed(int s) const;
  int64_t ExtendRunNeed(int64_t need, int stage) const;
  int64_t gradient(int l) const { return at(gradient_, l); }

  // Sum of the forward times of stages s..e in ns.
  int64_t ForwardTime(int s, int e) const {
    return at(forward_prefix_, e) - at(forward_prefix_, s - 1);
  }
  // The same where backward e follows: the forward of stage e is one that may stop early. It never falls with e.
  int64_t RecomputeTime(int s, int e) const { return ForwardTime(s, e) - StopGain(e); }
  // What stage e is faster then.
  int64_t StopGain(int e) const { return at(stop_gain_, e); }
  // Whether stages s..e may all run their forward twice.
  bool Recomputable(int s, int e) const { return at(kept_prefix_, e) == at(kept_prefix_, s - 1); }

  // All that the recurrence knows of a stage: two of equal keys are the same to it, and all of (s, t)
  // depends on stages s..t alone.
  std::array<int64_t, 10> StageKey(int s) const;

 private:
  static int64_t at(const std::vector<int64_t>& v, int l) { return v[static_cast<size_t>(l)]; }

  int last_;
  std::vector<int64_t> activation_, saved_, gradient_;
  std::vector<int64_t> saving_overhead_, plain_overhead_, backward_overhead_;
  std::vector<int64_t> stopped_need_, stop_gain_;
  std::vector<int64_t> forward_prefix_, kept_prefix_;
};

// The largest number that divides every size of the chain; 1 if there is no size.
int64_t CommonUnit(const Chain& chain);

// A triangular table with one value per interval s <= t.
template <class T>
class IntervalTable {
 public:
  explicit IntervalTable(int last) : last_(last), values_(Index(last, last) + 1) {}
  T& operator()(int s, int t) { return values_[Index(s, t)]; }
  const T& operator()(int s, int t) const { return values_[Index(s, t)]; }

  // What a table for `last` stages, the loss included, takes.
  static int64_t SizeBytes(int64_t last) {
    return last * (last + 1) / 2 * static_cast<int64_t>(sizeof(T));
  }

 private:
  // Row s holds t = s..last.
  size_t Index(int s, int t) const {
    const int64_t before =
        static_cast<int64_t>(s - 1) * last_ - static_cast<int64_t>(s - 1) * (s - 2) / 2;
    return static_cast<size_t>(before + (t - s));
  }
  int64_t last_;
  std::vector<T> values_;
};

// The least memory in which any persistent schedule runs each interval, and the choice that attains
// it.
struct MinimumMemory {
  struct Entry {
    int64_t memory = 0;
    int32_t split = 0;  // 0: keep all of stage s; else s', the checkpoint is a^{s'-1}
  };
  IntervalTable<Entry> table;
};

// O(L^3) time, less where stages repeat, and O(L^2) memory. Without splits, which is faster, they
// are all 0. CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED beyond the context's memory and for
// chains of more than 4,096 stages.
absl::StatusOr<MinimumMemory> ComputeMinimumMemory(const PersistentSpace& space,
                                                   const SolveContext& context,
                                                   bool with_splits = true);

// The smallest budget that holds any persistent schedule of the whole chain, in the space's units.
int64_t LeastBudgetOf(const PersistentSpace& space, const MinimumMemory& least);

// Builds a schedule from choices: `choose(s, t, m)` returns 0 to keep all of stage s, or s' in
// s+1..t. m is what the interval may use; it is tracked here as the recurrence does.
class PersistentBacktrack {
 public:
  // Of the whole chain.
  template <class Choose>
  static Schedule Run(const PersistentSpace& space, int64_t memory, Choose choose) {
    return Run(space, 1, space.last(), memory, choose);
  }
  // Of the interval (s, t).
  template <class Choose>
  static Schedule Run(const PersistentSpace& space, int s, int t, int64_t memory, Choose choose);

 private:
  struct Task {
    Instruction instruction;
    int s = 0, t = 0;  // t = 0: emit the instruction
    int64_t memory = 0;
  };
};

template <class Choose>
Schedule PersistentBacktrack::Run(const PersistentSpace& space, int s, int t, int64_t memory,
                                  Choose choose) {
  Schedule schedule;
  std::vector<Task> stack = {{{}, s, t, memory}};
  while (!stack.empty()) {
    const Task task = stack.back();
    stack.pop_back();
    if (task.t == 0) {
      schedule.push_back(task.instruction);
      continue;
    }
    const int split = task.s == task.t ? 0 : choose(task.s, task.t, task.memory);
    if (split == 0) {
      schedule.push_back(ForwardSave(task.s));
      stack.push_back({Backward(task.s)});
      if (task.s < task.t) {
        stack.push_back({{}, task.s + 1, task.t, task.memory - space.saved(task.s)});
      }
    } else {
      schedule.push_back(ForwardNoSave(task.s));
      for (int l = task.s + 1; l < split; ++l) schedule.push_back(ForwardNoSaveFreeInput(l));
      stack.push_back({{}, task.s, split - 1, task.memory});
      stack.push_back({{}, split, task.t, task.memory - space.activation(split - 1)});
    }
  }
  return schedule;
}

// Where the stages of a chain repeat: the recurrence gives equal intervals equal values. Internal
// to solvers/chain.

// The `length` stages from `stage` on are the same, one by one, as those from here on. Length 0:
// none.
struct StageRepeat {
  int stage = 0;
  int length = 0;
};

// For every stage s in 1..L+1 the longest repeat at a later stage, at index s. O(L^2) time, O(L)
// memory.
std::vector<StageRepeat> FindStageRepeats(const PersistentSpace& space);

// Moves (s, t) to the equal interval that is no repeat of a later one.
inline void MoveToDistinct(const std::vector<StageRepeat>& repeats, int* s, int* t) {
  for (;;) {
    const StageRepeat& repeat = repeats[static_cast<size_t>(*s)];
    if (*t - *s >= repeat.length) return;
    *t += repeat.stage - *s;
    *s = repeat.stage;
  }
}

// Intervals (s, t) that are no repeat of a later one: the ones that have to be computed.
int64_t DistinctIntervals(const std::vector<StageRepeat>& repeats);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_SPACE_H_

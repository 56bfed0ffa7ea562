// The recurrence of non_persistent_table.h, without moving checkpoints, over some of a chain's intervals: a table
// of memory slots that long chains can afford (algorithms.md, "Some intervals"). What is left out costs optimality,
// never validity: every value is attained by a schedule. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_SPARSE_TABLE_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_SPARSE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// Which intervals there are. Of a chain whose stages repeat all of them, each distinct one once; else those that end
// with the loss, and (s, e) where e is a cut point of a high enough level for the length: every stage is one
// of level 0, and of two neighbours of a level that with the smaller output is one of the next. Immutable.
class SparseIntervals {
 public:
  static constexpr int32_t kNone = -1;

  // `space` must have unit 1. Intervals of up to `dense` stages are all there. O(L^2) time and memory.
  SparseIntervals(const PersistentSpace& space, int dense);

  int last() const { return last_; }
  // Rows: distinct intervals.
  int64_t size() const { return size_; }
  // About how many alternatives all of them have.
  double alternatives() const { return alternatives_; }
  // Where the lower parts of the intervals from stage s on end: rising, s first.
  absl::Span<const int32_t> Ends(int s) const {
    const size_t i = static_cast<size_t>(s);
    return absl::Span<const int32_t>(ends_).subspan(ends_begin_[i],
                                                    ends_begin_[i + 1] - ends_begin_[i]);
  }
  // Whether (s, t) is the lower part of an interval: then all of stage t may be saved from the start.
  bool MayHoldSaved(int s, int t) const {
    const absl::Span<const int32_t> ends = Ends(s);
    return t < last_ || (!ends.empty() && ends.back() == last_);
  }
  // The number of the first of them, and of all.
  size_t FirstEnd(int s) const { return ends_begin_[static_cast<size_t>(s)]; }
  int64_t ends() const { return static_cast<int64_t>(ends_.size()); }
  // The row of (s, t), or kNone. O(1).
  int32_t Row(int s, int t) const { return rows_(s, t); }
  // The stages of another interval are the same as those of this one, and that one is computed.
  void MoveToComputed(int* s, int* t) const {
    if (shares_) MoveToDistinct(repeats_, s, t);
  }
  // Calls visit(s, t) once for every row, those that an alternative refers to before those it is of, until it returns
  // false.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (int s = last_; s >= 1; --s) {
      for (int t = s; t <= last_; ++t) {
        if (rows_(s, t) == kNone || (shares_ && t - s < repeats_[static_cast<size_t>(s)].length))
          continue;
        if (!visit(s, t)) return;
      }
    }
  }

 private:
  void FillEndsByLevels(const PersistentSpace& space, int dense);
  void FillEndsByDistance(const PersistentSpace& space, int dense);

  int last_;
  bool shares_;
  std::vector<StageRepeat> repeats_;
  std::vector<int32_t> ends_;
  std::vector<size_t> ends_begin_;  // by stage
  IntervalTable<int32_t> rows_;
  int64_t size_ = 0;
  double alternatives_ = 0;
};

// A row of memory slots for every interval, and one for that whose last stage is saved from the start, each over the
// memories from the least that runs it to that at which nothing of it runs again. O(S) time for each alternative at
// worst, S being the slots; values in 32 bits. Immutable, hence safe to share between threads.
class SparseTable {
 public:
  // `space` in slots and `intervals` must outlive the table. CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED beyond
  // the context's memory.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Compute(const PersistentSpace& space,
                                                              const SparseIntervals& intervals,
                                                              int64_t slots,
                                                              const SolveContext& context);

  // Least time above the ideal of the whole chain within `memory` <= slots, a^0 included, in units of time_unit();
  // kInfinity if nothing fits.
  int64_t Overhead(int64_t memory) const;
  // A schedule that attains it. Ties prefer keeping, then the earlier split.
  Schedule Backtrack(int64_t memory) const;

  int64_t slots() const { return slots_; }
  // ns. Sums of times are rounded down to it: an overhead is wrong by less than one for every run of repeated forwards.
  int64_t time_unit() const { return time_unit_; }
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(int32_t)); }

 private:
  using Value = int32_t;
  // One way to begin an interval (Alternative in non_persistent_table.h).
  struct Way {
    enum Kind { kKeep, kSplit, kSave };
    Kind kind;
    int stage;  // kSplit: the last that runs again; kSave: the one that is saved
    int64_t need, held;
    int64_t upper, lower;  // rows; kNothing
    Value time;
  };
  // What the forwards of kSplit and kSave need beside what is held of the interval's last stage.
  struct Needs {
    int64_t split = kInfinity, save = kInfinity;
  };
  // The memories [begin, end) are at values_[offset...]; from `end` on the value is 0.
  struct Row {
    int64_t begin, end, offset;
  };
  static constexpr int64_t kNothing = -1;

  SparseTable(const PersistentSpace& space, const SparseIntervals& intervals, int64_t slots);

  template <class Visit>
  void ForEachWay(int s, int t, bool saved, const Visit& visit) const;
  absl::Status FindExtents(StopPoll* poll);
  absl::Status Fill(const SolveContext& context, StopPoll* poll);
  int64_t Relax(const Row& row, const Way& way);
  Way Choose(int s, int t, bool saved, int64_t memory) const;
  Value At(int64_t row, int64_t memory) const;

  int64_t RowOf(int s, int t, bool saved) const {
    const int32_t row = intervals_.Row(s, t);
    return row == SparseIntervals::kNone ? kNothing : 2 * int64_t{row} + (saved ? 1 : 0);
  }
  const Row& RowAt(int64_t row) const { return rows_[static_cast<size_t>(row)]; }
  Value* ValueAt(const Row& row, int64_t memory) const {
    return values_.get() + (row.offset + memory - row.begin);
  }

  const PersistentSpace& space_;
  const SparseIntervals& intervals_;
  const int64_t slots_;
  int64_t time_unit_ = 1;
  std::vector<Value> forward_;  // of stages 1..l, in units
  std::vector<Value> until_;    // the same where that of l may stop early
  std::vector<Needs> needs_;    // by end
  std::vector<Row> rows_;
  int64_t count_ = 0;
  AlignedArray<Value> values_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_SPARSE_TABLE_H_

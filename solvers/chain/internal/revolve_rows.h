// Which intervals of a chain have a row of their own in solvers/chain/internal/revolve_rows.h, and what rows
// cost: known from the length and the repeats of the chain, before anything large is made. Internal
// to solvers/chain. Immutable.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_REVOLVE_ROWS_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_REVOLVE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

class RevolveIntervals {
 public:
  // RESOURCE_EXHAUSTED where even rows of a few steps would take more than some seconds, or more
  // than options.table_limit; CANCELLED, DEADLINE_EXCEEDED. O(L^2).
  static absl::StatusOr<RevolveIntervals> Find(const PersistentSpace& space,
                                               const SolveOptions& options);

  int last() const { return static_cast<int>(begin_.size()) - 1; }
  int64_t count() const { return count_; }
  // The shortest interval from stage s that is no repeat of a later one ends here (past the last
  // stage: there is none).
  int FirstEnd(int s) const { return s + repeats_[static_cast<size_t>(s)].length; }
  // In 0..count()-1; intervals that are alike have the same.
  size_t operator()(int s, int t) const;

  // As many steps for each row as some seconds and options.table_limit allow.
  int64_t AffordableSteps(int64_t step_bytes, const SolveOptions& options) const;
  // RESOURCE_EXHAUSTED if rows of so many steps take minutes.
  absl::Status CheckSteps(int64_t steps) const;

 private:
  explicit RevolveIntervals(const PersistentSpace& space);
  double Nanos(int64_t steps) const;

  std::vector<StageRepeat> repeats_;
  std::vector<int64_t> begin_;  // by first stage: the index of its intervals, less their last stage
  int64_t count_ = 0;
  int64_t splits_ = 0;  // of all those intervals
};

// The recurrence of Beaumont et al. 2019, Theorem 1, for schedules that save nothing ahead (the
// tensors of a stage are saved by the forward right before its backward): checkpoints only. In
// exact bytes, for every memory at once. Internal to solvers/chain.
//
// The least time of an interval is a step function of its memory. A row keeps its steps, at most
// `max_steps`: of more, some that are evenly spread, the least memory and the least time among them.
// All that is kept is attained by schedules. Equal intervals share a row. Immutable, hence safe to
// share between threads.

class RevolveRows {
 public:
  // From `memory` on, the least time above the ideal is `excess`, in bytes and ns. It is attained by
  // running `run` stages to a checkpoint; 0 in rows of one stage.
  struct Step {
    int64_t memory;
    int64_t excess;
    int32_t run;
  };
  // Memory rises, excess falls. Before the first step nothing fits.
  using Row = std::vector<Step>;

  // Memories up to `memory` (a^0 not included). max_steps >= 1; with 1 only the least memories are
  // right. `space` must have unit 1; it and its `intervals` must outlive the result. O(L^3
  // max_steps) time and O(L^2 max_steps) memory at worst. CANCELLED, DEADLINE_EXCEEDED;
  // RESOURCE_EXHAUSTED beyond options.table_limit, or minutes.
  static absl::StatusOr<RevolveRows> Compute(const PersistentSpace& space,
                                             const RevolveIntervals& intervals, int64_t memory,
                                             int64_t max_steps, const SolveOptions& options);

  // The whole chain's.
  const Row& Whole() const { return RowOf(1, space_->last()); }
  // Whether no row had to leave a step out.
  bool exact() const { return exact_; }

  // The schedule of the step that holds at `memory`. Ties prefer the earlier split.
  Schedule Backtrack(int64_t memory) const;

 private:
  RevolveRows(const PersistentSpace& space, const RevolveIntervals& intervals)
      : space_(&space), intervals_(&intervals), rows_(static_cast<size_t>(intervals.count())) {}

  const Row& RowOf(int s, int t) const { return rows_[(*intervals_)(s, t)]; }
  // The steps of one interval, thinned where they are more than max_steps.
  absl::Status ComputeRow(int s, int t, int64_t memory, size_t max_steps, StopPoll* poll, Row* row);
  void ThinTo(size_t count, Row* row);

  const PersistentSpace* space_;
  const RevolveIntervals* intervals_;
  std::vector<Row> rows_;  // by interval
  bool exact_ = true;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_REVOLVE_ROWS_H_

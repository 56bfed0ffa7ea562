// The recurrence of Beaumont et al. 2019, Theorem 1, for schedules that save nothing ahead (the
// tensors of a stage are saved by the forward right before its backward): checkpoints only. In
// exact bytes, for every memory at once. Internal to solvers/chain.
//
// The least time of an interval is a step function of its memory. A row keeps its steps, at most
// `max_steps`: of more, some that are evenly spread, the least memory and the least time among them.
// All that is kept is attained by schedules. Equal intervals share a row. Immutable, hence safe to
// share between threads.
#ifndef STOWAGE_SOLVERS_CHAIN_REVOLVE_ROWS_H_
#define STOWAGE_SOLVERS_CHAIN_REVOLVE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/revolve_intervals.h"
#include "solvers/plan/schedule.h"
#include "solvers/solver.h"

namespace stowage {

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

#endif  // STOWAGE_SOLVERS_CHAIN_REVOLVE_ROWS_H_

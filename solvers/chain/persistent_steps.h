// Persistent schedules of a chain in exact bytes, for every memory and every interval at once.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_STEPS_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// The recurrence of Beaumont et al. 2019, Theorem 1, in exact bytes and for every memory at once: the
// minimum time of an interval is a step function of its memory, and each interval has a row of its
// steps (algorithms.md, "Exact steps"). Equal intervals share a row.
//
// O(L^3 R) time and O(L^2 R) memory for rows of R steps at most; O(L^2 R) and O(L R) where all
// stages are equal. Immutable, hence safe to share between threads.
class PersistentSteps {
 public:
  // From `memory` on, the minimum time above the ideal is `overhead`. `split` is the choice: 0 keeps
  // all of the first stage s, k keeps the input of stage s + k. (Not s + k itself: rows are shared.)
  struct Step {
    int64_t memory;
    int64_t overhead;
    int32_t split;
  };
  // Memory rises strictly, overhead falls strictly. Before the first, nothing fits.
  using Row = std::vector<Step>;

  // When a stage may save its tensors: as soon as the memory is there, or by the forward right
  // before its backward alone, so that only checkpoints are kept ahead (revolve).
  enum class Saving { kAhead, kJustInTime };

  struct Limits {
    int64_t work;   // steps looked at, some nanoseconds each
    int64_t bytes;  // of all rows
    // Of a row, >= 1: of more, some that are evenly spread stay, the minimum memory and the minimum
    // time among them. All that stays is attained by schedules.
    size_t steps = std::numeric_limits<int32_t>::max();
  };

  // Memories up to `memory` (a^0 not included). Nothing if that is beyond the limits of work and
  // bytes, or looks after some of the work as if it were going to be. CANCELLED, DEADLINE_EXCEEDED.
  // `space` must have unit 1 and outlive the result.
  static absl::StatusOr<std::optional<PersistentSteps>> Compute(const PersistentSpace& space,
                                                                int64_t memory,
                                                                const Limits& limits,
                                                                const SolveContext& context,
                                                                Saving saving = Saving::kAhead);

  // The whole chain's, a^0 not included in the memories.
  const Row& Whole() const { return RowOf(1, space_->last()); }
  // The interval (s, t)'s, a^{s-1} not included; 1 <= s <= t <= L+1.
  const Row& RowOf(int s, int t) const { return rows_[static_cast<size_t>(row_of_(s, t))]; }
  // Whether no row had to leave a step out.
  bool exact() const { return exact_; }

  // The schedule of the step that holds at `memory` (a^0 not included); there must be one. Ties
  // prefer keeping over recomputing, then the smaller memory.
  Schedule Backtrack(int64_t memory) const { return Backtrack(1, space_->last(), memory); }
  // The same of the interval (s, t), a^{s-1} not included.
  Schedule Backtrack(int s, int t, int64_t memory) const;

 private:
  PersistentSteps(const PersistentSpace& space, int64_t memory, size_t max_steps, Saving saving,
                  const std::vector<StageRepeat>& repeats);

  // The choice to keep all of stage s.
  Row KeepRow(int s, int t) const;
  absl::StatusOr<Row> ComputeRow(int s, int t, StopPoll* poll, int64_t* work);
  int Choose(int s, int t, int64_t memory) const;

  const PersistentSpace* space_;
  int64_t memory_;
  size_t max_steps_;
  Saving saving_;
  bool exact_ = true;
  IntervalTable<int32_t> row_of_;  // equal intervals have the same
  std::vector<Row> rows_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_STEPS_H_

// Rows of steps in memory: what the recurrences in exact bytes have for an interval. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_STEPS_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_STEPS_H_

#include <algorithm>
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

// Beyond all memories.
inline constexpr int64_t kEndOfRow = std::numeric_limits<int64_t>::max();

// The step that holds at `memory`, the last that begins at or below it; the row's end if none does.
// Step::memory rises. O(log steps).
template <class Step>
typename std::vector<Step>::const_iterator StepAt(const std::vector<Step>& row, int64_t memory) {
  const auto over = std::upper_bound(row.begin(), row.end(), memory,
                                     [](int64_t m, const Step& step) { return m < step.memory; });
  return over == row.begin() ? row.end() : over - 1;
}

// The recurrence of Beaumont et al. 2019, Theorem 1, in exact bytes and for every memory at once.
// The least time of an interval is a step function of its memory: it falls at some memories and is
// constant in between. Here each interval has its steps, and nothing is rounded. Internal to
// solvers/chain.
//
// A choice of the recurrence adds two step functions, which has at most as many steps as both
// together; the row of an interval is the minimum over its choices. The number of steps can grow
// exponentially with the stages, hence the limits; on networks it stays at some tens to hundreds.
// Where stages repeat, equal intervals share a row.
//
// O(L^3 R) time and O(L^2 R) memory for rows of R steps at most; O(L^2 R) and O(L R) where all
// stages are equal.

class PersistentSteps {
 public:
  // From `memory` on, the least time above the ideal is `excess`. `split` is the choice: 0 keeps
  // all of the first stage s, k keeps the input of stage s + k. (Not s + k itself: rows are shared.)
  struct Step {
    int64_t memory;
    int64_t excess;
    int32_t split;
  };
  // Memory rises strictly, excess falls strictly. Before the first, nothing fits.
  using Row = std::vector<Step>;

  struct Limits {
    int64_t work;   // steps looked at, some nanoseconds each
    int64_t bytes;  // of all rows
  };

  // Memories up to `memory` (a^0 not included). Nothing if that is beyond the limits, or looks
  // after some of the work as if it were going to be. CANCELLED, DEADLINE_EXCEEDED. `space` must
  // have unit 1 and outlive the result.
  static absl::StatusOr<std::optional<PersistentSteps>> Compute(const PersistentSpace& space,
                                                                int64_t memory,
                                                                const Limits& limits,
                                                                const SolveOptions& options);

  // The whole chain's, a^0 not included in the memories.
  const Row& Whole() const { return RowOf(1, space_->last()); }

  // A schedule of least time within `memory` (a^0 not included), which must hold the first step.
  // Ties prefer keeping over recomputing, then the smaller memory.
  Schedule Backtrack(int64_t memory) const;

 private:
  PersistentSteps(const PersistentSpace& space, int64_t memory,
                  const std::vector<StageRepeat>& repeats);

  const Row& RowOf(int s, int t) const { return rows_[static_cast<size_t>(row_of_(s, t))]; }
  Row ComputeRow(int s, int t, int64_t* work) const;
  int Choose(int s, int t, int64_t memory) const;

  const PersistentSpace* space_;
  int64_t memory_;
  IntervalTable<int32_t> row_of_;  // equal intervals have the same
  std::vector<Row> rows_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_STEPS_H_

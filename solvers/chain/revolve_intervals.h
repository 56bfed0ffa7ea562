// Which intervals of a chain have a row of their own in solvers/chain/revolve_rows.h, and what rows
// cost: known from the length and the repeats of the chain, before anything large is made. Internal
// to solvers/chain. Immutable.
#ifndef STOWAGE_SOLVERS_CHAIN_REVOLVE_INTERVALS_H_
#define STOWAGE_SOLVERS_CHAIN_REVOLVE_INTERVALS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/stage_repeats.h"
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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_REVOLVE_INTERVALS_H_

// The discretised dynamic program of Beaumont et al. 2019, Theorem 1: one row of memory slots per
// interval, laid out [s][t][m] with m contiguous, so that every term of the recurrence is a min of
// shifted rows. Internal to solvers/chain.
//
// Time O(S L^3 / 6), memory 8 (S + 1) (L + 1)(L + 2) / 2 bytes. Values are times above the ideal in
// ns.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_TABLE_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_TABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/plan/schedule.h"
#include "solvers/solver.h"

namespace stowage {

class PersistentTable {
 public:
  // What a table for `stages` stages (loss included) and `slots` slots needs.
  static int64_t SizeBytes(int64_t stages, int64_t slots) {
    return stages * (stages + 1) / 2 * (slots + 1) * 8;
  }

  // `space` must be in slots and outlive the table. CANCELLED, DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED.
  static absl::StatusOr<PersistentTable> Compute(const PersistentSpace& space, int64_t slots,
                                                 const SolveOptions& options);

  // Least time above the ideal of the whole chain within `slots` (a^0 included); kNever if none
  // fits.
  int64_t Excess() const;
  // A schedule that attains Excess(). Ties prefer keeping, then the earlier split.
  Schedule Backtrack() const;

 private:
  PersistentTable(const PersistentSpace& space, int64_t slots);

  int64_t* Row(int s, int t);
  const int64_t* Row(int s, int t) const;
  void ComputeRow(int s, int t);
  int Choose(int s, int t, int64_t m) const;

  const PersistentSpace& space_;
  int64_t slots_;
  std::unique_ptr<int64_t[]> values_;  // each row is filled when it is computed
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_TABLE_H_

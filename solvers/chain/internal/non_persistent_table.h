// The recurrence of non_persistent_recurrence.h, discretised: one row of memory slots per subchain, from its
// least memory to the one that keeps everything. One table answers every budget up to its slots.
// Internal to solvers/chain.
//
// O(S L^3) time and O(S L^2) memory; with moving checkpoints O(S L^4) and O(S L^3); less where
// stages repeat. Values are times
// above the ideal, in 32 bits where that is exact or the table large, and then in units of more than
// a nanosecond where need be; else in 64.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_TABLE_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/internal/non_persistent_recurrence.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

class NonPersistentTable {
 public:
  static constexpr int kMaxBytesPerValue = 8;

  // What a table for a chain of so many subchains takes beside its values, the extents in bytes that
  // a solve has for itself among it.
  static int64_t BytesBesideValues(int64_t subchains);

  virtual ~NonPersistentTable() = default;

  // `space` in slots; it must outlive the table. CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED
  // beyond options.table_limit.
  static absl::StatusOr<std::unique_ptr<NonPersistentTable>> Compute(const PersistentSpace& space,
                                                                     bool moving, int64_t slots,
                                                                     const SolveOptions& options);

  // Least time above the ideal of the whole chain within `memory` <= slots, a^0 included, in units
  // of time_unit(); kNever if nothing fits.
  virtual int64_t Excess(int64_t memory) const = 0;
  // A schedule that attains it. Ties prefer keeping, then the earlier split.
  virtual Schedule Backtrack(int64_t memory) const = 0;

  int64_t time_unit() const { return time_unit_; }

 protected:
  explicit NonPersistentTable(int64_t time_unit) : time_unit_(time_unit) {}

 private:
  int64_t time_unit_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_TABLE_H_

// The discretised dynamic program of Beaumont et al. 2019, Theorem 1: one table that answers every
// budget up to its number of memory slots.
//
// O(S L^3 / 6) time at worst and O(S L^2 / 2) memory; what is out of reach, kept whole, or repeats
// costs neither. Values are times above the ideal: in 32 bits where they fit, and for the low
// memories where they do not, in a second, smaller table of a wider type. Results depend neither on
// the number of threads nor on the machine's instruction set. Immutable, hence safe to share between
// threads.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_TABLE_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/internal/min_plus_dispatch.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

class PersistentEngine;

// What a table takes, from the memories that keep everything and those that one stage alone needs.
struct TableEstimate {
  int64_t bytes;  // scratch included; a second, wider part is not
  double steps;   // up to a nanosecond each on one thread with AVX-512
};

// How to compute a table. Changes how long it takes, never a result: for tests and benchmarks.
struct TableTuning {
  enum class Engine { kBest, kTiles, kRows };
  enum class Value { kBest, kReal, kWide };  // at least this wide

  const MinPlusKernels* kernels = nullptr;  // null: the best that the machine runs
  Engine engine = Engine::kBest;
  Value value = Value::kBest;
};

class PersistentTable {
 public:
  // `space` must be in slots. CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED beyond
  // the context's memory, and where the machine has no memory left.
  static absl::StatusOr<PersistentTable> Compute(const PersistentSpace& space, int64_t slots,
                                                 const SolveContext& context) {
    return Compute(space, slots, context, TableTuning());
  }
  static absl::StatusOr<PersistentTable> Compute(const PersistentSpace& space, int64_t slots,
                                                 const SolveContext& context,
                                                 const TableTuning& tuning);

  // O(L^2).
  static TableEstimate Estimate(const PersistentSpace& space, int64_t slots);

  PersistentTable(PersistentTable&&) noexcept;
  PersistentTable& operator=(PersistentTable&&) noexcept;
  ~PersistentTable();

  // Least time above the ideal (ns) of the whole chain within `memory` slots, a^0 included, for
  // 0 <= memory <= slots; kInfinity if nothing fits.
  int64_t Overhead(int64_t memory) const;

  // The same for the interval (s, t) within `memory` slots, a^{s-1} not included.
  int64_t IntervalOverhead(int s, int t, int64_t memory) const;

  // A schedule that attains Overhead(memory), which must not be kInfinity. Ties prefer keeping, then the
  // earlier split.
  Schedule Backtrack(int64_t memory) const;

  // Of all values kept.
  int64_t bytes() const;

 private:
  // A table for the memories up to `slots` that fit no earlier part.
  struct Part {
    int64_t slots;
    std::unique_ptr<const PersistentEngine> engine;
  };

  explicit PersistentTable(const PersistentSpace& space);

  template <class T>
  absl::StatusOr<int64_t> Extend(const MinimumMemory& least, int64_t slots,
                                 const SolveContext& context, const TableTuning& tuning);
  const PersistentEngine& EngineFor(int64_t memory) const;
  int Choose(const PersistentEngine& engine, int s, int t, int64_t m) const;

  PersistentSpace space_;
  int64_t time_unit_ = 1;         // ns
  std::vector<int64_t> forward_;  // forward time of the stages before s, in time units
  std::vector<int64_t> until_;    // the same where that of stage s-1 may stop early
  std::vector<Part> parts_;       // fewer slots and wider values each
};

// Backtracking in exact bytes that follows a table in slots (algorithms.md, "The discretised table").
// A schedule within `memory` bytes (a^0 not included), at least the least memory of (1, L+1).
// `exact` must have unit 1, `table` have slots of `unit` bytes. O(L^2) time.
Schedule RoundingAwareSchedule(const PersistentSpace& exact, const MinimumMemory& least,
                               const PersistentTable& table, int64_t unit, int64_t memory);
// The same of the interval (s, t), a^{s-1} not included.
Schedule RoundingAwareSchedule(const PersistentSpace& exact, const MinimumMemory& least,
                               const PersistentTable& table, int64_t unit, int s, int t,
                               int64_t memory);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_TABLE_H_

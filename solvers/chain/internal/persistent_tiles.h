// The two engines of the discretised table (persistent_table.h) and what both start from; the engine
// of tiles. The one of rows is in persistent_table.cc. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_TILES_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_TILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/min_plus_dispatch.h"
#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/solver.h"

namespace stowage {

// A chain in memory slots: stages count from 0, sizes are 32-bit and cut off just above the number
// of slots, where nothing fits any more.
struct PersistentSlots {
  // `space` in slots.
  PersistentSlots(const PersistentSpace& space, int64_t slots);

  // What an object takes, but for O(L).
  static int64_t SizeBytes(int64_t stages) {
    return stages * (stages + 1) / 2 * static_cast<int64_t>(sizeof(int32_t));
  }

  // More slots than this are refused: sums of two sizes stay within 32 bits.
  static constexpr int64_t kMaxSlots = int64_t{1} << 28;

  // m_0(s, s', t) without delta^t, at index s' in s+1..stages-1; never falls with s'.
  const int32_t* RunNeed(int s) const {
    return run_need.data() + run_begin[static_cast<size_t>(s)];
  }

  int stages;
  int32_t slots;
  std::vector<int32_t> input;  // a^{s-1}
  std::vector<int32_t> saved, gradient;
  std::vector<int32_t> saving_need, backward_need;  // of m_all: under delta^t, and under delta^s
  std::vector<int32_t> leaf_need;                   // m_all(s, s)

 private:
  void FillRunNeeds(const PersistentSpace& space);

  std::vector<int32_t> run_need;
  std::vector<size_t> run_begin;
};

// For every interval the slots from which on it runs at all, and those from which on all of it is
// kept (cut off above the slots). In between its row is worth a place in a table. Both grow as s
// falls.
class LiveSlots {
 public:
  // CANCELLED, DEADLINE_EXCEEDED. O(L^2).
  static absl::StatusOr<LiveSlots> Compute(const PersistentSlots& slots, const MinimumMemory& least,
                                           StopPoll* poll);

  static int64_t SizeBytes(int64_t stages) { return IntervalTable<Range>::SizeBytes(stages); }

  int32_t least(int s, int t) const { return table_(s + 1, t + 1).least; }
  int32_t all_kept(int s, int t) const { return table_(s + 1, t + 1).all_kept; }

 private:
  struct Range {
    int32_t least, all_kept;
  };

  explicit LiveSlots(int stages) : table_(stages) {}

  IntervalTable<Range> table_;
};

// What computes and keeps the values of a table: one of two engines over one of three types of value.
class PersistentEngine {
 public:
  virtual ~PersistentEngine() = default;
  // C(s, t, m) in units of time above the ideal, or kInfinity where nothing fits or the value is
  // beyond the type. 0 <= m; stages count from 0. The a^{s-1} beside m must fit the slots too.
  virtual int64_t Value(int s, int t, int64_t m) const = 0;
  virtual int64_t bytes() const = 0;
};

// What both engines start from.
struct EngineInput {
  const PersistentSlots& slots;
  const LiveSlots& live;
  const std::vector<StageRepeat>& repeats;
  std::vector<int64_t> forward;  // forward time of the stages before s, in units of time
  std::vector<int64_t> until;    // the same where that of stage s-1 may stop early
  int64_t bytes_beside;          // of the table: what is held beside the engine
};

// The largest sum of forward times that a type of value takes.
template <class T>
bool FitsValues(int64_t forward_total) {
  return forward_total < static_cast<int64_t>(kInfinityAs<T>);
}

// RESOURCE_EXHAUSTED if `bytes` in all are over the limit of a table.
absl::Status CheckTableSize(int64_t stages, int64_t slots, int64_t bytes,
                            const SolveContext& context);
absl::Status NoMemoryForTable(int64_t bytes);

// All intervals, in tiles (min_plus_kernel.h). For chains without much repetition. T is int32_t,
// double or int64_t.
template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles(const EngineInput& input,
                                                               const MinPlusKernels& kernels,
                                                               const SolveContext& context);

// What the index of a table of tiles takes, the tiles not included.
int64_t TileIndexBytes(int64_t stages, int64_t slots, int64_t lanes);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_TILES_H_

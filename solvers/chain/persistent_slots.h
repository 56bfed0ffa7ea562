// A chain in memory slots as the discretised tables read it: stages count from 0, sizes are 32-bit
// and cut off just above the number of slots, where nothing fits any more. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_SLOTS_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/solver.h"

namespace stowage {

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
  static absl::StatusOr<LiveSlots> Compute(const PersistentSlots& slots, const LeastMemory& least,
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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_SLOTS_H_

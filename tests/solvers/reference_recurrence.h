// The recurrence of Beaumont et al. 2019, Theorem 1, as published: every interval, every memory
// slot, every split, in plain loops over 64-bit times. What the tables are held against, for their
// values and for their speed. Written from the chain, independently of solvers/chain.
#ifndef STOWAGE_TESTS_SOLVERS_REFERENCE_RECURRENCE_H_
#define STOWAGE_TESTS_SOLVERS_REFERENCE_RECURRENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "solvers/model/chain.h"

namespace stowage::testing {

class ReferenceRecurrence {
 public:
  // Sizes count in units, each rounded up. O(slots L^3 / 6) time, 8 (slots + 1) L^2 / 2 bytes.
  ReferenceRecurrence(const Chain& chain, int64_t unit, int64_t slots);

  // Least time above the ideal of the whole chain in `memory` slots, a^0 included.
  std::optional<int64_t> Overhead(int64_t memory) const;

 private:
  // Rows [s][t][m] for s <= t, m contiguous.
  int64_t* Row(int s, int t);
  void ComputeRow(int s, int t);
  int64_t KeepAllNeed(int s, int t) const;

  int last_;
  int64_t slots_;
  int64_t ideal_ = 0;
  std::vector<int64_t> activation_, saved_, gradient_, saving_, plain_, backward_;
  std::vector<int64_t>
      stopped_;  // a leaf's need without its gradient, where the recompute stops early
  std::vector<int64_t> forward_time_, backward_time_, stopped_time_;
  std::vector<bool> recomputable_;
  std::vector<int64_t> values_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_REFERENCE_RECURRENCE_H_

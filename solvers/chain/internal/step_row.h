// Rows of steps in memory: what the recurrences in exact bytes have for an interval. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_STEP_ROW_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_STEP_ROW_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_STEP_ROW_H_

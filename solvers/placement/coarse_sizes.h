// Sizes rounded up to a common unit, as large a one as costs next to nothing. Internal to placement.h.
//
// Most blocks of a network are small multiples of one size, and some are a few bytes more. Placed as they
// are, these leave gaps into which none of the others fits by as little. In coarse units there are no such
// gaps, and few offsets to try.
#ifndef STOWAGE_SOLVERS_PLACEMENT_COARSE_SIZES_H_
#define STOWAGE_SOLVERS_PLACEMENT_COARSE_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/placement/first_fit.h"

namespace stowage {

// The greatest sum of sizes that live at one moment. O(n log n).
int64_t LivePeak(const std::vector<UnitBlock>& blocks);

struct CoarseSizes {
  int64_t unit = 1;
  std::vector<UnitBlock> blocks;  // sizes in that unit, without the tiny blocks
  std::vector<size_t> numbers;    // of these, among all
  std::vector<size_t> tiny;       // numbers of the others, which come last
};

// With the live peak of `blocks`; what is rounded, and the tiny ones beside it, add up to half a per cent
// more at most. A unit of 1: there is no other. O(n log n).
CoarseSizes FindCoarseSizes(const std::vector<UnitBlock>& blocks, int64_t peak);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLACEMENT_COARSE_SIZES_H_

// Offsets in one region of memory for the blocks of a static schedule: what a budget needs in order to
// hold for reserved memory, not for live bytes alone.
//
// Blocks that live at the same time do not overlap. The extent, how far the region reaches, is at
// least the live peak; what it is more is lost to fragmentation: free at every time, but in pieces. The least
// extent is NP-hard to find (dynamic storage allocation, Garey & Johnson 1979, SR2). What is done:
//   - In some orders, by size, life and area, blocks are put one by one at the lowest offset that is free
//     for all of their life (first fit; one of all orders gives the least extent), and from the
//     lowest free memory up (skyline).
//   - An extent that is enough is looked for from the lowest offset up, with inference (internal/section_search.h).
//   - Below the best of these, targets are tried by throwing out what is in the way (ejection), until the extent is
//     enough, or the effort is spent: of many blocks first with sizes in coarse units (CoarseSizes), for half of it,
//     then as they are.
// Enough is the capacity that the options say, where the live peak is no more, else less than 1/5000 of the live peak
// lost to fragmentation.
//
// Bytes. Deterministic: equal input gives equal offsets. Thread-safe.
#ifndef STOWAGE_SOLVERS_PLACEMENT_PLACEMENT_H_
#define STOWAGE_SOLVERS_PLACEMENT_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule_blocks.h"
#include "solvers/solver.h"

namespace stowage {

struct PlacementOptions {
  // Offsets are multiples of it, sizes count as rounded up to it. CUDA's caching allocator has 512.
  Bytes alignment{512};
  // Steps of the search below the first orders, at most 2,000 for each pair of blocks that live at the
  // same time; 100 million take one to two seconds. Where none is left, the best placement so far is
  // the answer.
  int64_t effort = 200000000;
  // The memory there is, where it is known: an extent that is enough. Looking for one may take all of the effort, however few
  // the pairs. 0: the smaller the better.
  Bytes capacity;
  // Ends all early that comes after the first order, as if the effort were spent; may be null.
  const StopToken* stop = nullptr;
};

struct Placement {
  std::vector<Bytes> offsets;  // by block
  Bytes extent;                // the greatest end of a block
  Bytes live_peak;             // the greatest sum of sizes that live at one time, as they count

  // Of the extent. 0: no placement has a smaller one.
  Bytes fragmentation() const { return extent - live_peak; }
};

// INVALID_ARGUMENT: an alignment below 1, a negative effort or capacity, a block of no bytes or of no life, or
// sizes that add up to 2^62 or more. Time O(n^2 + effort); memory O(n + pairs of blocks that live at
// the same time). Where these are more than 32 million there is no search.
absl::StatusOr<Placement> PlaceBlocks(const std::vector<BlockLife>& blocks,
                                      const PlacementOptions& options = {});

// OK if all of a placement is true: offsets are multiples of the alignment and not negative, nothing
// overlaps that lives at the same time, extent and live peak are as stated. INTERNAL that names
// blocks and rule otherwise. What PlaceBlocks returns has passed. O(n log n).
absl::Status CheckPlacement(const std::vector<BlockLife>& blocks, Bytes alignment,
                            const Placement& placement);

// Sizes rounded up to a common unit, as large a one as costs next to nothing.
//
// Most blocks of a network are small multiples of one size, and some are a few bytes more. Placed as they
// are, these leave gaps into which none of the others fits by as little. In coarse units there are no such
// gaps, and few offsets to try.

// A block with its size in units of the alignment.
struct UnitBlock {
  int64_t size;
  int64_t begin;
  int64_t end;
};

// The greatest sum of sizes that live at one time. O(n log n).
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

#endif  // STOWAGE_SOLVERS_PLACEMENT_PLACEMENT_H_

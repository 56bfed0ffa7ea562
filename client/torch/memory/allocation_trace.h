// The allocations of one training step, in order, and where their blocks go when the step is repeated.
//
// Under one schedule a step asks for the same blocks in the same order every time: what was recorded
// once is the exact input of a placement (solvers/placement), temporaries of every op included. Knows
// no device: blocks have names while they are recorded, and offsets afterwards.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_ALLOCATION_TRACE_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_ALLOCATION_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule_blocks.h"

namespace stowage {

// One allocation as it is planned. What outlived the recorded step is not of the region.
struct PlannedBlock {
  static constexpr int64_t kOutside = -1;

  int64_t size = 0;
  int64_t offset = kOutside;
};

struct ArenaPlan {
  std::vector<PlannedBlock> blocks;  // in the order in which the step asks for them
  Bytes extent;                      // bytes of the region
  Bytes live_peak;                   // most that is used of it at once, sizes rounded up
  Bytes fragmentation() const { return extent - live_peak; }
};

// Not thread-safe.
class AllocationTrace {
 public:
  // `block` names it until it is freed. O(1).
  void Allocate(const void* block, int64_t size);
  // No effect for a block that is not of the trace. O(1).
  void Free(const void* block);

  // Places all blocks that were freed. Errors and complexity: PlaceBlocks, with `effort` for its search.
  absl::StatusOr<ArenaPlan> Plan(Bytes alignment, int64_t effort) const;

 private:
  std::vector<BlockLife> lives_;  // end -1: not freed
  std::unordered_map<const void*, size_t> live_;
  int64_t moment_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_ALLOCATION_TRACE_H_

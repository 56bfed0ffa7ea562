// Serves the allocations of a repeated step from their planned offsets.
//
// The k-th allocation gets the k-th planned block if their sizes are equal. If not, the next few blocks
// of the plan are tried: the step may have left some out. What finds no block, or one of which part is
// still in use, gets none and has to be allocated otherwise; what follows is matched as before. So two
// blocks that live at once never overlap, whatever a step does. Knows no device: a region of any memory
// serves, given its base address. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_TRACE_FOLLOWER_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_TRACE_FOLLOWER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "client/torch/memory/allocation_trace.h"

namespace stowage {

class TraceFollower {
 public:
  // Of the allocations since Restart.
  struct Counts {
    int64_t served = 0;
    int64_t outside = 0;   // planned outside of the region
    int64_t departed = 0;  // from the plan; allocated otherwise
  };

  // The next step begins, by that plan. Blocks that are still in use stay where they are.
  void Restart(std::shared_ptr<const ArenaPlan> plan);
  // The offset of the next allocation, if it gets one. Not before Restart. O(log of the blocks in use).
  std::optional<int64_t> Allocate(int64_t size);
  // The size of the block there, which is free from now on. It must be in use.
  int64_t Free(int64_t offset);

  const Counts& counts() const { return counts_; }
  bool empty() const { return in_use_.empty(); }

 private:
  // The planned block that an allocation of that size is, and moves on behind it; null if it is none.
  const PlannedBlock* Match(int64_t size);
  bool IsFree(int64_t offset, int64_t size) const;

  std::shared_ptr<const ArenaPlan> plan_;
  size_t next_ = 0;
  std::map<int64_t, int64_t> in_use_;  // offset -> size
  Counts counts_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_TRACE_FOLLOWER_H_

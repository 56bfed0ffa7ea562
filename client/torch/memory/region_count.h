// Regions of a caching allocator that sources serve blocks from, in an AllocationCount: it counts what is served, not the
// regions.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_REGION_COUNT_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_REGION_COUNT_H_

#include <atomic>
#include <cstdint>

#include "client/torch/memory/allocation_count.h"
#include "solvers/model/units.h"

namespace stowage {

// The caching allocator: its blocks are events of the count.
class RegionMemory {
 public:
  virtual ~RegionMemory() = default;

  // Gives back to the device what the allocator holds and nobody uses.
  virtual void EmptyCache() = 0;
  // Null: there is not so much.
  virtual void* Allocate(Bytes bytes) = 0;
  virtual void Free(void* block) = 0;
};

// Thread-safe.
class RegionCount {
 public:
  // Both outlive it.
  RegionCount(AllocationCount* count, RegionMemory* memory) : count_(count), memory_(memory) {}

  // Null as RegionMemory. What is cached goes first: the region would come on top of it.
  void* Reserve(Bytes bytes);
  void Unreserve(void* block, Bytes bytes);

  void Served(Bytes bytes);
  void Returned(Bytes bytes);

  // Of regions less what is served of them: what the allocator's own count of live bytes has too much.
  Bytes unserved() const { return Bytes(unserved_.load()); }

 private:
  AllocationCount* const count_;
  RegionMemory* const memory_;
  std::atomic<int64_t> unserved_{0};
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_REGION_COUNT_H_

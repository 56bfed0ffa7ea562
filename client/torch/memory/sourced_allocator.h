// An allocator that lets sources serve in its place: what StepArena asks of the memory of a device.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_SOURCED_ALLOCATOR_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_SOURCED_ALLOCATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/torch/memory/block_source.h"
#include "solvers/model/units.h"

namespace stowage {

// Thread-safe.
class SourcedAllocator {
 public:
  virtual ~SourcedAllocator() = default;

  // Shows every block that goes to the source, until it is done.
  virtual void Add(std::shared_ptr<BlockSource> source) = 0;
  // Lets go of sources that are done.
  virtual void DropDone() = 0;
  // Lets the source, which was added, serve what the calling thread allocates; null: nobody does. Returns who did before.
  virtual BlockSource* Enter(BlockSource* source) = 0;

  // Memory for a source's blocks, which counts as reserved as a whole; null where there is none within
  // the limit. At least one byte, aligned to `alignment`, a power of two of at least granularity().
  virtual void* Reserve(Bytes size, Bytes alignment) = 0;
  virtual void Unreserve(void* region, Bytes size) = 0;
  // What its own blocks are aligned to.
  virtual Bytes granularity() const = 0;
};

// Of the CPU: the installed TrackingAllocator; FAILED_PRECONDITION without.
absl::StatusOr<SourcedAllocator*> InstalledAllocator();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_SOURCED_ALLOCATOR_H_

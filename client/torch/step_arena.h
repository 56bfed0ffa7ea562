// Serves a training step from one reserved region, its blocks at offsets planned before: what a step
// reserves is then known, and the same in every step.
//
//   auto arena = StepArena::Create({}).value();
//   { ArenaScope scope(arena.get()); executor->Step(input, target); }   // records the allocations
//   arena->Prepare();                                                   // plans, reserves the region
//   { ArenaScope scope(arena.get()); executor->Step(input, target); }   // served from it
//
// The step to be recorded is one like those to come: under the same schedule, with parameters that have
// gradients. What outlives the step, and whatever differs from what was recorded, is allocated as ever
// and counted; a step's results do not depend on any of it. What the region served and outlives the
// arena keeps the region alive.
//
// Of the CPU, through TrackingAllocator. All but the region and the thread is without a device
// (allocation_trace.h, trace_follower.h): on CUDA the region is one block of the caching allocator, and
// a pluggable allocator or pool serves base + offset in stream order, autograd's device thread included.
#ifndef STOWAGE_CLIENT_TORCH_STEP_ARENA_H_
#define STOWAGE_CLIENT_TORCH_STEP_ARENA_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/allocation_trace.h"
#include "client/torch/trace_follower.h"
#include "client/torch/tracking_allocator.h"

namespace stowage {

struct StepArenaOptions {
  Bytes alignment{64};        // of blocks; what LibTorch's kernels expect on the CPU
  int64_t effort = 50000000;  // of the placement's search
};

// What is reserved for a step is the region and, beside it, what was allocated as ever; both are in
// MemoryMeter::peak_reserved and StepReport::peak_reserved.
struct ArenaReport {
  Bytes extent;                  // of the region; 0 before Prepare
  Bytes live_peak;               // what is used of it at once, sizes rounded up to the alignment
  Bytes stranded;                // the rest of it
  TraceFollower::Counts counts;  // of the last step that was served
};

// Serves one thread at a time: that which opened the scope; on the CPU, autograd runs backwards there,
// too. Blocks may be freed by any thread. Otherwise not thread-safe.
class StepArena {
 public:
  // FAILED_PRECONDITION unless TrackingAllocator is installed; INVALID_ARGUMENT for an alignment that is
  // not a power of two of at least 64 or a negative effort.
  static absl::StatusOr<std::unique_ptr<StepArena>> Create(const StepArenaOptions& options);
  ~StepArena();
  StepArena(const StepArena&) = delete;
  StepArena& operator=(const StepArena&) = delete;

  // Plans the blocks of the step that was recorded last and reserves their region: it serves the
  // scopes to come. FAILED_PRECONDITION: nothing was recorded, or a scope is open. RESOURCE_EXHAUSTED:
  // the region does not fit into the allocator's limit or the system's memory; what was recorded
  // stays. Takes what the placement takes, some seconds at most.
  absl::Status Prepare();
  // Gives the region up: the next scope records. No effect while a scope is open.
  void Forget();

  ArenaReport report() const;

 private:
  friend class ArenaScope;
  class Recorder;
  class Region;

  StepArena(TrackingAllocator* allocator, const StepArenaOptions& options)
      : allocator_(allocator), options_(options) {}
  void Begin();
  void End();

  TrackingAllocator* allocator_;
  StepArenaOptions options_;
  std::shared_ptr<Recorder> recorder_;  // of the last step recorded
  std::shared_ptr<Region> region_;
  BlockSource* before_ = nullptr;  // who served the thread outside of the scope
  bool open_ = false;
};

// Lets the arena serve, or record, what the calling thread allocates. One at a time for an arena; null
// is allowed and does nothing.
class ArenaScope {
 public:
  explicit ArenaScope(StepArena* arena) : arena_(arena) {
    if (arena_ != nullptr) arena_->Begin();
  }
  ~ArenaScope() {
    if (arena_ != nullptr) arena_->End();
  }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  StepArena* arena_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_STEP_ARENA_H_

// Serves training steps from one reserved region, their blocks at offsets planned before: what a step
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
// Steps of several kinds, of different shapes of batches say, have a plan each and share the region,
// which is as large as the largest needs: they run one after the other.
//
// Both ends of a copy to the host or back are blocks like others: compute allocates the destination
// before the copy starts and frees the source after it has waited (execution_device.h), so that no block
// that a copy reads or writes is served to anybody else.
//
// On which device is the allocator's matter (sourced_allocator.h): TrackingAllocator's is the CPU. None is a GPU's.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_STEP_ARENA_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_STEP_ARENA_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/memory/allocation_trace.h"
#include "client/torch/memory/sourced_allocator.h"
#include "client/torch/memory/trace_follower.h"

namespace stowage {

struct StepArenaOptions {
  // Of blocks; 0: the allocator's granularity, 64 bytes on the CPU.
  Bytes alignment{0};
  int64_t effort = 50000000;  // of the placement's search
};

// What is reserved for a step is the region and, beside it, what was allocated as ever; both are in
// MemoryMeter::peak_reserved and StepReport::peak_reserved.
struct ArenaReport {
  Bytes reserved;  // the region; 0 while there is none
  // Of the kind of step that was planned or served last, also where Prepare found no room; 0 before.
  Bytes extent;                  // how far its blocks reach into the region
  Bytes live_peak;               // what is used of that at once, sizes rounded up to the alignment
  Bytes fragmentation;           // the rest of it
  TraceFollower::Counts counts;  // of the last step that was served
};

// Serves one step at a time: what the thread allocates that opened the scope (autograd runs the CPU's
// backwards there, too). Blocks may be freed by any thread.
// Otherwise not thread-safe.
class StepArena {
 public:
  // Which of several kinds of steps: the caller's number.
  using Kind = int64_t;

  // `allocator` outlives it; null: InstalledAllocator and its errors. INVALID_ARGUMENT for an alignment
  // that is not a power of two of at least the granularity, or a negative effort.
  static absl::StatusOr<std::unique_ptr<StepArena>> Create(const StepArenaOptions& options,
                                                           SourcedAllocator* allocator = nullptr);
  ~StepArena();
  StepArena(const StepArena&) = delete;
  StepArena& operator=(const StepArena&) = delete;

  // Plans the blocks of the step that was recorded last and reserves their region: it serves the
  // scopes of that kind to come. FAILED_PRECONDITION: nothing was recorded, or a scope is open.
  // RESOURCE_EXHAUSTED: the region would have more than `most` bytes, or does not fit into the
  // allocator's limit or the memory there is; what was recorded stays, and so do other kinds' plans.
  // Takes what the placement takes, some seconds at most.
  absl::Status Prepare(Bytes most = Bytes(std::numeric_limits<int64_t>::max()));

  // Gives the region up; the next scope of a kind that is planned reserves it again. The next of one that
  // is not does so, too: it takes its memory elsewhere. No effect while a scope is open.
  void Release();
  // Forgets the plan of that kind of step, or all plans and the region: their next scopes record. No
  // effect while a scope is open.
  void Forget(Kind kind);
  void Forget();

  ArenaReport report() const;

 private:
  friend class ArenaScope;
  class Recorder;
  class Region;

  StepArena(SourcedAllocator* allocator, const StepArenaOptions& options)
      : allocator_(allocator), options_(options) {}
  absl::Status Reserve(Bytes size);
  void Begin(Kind kind);
  void End();

  SourcedAllocator* allocator_;
  StepArenaOptions options_;
  std::shared_ptr<Recorder> recorder_;  // of the last step recorded
  Kind recorded_ = 0;
  std::map<Kind, std::shared_ptr<const ArenaPlan>> plans_;
  std::shared_ptr<const ArenaPlan> latest_;  // that was planned or served
  std::shared_ptr<Region> region_;
  BlockSource* before_ = nullptr;  // who served outside of the scope
  bool open_ = false;
  bool recording_ = false;
};

// Lets the arena serve, or record, what the calling thread allocates. One at a time for an arena; null
// is allowed and does nothing.
class ArenaScope {
 public:
  explicit ArenaScope(StepArena* arena, StepArena::Kind kind = 0) : arena_(arena) {
    if (arena_ != nullptr) arena_->Begin(kind);
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

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_STEP_ARENA_H_

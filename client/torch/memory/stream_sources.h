// Sources that serve in place of a caching allocator of a device with streams (sourced_allocator.h).
//
// What a source serves is in the order of one stream, that which was current where the source was entered: whoever
// allocates for that stream is served, on any thread, and what was freed is used again by what comes later on it. Where a
// block was shown to other streams (RecordStream), its own waits for them when it is freed. A source that is entered on
// another stream waits for the one before.
//
// A region is a block of the caching allocator, reserved after what is cached was given back. Who asks how much is allocated
// is told what is used of regions, not the regions (Allocated).
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_STREAM_SOURCES_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_STREAM_SOURCES_H_

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/torch/memory/allocation_count.h"
#include "client/torch/memory/block_sources.h"
#include "client/torch/memory/region_count.h"
#include "client/torch/memory/sourced_allocator.h"

namespace stowage {

// A device's caching allocator and its streams. Thread-safe.
class StreamMemory : public RegionMemory {
 public:
  // Of the calling thread.
  virtual c10::Stream CurrentStream() = 0;
  // What the device's own functions call it.
  virtual const void* Handle(c10::Stream stream) = 0;
  // What comes on one stream waits for what is on the other.
  virtual void Wait(c10::Stream stream, c10::Stream other) = 0;
  // Of a block of the caching allocator.
  virtual void RecordStream(void* block, c10::Stream stream) = 0;
  // Most that was allocated, as the caching allocator has it.
  virtual int64_t PeakOfAllocated() = 0;
};

// Thread-safe.
class StreamSources final : public SourcedAllocator {
 public:
  // Both outlive it; the count is of that memory.
  StreamSources(StreamMemory* memory, AllocationCount* count)
      : memory_(memory), regions_count_(count, memory), peak_(count) {}

  void Add(std::shared_ptr<BlockSource> source) override { sources_.Add(std::move(source)); }
  void DropDone() override { sources_.DropDone(); }
  BlockSource* Enter(BlockSource* source) override;
  void* Reserve(Bytes size, Bytes alignment) override;
  void Unreserve(void* region, Bytes size) override;
  Bytes granularity() const override { return Bytes(kGranularity); }

  // A block for the stream of that handle, if its source has one.
  void* Allocate(size_t size, const void* handle);
  // It got an ordinary one.
  void Allocated(const void* block, size_t size, const void* handle);
  // Shows a block that goes to the sources. Whether one of them served it.
  bool Free(const void* block);
  // Whether the block is a source's; notes that the stream uses it, too.
  bool RecordStream(const void* block, c10::Stream stream);

  struct AllocatedBytes {
    int64_t current;
    int64_t peak;
  };
  // What the caching allocator says, with what is used of regions in their place.
  AllocatedBytes WithoutRegions(AllocatedBytes said) const;
  // The caching allocator's peak was reset.
  void ResetPeak();

 private:
  static constexpr int64_t kGranularity = 512;

  struct Served {
    Bytes bytes;
    c10::Stream stream;
    std::vector<c10::Stream> others;
  };
  struct Region {
    void* block = nullptr;  // the caching allocator's
    int64_t bytes = 0;
    std::vector<c10::Stream> streams;  // that its blocks were served for
  };

  void NoteStream(c10::Stream stream);
  bool Serves(const void* handle) const { return entered_ != nullptr && handle_ == handle; }

  StreamMemory* const memory_;
  BlockSources sources_;
  // Not held while the caching allocator is called: what that calls back may allocate.
  mutable std::mutex mutex_;
  BlockSource* entered_ = nullptr;
  std::optional<c10::Stream> stream_;  // where a source was entered last
  const void* handle_ = nullptr;
  std::unordered_map<const void*, Served> served_;
  std::unordered_map<const void*, Region> regions_;
  RegionCount regions_count_;
  // Of what the user is shown, since ResetPeak or the first region after it; then regions have been in the caching
  // allocator's own peak, and what was there before is its.
  AllocationCount::Mark peak_;
  bool own_peak_ = false;
  int64_t earlier_peak_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_STREAM_SOURCES_H_

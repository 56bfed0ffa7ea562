#include "client/torch/cuda/cuda_watch.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "client/torch/base/torch_version.h"

namespace stowage {
#if STOWAGE_TORCH_AT_LEAST(2, 7)
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr Bytes kGranularity(512);

Bytes AsBytes(size_t bytes) { return Bytes(static_cast<int64_t>(bytes)); }

// Called under the allocator's own lock.
void Tell(const allocator::TraceEntry& event, AllocationCount* count) {
  using Event = allocator::TraceEntry;
  const Bytes bytes = AsBytes(event.size_);
  if (event.action_ == Event::ALLOC) return count->Allocated(bytes);
  // A free that was asked for changes nothing until no stream uses the block.
  if (event.action_ == Event::FREE_COMPLETED) return count->Freed(bytes);
  if (event.action_ == Event::SEGMENT_ALLOC || event.action_ == Event::SEGMENT_MAP) {
    return count->Reserved(bytes);
  }
  if (event.action_ == Event::SEGMENT_FREE || event.action_ == Event::SEGMENT_UNMAP) {
    return count->Released(bytes);
  }
}

AllocationCount::Sums Snapshot(c10::DeviceIndex gpu, const AllocationCount& count) {
  AllocationCount::Sums sums;
  for (const auto& segment : allocator::snapshot().segments) {
    if (segment.device != gpu) continue;
    sums.reserved += AsBytes(segment.total_size);
    for (const auto& block : segment.blocks) {
      if (!block.active) continue;
      sums.requested += AsBytes(block.requested_size);
      sums.blocks += count.Block(AsBytes(block.requested_size));
    }
  }
  return sums;
}

struct GpuEvents {
  AllocationCount count{kGranularity};
  RefusalLog refusals;
};

class Watch {
 public:
  Watch() : gpus_(static_cast<size_t>(c10::cuda::device_count())) {
    allocator::attachOutOfMemoryObserver(
        [this](int64_t gpu, size_t asked, size_t total, size_t free) {
          NoteRefusal(static_cast<c10::DeviceIndex>(gpu), AsBytes(asked), AsBytes(total),
                      AsBytes(free));
        });
    try {
      allocator::attachAllocatorTraceTracker(
          [this](const allocator::TraceEntry& event) { Tell(event, &At(event.device_).count); });
    } catch (const c10::Error&) {
      return;
    }
    counts_ = true;
    for (size_t i = 0; i < gpus_.size(); ++i) {
      gpus_[i].count.StartFrom(
          [&] { return Snapshot(static_cast<c10::DeviceIndex>(i), gpus_[i].count); });
    }
  }

  CudaWatch Of(c10::DeviceIndex gpu) {
    return {counts_ ? &At(gpu).count : nullptr, &At(gpu).refusals};
  }

 private:
  GpuEvents& At(c10::DeviceIndex gpu) { return gpus_.at(static_cast<size_t>(gpu)); }

  // Called without that lock. `total` is less than the GPU has where the process may use a share.
  void NoteRefusal(c10::DeviceIndex gpu, Bytes asked, Bytes total, Bytes free) {
    const allocator::DeviceStats stats = allocator::getDeviceStats(gpu);
    const Bytes reserved(stats.reserved_bytes[0].current);
    // Of regions what is served, where that is known.
    const Bytes live =
        counts_ ? At(gpu).count.now().requested : Bytes(stats.requested_bytes[0].current);
    At(gpu).refusals.Note({asked, live, reserved, std::min(reserved + free, total), Bytes(0)});
  }

  std::deque<GpuEvents> gpus_;
  bool counts_ = false;
};

}  // namespace

CudaWatch WatchGpu(c10::DeviceIndex gpu) {
  static auto* const watch = new Watch();
  return watch->Of(gpu);
}
#else
CudaWatch WatchGpu(c10::DeviceIndex /*gpu*/) { return {}; }
#endif

}  // namespace stowage

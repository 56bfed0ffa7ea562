// LibTorch's CPU allocator with a count of the bytes it hands out, and a limit that makes a CPU run
// out of memory like a GPU does: with an error that a program survives.
//
// Counts exactly the bytes that were requested; its own 64 bytes per block and malloc's rounding
// are not in the figures. Beyond the limit it throws c10::OutOfMemoryError and changes nothing.
//
// A region that a source holds for blocks of its own (StepArena) is reserved as a whole. What is
// reserved beside it is what is in use; the limit is for all that is reserved, as a GPU's memory is.
// Thread-safe, except Install.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_TRACKING_ALLOCATOR_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_TRACKING_ALLOCATOR_H_

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/memory/block_sources.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/memory/memory_refusal.h"

namespace stowage {

class TrackingAllocator final : public c10::Allocator, public MemoryMeter {
 public:
  // Makes the one instance LibTorch's CPU allocator and returns it. Call it at the start of main:
  // blocks allocated earlier are freed properly but were never counted. Calling it again does
  // nothing more.
  static TrackingAllocator* Install();
  // The instance, or null before Install.
  static TrackingAllocator* Get();

  Bytes current() const override { return Bytes(current_.load(std::memory_order_relaxed)); }
  Bytes peak() const override { return Bytes(peak_.load(std::memory_order_relaxed)); }
  Bytes reserved() const override { return Bytes(reserved_.load(std::memory_order_relaxed)); }
  Bytes peak_reserved() const override {
    return Bytes(peak_reserved_.load(std::memory_order_relaxed));
  }
  void ResetPeak() override;
  Bytes TakeRecentPeak() override;
  RefusalLog* refusals() override { return &refusals_; }

  // Reserved bytes that may not be exceeded from now on.
  void SetLimit(Bytes limit) { limit_.store(limit.value(), std::memory_order_relaxed); }
  void ClearLimit() { limit_.store(kNoLimit, std::memory_order_relaxed); }

  // Shows every block that goes to the source, until it is done.
  void Add(std::shared_ptr<BlockSource> source) { sources_.Add(std::move(source)); }
  // Lets go of sources that are done.
  void DropDone() { sources_.DropDone(); }
  // Lets the source, which was added, serve what the calling thread allocates; null: nobody does.
  // Returns who did before.
  static BlockSource* Enter(BlockSource* source);
  // Whether the limit allows that many bytes more; counts them as reserved if so.
  bool Reserve(Bytes size);
  void Unreserve(Bytes size);

  c10::DataPtr allocate(size_t size) STOWAGE_ALLOCATE_CONST override;
  c10::DeleterFnPtr raw_deleter() const override;
#if STOWAGE_ALLOCATOR_COPIES
  void copy_data(void* destination, const void* source, size_t size) const override;
#endif

 private:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  TrackingAllocator() = default;
  static void Free(void* data);
  void* AllocateOrdinary(size_t size) const;
  bool TryReserve(int64_t size) const;
  // Where no more than `limit` could be reserved.
  [[noreturn]] void Refuse(int64_t asked, int64_t limit) const;

  // Mutable: LibTorch 1.13 declares allocate const.
  mutable std::atomic<int64_t> current_{0};
  mutable std::atomic<int64_t> peak_{0};
  mutable std::atomic<int64_t> recent_peak_{0};
  mutable std::atomic<int64_t> reserved_{0};
  mutable std::atomic<int64_t> peak_reserved_{0};
  mutable RefusalLog refusals_;
  std::atomic<int64_t> limit_{kNoLimit};
  BlockSources sources_;
};

// `meter`, or the installed allocator if it is null; FAILED_PRECONDITION if there is neither.
absl::StatusOr<MemoryMeter*> MeterOrInstalled(MemoryMeter* meter);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_TRACKING_ALLOCATOR_H_

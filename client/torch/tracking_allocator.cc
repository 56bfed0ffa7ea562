#include "client/torch/tracking_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>

namespace stowage {
namespace {

// LibTorch's kernels expect blocks aligned to 64 bytes; the header is as long, so that what follows
// it is aligned too.
constexpr size_t kAlignment = 64;
constexpr uint8_t kPriority = 100;  // above every allocator that LibTorch registers itself

std::atomic<TrackingAllocator*> installed{nullptr};

}  // namespace

TrackingAllocator* TrackingAllocator::Install() {
  // Never destroyed: tensors of static storage duration are freed after main.
  static TrackingAllocator* const instance = [] {
    auto* allocator = new TrackingAllocator();
    c10::SetCPUAllocator(allocator, kPriority);
    installed.store(allocator, std::memory_order_release);
    return allocator;
  }();
  return instance;
}

TrackingAllocator* TrackingAllocator::Get() { return installed.load(std::memory_order_acquire); }

void TrackingAllocator::ResetPeak() {
  peak_.store(current_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void TrackingAllocator::Charge(int64_t size) const {
  const int64_t now = current_.fetch_add(size, std::memory_order_relaxed) + size;
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  if (now > limit) {
    current_.fetch_sub(size, std::memory_order_relaxed);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", size, " bytes asked for, ",
                     now - size, " in use, limit ", limit);
  }
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

c10::DataPtr TrackingAllocator::allocate(size_t size) STOWAGE_ALLOCATE_CONST {
  const c10::Device device(c10::DeviceType::CPU);
  if (size == 0) return {nullptr, nullptr, &Free, device};
  TORCH_CHECK_WITH(OutOfMemoryError,
                   size <= static_cast<size_t>(std::numeric_limits<int64_t>::max()) - kAlignment,
                   "out of memory: ", size, " bytes asked for");
  Charge(static_cast<int64_t>(size));
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, size + kAlignment) != 0) {
    current_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: the system has no ", size, " bytes");
  }
  std::memcpy(block, &size, sizeof(size));
  void* data = static_cast<char*>(block) + kAlignment;
  return {data, data, &Free, device};
}

void TrackingAllocator::Free(void* data) {
  if (data == nullptr) return;
  void* block = static_cast<char*>(data) - kAlignment;
  size_t size = 0;
  std::memcpy(&size, block, sizeof(size));
  Get()->current_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  std::free(block);
}

c10::DeleterFnPtr TrackingAllocator::raw_deleter() const { return &Free; }

#if STOWAGE_ALLOCATOR_COPIES
void TrackingAllocator::copy_data(void* destination, const void* source, size_t size) const {
  default_copy_data(destination, source, size);
}
#endif

absl::StatusOr<MemoryMeter*> MeterOrInstalled(MemoryMeter* meter) {
  if (meter == nullptr) meter = TrackingAllocator::Get();
  if (meter != nullptr) return meter;
  return absl::FailedPreconditionError(
      "memory is not measured: call TrackingAllocator::Install at the start of main");
}

}  // namespace stowage

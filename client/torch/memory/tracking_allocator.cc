#include "client/torch/memory/tracking_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "client/torch/memory/sourced_allocator.h"
#include "client/torch/memory/thread_memory.h"

namespace stowage {
namespace {

// LibTorch's kernels expect blocks aligned to 64 bytes; the header is as long, so that what follows
// it is aligned too.
constexpr size_t kAlignment = 64;

std::atomic<TrackingAllocator*> installed{nullptr};
thread_local BlockSource* entered = nullptr;
thread_local int64_t held_by_thread = 0;
thread_local int64_t peak_of_thread = 0;

void RaisePeak(std::atomic<int64_t>* highest, int64_t now) {
  int64_t peak = highest->load(std::memory_order_relaxed);
  while (now > peak && !highest->compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

}  // namespace

TrackingAllocator* TrackingAllocator::Install() {
  // Never destroyed: tensors of static storage duration are freed after main.
  static TrackingAllocator* const instance = [] {
    auto* allocator = new TrackingAllocator();
    constexpr uint8_t kPriority = 100;  // above every allocator that LibTorch registers itself
    c10::SetCPUAllocator(allocator, kPriority);
    installed.store(allocator, std::memory_order_release);
    return allocator;
  }();
  return instance;
}

TrackingAllocator* TrackingAllocator::Get() { return installed.load(std::memory_order_acquire); }

void TrackingAllocator::ResetPeak() {
  peak_.store(current_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  recent_peak_.store(current_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  peak_reserved_.store(reserved_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Bytes TrackingAllocator::TakeRecentPeak() {
  return Bytes(
      recent_peak_.exchange(current_.load(std::memory_order_relaxed), std::memory_order_relaxed));
}

BlockSource* TrackingAllocator::Enter(BlockSource* source) {
  return std::exchange(entered, source);
}

bool TrackingAllocator::Reserve(Bytes size) { return TryReserve(size.value()); }

void TrackingAllocator::Unreserve(Bytes size) {
  reserved_.fetch_sub(size.value(), std::memory_order_relaxed);
}

bool TrackingAllocator::TryReserve(int64_t size) const {
  const int64_t now = reserved_.fetch_add(size, std::memory_order_relaxed) + size;
  if (now > limit_.load(std::memory_order_relaxed)) {
    reserved_.fetch_sub(size, std::memory_order_relaxed);
    return false;
  }
  RaisePeak(&peak_reserved_, now);
  return true;
}

void TrackingAllocator::Refuse(int64_t asked, int64_t limit) const {
  const MemoryRefusal refusal{Bytes(asked), current(), reserved(), Bytes(limit), Bytes(0)};
  refusals_.Note(refusal);
  C10_THROW_ERROR(OutOfMemoryError, WordsOfRefusal(refusal));
}

void* TrackingAllocator::AllocateOrdinary(size_t size) const {
  constexpr size_t kMost = static_cast<size_t>(kNoLimit) - kAlignment;
  const auto bytes = static_cast<int64_t>(std::min(size, kMost));
  if (size > kMost || !TryReserve(bytes)) Refuse(bytes, limit_.load(std::memory_order_relaxed));
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, size + kAlignment) != 0) {
    reserved_.fetch_sub(bytes, std::memory_order_relaxed);
    Refuse(bytes, reserved().value());  // the system has no more
  }
  std::memcpy(block, &size, sizeof(size));
  return static_cast<char*>(block) + kAlignment;
}

c10::DataPtr TrackingAllocator::allocate(size_t size) STOWAGE_ALLOCATE_CONST {
  const c10::Device device(c10::DeviceType::CPU);
  if (size == 0) return {nullptr, nullptr, &Free, device};
  BlockSource* const source = entered;
  void* data = source == nullptr ? nullptr : source->Allocate(size);
  if (data == nullptr) {
    data = AllocateOrdinary(size);
    if (source != nullptr) source->Allocated(data, size);
  }
  const auto bytes = static_cast<int64_t>(size);
  const int64_t now = current_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  RaisePeak(&peak_, now);
  RaisePeak(&recent_peak_, now);
  held_by_thread += bytes;
  peak_of_thread = std::max(peak_of_thread, held_by_thread);
  return {data, data, &Free, device};
}

void TrackingAllocator::Free(void* data) {
  if (data == nullptr) return;
  TrackingAllocator* const allocator = Get();
  const auto served = allocator->sources_.empty() ? std::nullopt : allocator->sources_.Free(data);
  if (served) {
    allocator->current_.fetch_sub(static_cast<int64_t>(*served), std::memory_order_relaxed);
    held_by_thread -= static_cast<int64_t>(*served);
    return;
  }
  void* block = static_cast<char*>(data) - kAlignment;
  size_t size = 0;
  std::memcpy(&size, block, sizeof(size));
  allocator->current_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  allocator->reserved_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  held_by_thread -= static_cast<int64_t>(size);
  std::free(block);
}

c10::DeleterFnPtr TrackingAllocator::raw_deleter() const { return &Free; }

#if STOWAGE_ALLOCATOR_COPIES
void TrackingAllocator::copy_data(void* destination, const void* source, size_t size) const {
  default_copy_data(destination, source, size);
}
#endif

std::optional<Bytes> HeldByThread(const MemoryMeter& meter) {
  if (&meter != TrackingAllocator::Get()) return std::nullopt;
  return Bytes(held_by_thread);
}

std::optional<Bytes> ThreadPeak(const MemoryMeter& meter) {
  if (&meter != TrackingAllocator::Get()) return std::nullopt;
  return Bytes(peak_of_thread);
}

void ResetThreadPeak() { peak_of_thread = held_by_thread; }

absl::StatusOr<MemoryMeter*> MeterOrInstalled(MemoryMeter* meter) {
  if (meter == nullptr) meter = TrackingAllocator::Get();
  if (meter != nullptr) return meter;
  return absl::FailedPreconditionError(
      "memory is not measured: call TrackingAllocator::Install at the start of main");
}

}  // namespace stowage

// Passes all that LibTorch asks of its CUDA allocator on to another one: what is to change something
// overrides that alone. LibTorch 2.11 and later.
#ifndef STOWAGE_CLIENT_TORCH_CUDA_PASSING_CUDA_ALLOCATOR_H_
#define STOWAGE_CLIENT_TORCH_CUDA_PASSING_CUDA_ALLOCATOR_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/torch/base/torch_version.h"

namespace stowage {

// Blocks have the deleter that the other one gave them. Thread-safe as that one.
class PassingCudaAllocator : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
 public:
  using Base = c10::cuda::CUDACachingAllocator::CUDAAllocator;

  // `to` outlives it.
  explicit PassingCudaAllocator(Base* to) : to_(to) {}

  c10::DataPtr allocate(size_t size) override { return to_->allocate(size); }
  c10::DeleterFnPtr raw_deleter() const override { return to_->raw_deleter(); }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return to_->is_simple_data_ptr(data);
  }
  void copy_data(void* destination, const void* source, size_t size) const override {
    to_->copy_data(destination, source, size);
  }

  bool initialized() override { return to_->initialized(); }
  void emptyCache(c10::MempoolId_t pool) override { to_->emptyCache(pool); }
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    to_->recordStream(data, stream);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return to_->getDeviceStats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    to_->resetAccumulatedStats(device);
  }
  void resetPeakStats(c10::DeviceIndex device) override { to_->resetPeakStats(device); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return to_->getMemoryInfo(device);
  }

  void* raw_alloc(size_t size) override { return to_->raw_alloc(size); }
  void* raw_alloc_with_stream(size_t size, cudaStream_t stream) override {
    return to_->raw_alloc_with_stream(size, stream);
  }
  void raw_delete(void* data) override { to_->raw_delete(data); }
  void init(int devices) override { to_->init(devices); }
  double getMemoryFraction(c10::DeviceIndex device) override {
    return to_->getMemoryFraction(device);
  }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    to_->setMemoryFraction(fraction, device);
  }
  std::vector<c10::cuda::CUDACachingAllocator::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex device) override {
    return to_->getExpandableSegmentSizes(device);
  }
  void enable(bool value) override { to_->enable(value); }
  bool isEnabled() const override { return to_->isEnabled(); }
  void cacheInfo(c10::DeviceIndex device, size_t* largest) override {
    to_->cacheInfo(device, largest);
  }
  void* getBaseAllocation(void* data, size_t* size) override {
    return to_->getBaseAllocation(data, size);
  }
  c10::cuda::CUDACachingAllocator::SnapshotInfo snapshot(c10::MempoolId_t pool,
                                                         bool include_traces) override {
    return to_->snapshot(pool, include_traces);
  }

  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    to_->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    to_->endAllocateToPool(device, pool);
  }
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    to_->releasePool(device, pool);
  }
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    return to_->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<Base> allocator) override {
    to_->createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use_on_oom) override {
    to_->setUseOnOOM(device, pool, use_on_oom);
  }
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    to_->setNoSplit(device, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override {
    return to_->checkPoolLiveAllocations(device, pool, expected);
  }

  c10::cuda::CUDACachingAllocator::ShareableHandle shareIpcHandle(void* data) override {
    return to_->shareIpcHandle(data);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return to_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return to_->isHistoryEnabled(); }
  void recordHistory(bool enabled, c10::CachingDeviceAllocator::CreateContextFn recorder,
                     size_t most_entries, c10::CachingDeviceAllocator::RecordContext when,
                     bool clear, const std::vector<std::string>& skipped) override {
    to_->recordHistory(enabled, recorder, most_entries, when, clear, skipped);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& words) override {
    to_->recordAnnotation(words);
  }
  void pushCompileContext(std::string& words) override { to_->pushCompileContext(words); }
  void popCompileContext() override { to_->popCompileContext(); }
  void setUserMetadata(const std::string& words) override { to_->setUserMetadata(words); }
  std::string getUserMetadata() override { return to_->getUserMetadata(); }
  void attachOutOfMemoryObserver(
      c10::cuda::CUDACachingAllocator::OutOfMemoryObserver observer) override {
    to_->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(
      c10::CachingDeviceAllocator::AllocatorTraceTracker tracker) override {
    to_->attachAllocatorTraceTracker(std::move(tracker));
  }

  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override {
    to_->enablePeerAccess(device, other);
  }
  cudaError_t memcpyAsync(void* destination, int destination_device, const void* source,
                          int source_device, size_t size, cudaStream_t stream,
                          bool peers) override {
    return to_->memcpyAsync(destination, destination_device, source, source_device, size, stream,
                            peers);
  }
  std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> getCheckpointState(
      c10::DeviceIndex device, c10::MempoolId_t pool) override {
    return to_->getCheckpointState(device, pool);
  }
  c10::cuda::CUDACachingAllocator::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device,
      std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state) override {
    return to_->setCheckpointPoolState(device, std::move(state));
  }
#if STOWAGE_TORCH_AT_LEAST(2, 15)
  void markCaptureBegin(c10::DeviceIndex device) override { to_->markCaptureBegin(device); }
  void markCaptureEnd(c10::DeviceIndex device) override { to_->markCaptureEnd(device); }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* data) override {
    return to_->getContextForPointer(data);
  }
  bool supportsUserMetadata() override { return to_->supportsUserMetadata(); }
  void annotateMemory(const void* data, const std::string& words) override {
    to_->annotateMemory(data, words);
  }
  void attachOomRejectionObserver(
      c10::cuda::CUDACachingAllocator::OomRejectionObserver observer) override {
    to_->attachOomRejectionObserver(std::move(observer));
  }
  c10::DataPtr allocateWithAddress(size_t size, void* address) override {
    return to_->allocateWithAddress(size, address);
  }
#endif
  std::string name() override { return to_->name(); }

 protected:
  Base* to() const { return to_; }

 private:
  Base* const to_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_PASSING_CUDA_ALLOCATOR_H_

#include "client/torch/cuda/cuda_gpu_blocks.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <utility>

#include "client/torch/cuda/cuda_event.h"

namespace stowage {
namespace {

constexpr size_t kAllPools = 0;  // among the statistics of each kind

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

c10::Device Gpu(c10::DeviceIndex index) { return {c10::DeviceType::CUDA, index}; }

}  // namespace

// What was freed on another stream before may still be in use there.
BlockSource* CudaGpuBlocks::Enter(BlockSource* source) {
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(gpu_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (source != nullptr) NoteStream(stream);
  return std::exchange(entered_, source);
}

void CudaGpuBlocks::NoteStream(c10::cuda::CUDAStream stream) {
  if (stream_ && *stream_ != stream) WaitFor(*stream_, stream.stream());
  stream_ = stream;
  for (auto& [start, region] : regions_) {
    const auto known = std::find(region.streams.begin(), region.streams.end(), stream);
    if (known == region.streams.end()) region.streams.push_back(stream);
  }
}

void CudaGpuBlocks::WaitFor(c10::cuda::CUDAStream other, cudaStream_t stream) const {
  const c10::DeviceGuard guard(other.device());
  CudaEvent event;
  event.Record(other.stream());
  C10_CUDA_CHECK(event.Block(stream));
}

void* CudaGpuBlocks::Allocate(Bytes bytes) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(gpu_).stream();
  try {
    return native_->raw_alloc_with_stream(static_cast<size_t>(bytes.value()), stream);
  } catch (const c10::OutOfMemoryError&) {
    return nullptr;
  }
}

void* CudaGpuBlocks::Reserve(Bytes size, Bytes alignment) {
  const c10::DeviceGuard guard(Gpu(gpu_));
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(gpu_);
  const int64_t bytes = RoundUp(size.value(), kGranularity) + alignment.value() - kGranularity;
  const int64_t before = native_->getDeviceStats(gpu_).allocated_bytes[kAllPools].peak;
  void* const block = regions_count_.Reserve(Bytes(bytes));
  if (block == nullptr) return nullptr;
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(block));
  void* const start = static_cast<char*>(block) + RoundUp(address, alignment.value()) - address;
  const std::lock_guard<std::mutex> lock(mutex_);
  regions_.emplace(start, Region{block, bytes, {stream}});
  if (own_peak_) return start;
  earlier_peak_ = before;
  peak_.Reset();
  own_peak_ = true;
  return start;
}

void CudaGpuBlocks::Unreserve(void* region, Bytes /*size*/) {
  const c10::DeviceGuard guard(Gpu(gpu_));
  Region gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = regions_.find(region);
    gone = std::move(it->second);
    regions_.erase(it);
  }
  // The first is the caching allocator's own for it.
  c10::DataPtr shown(gone.block, gone.block, native_->raw_deleter(), Gpu(gpu_));
  for (size_t i = 1; i < gone.streams.size(); ++i) native_->recordStream(shown, gone.streams[i]);
  shown.release_context();
  regions_count_.Unreserve(gone.block, Bytes(gone.bytes));
}

void* CudaGpuBlocks::Allocate(size_t size, cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entered_ == nullptr || stream_->stream() != stream) return nullptr;
  void* const block = entered_->Allocate(size);
  if (block == nullptr) return nullptr;
  const Bytes bytes(static_cast<int64_t>(size));
  served_.emplace(block, Served{bytes, stream, {}});
  regions_count_.Served(bytes);
  return block;
}

void CudaGpuBlocks::Allocated(const void* block, size_t size, cudaStream_t stream) {
  if (sources_.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entered_ != nullptr && stream_->stream() == stream) entered_->Allocated(block, size);
}

bool CudaGpuBlocks::Free(const void* block) {
  if (sources_.empty()) return false;
  bool served = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = served_.find(block);
    served = it != served_.end();
    if (served) {
      for (const auto& other : it->second.others) WaitFor(other, it->second.stream);
      regions_count_.Returned(it->second.bytes);
      served_.erase(it);
    }
  }
  // Last: from here on the source may serve these bytes again.
  sources_.Free(block);
  return served;
}

bool CudaGpuBlocks::RecordStream(const void* block, c10::cuda::CUDAStream stream) {
  if (sources_.empty()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = served_.find(block);
  if (it == served_.end()) return false;
  std::vector<c10::cuda::CUDAStream>& others = it->second.others;
  const bool known = stream.stream() == it->second.stream ||
                     std::find(others.begin(), others.end(), stream) != others.end();
  if (!known) others.push_back(stream);
  return true;
}

CudaGpuBlocks::Stats CudaGpuBlocks::GetStats() {
  Stats stats = native_->getDeviceStats(gpu_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!own_peak_) return stats;
  auto& allocated = stats.allocated_bytes[kAllPools];
  allocated.current -= regions_count_.unserved().value();
  allocated.peak = std::max({earlier_peak_, peak_.peak().blocks.value(), allocated.current});
  return stats;
}

void CudaGpuBlocks::ResetPeakStats() {
  native_->resetPeakStats(gpu_);
  const std::lock_guard<std::mutex> lock(mutex_);
  own_peak_ = !regions_.empty();
  earlier_peak_ = 0;
  peak_.Reset();
}

}  // namespace stowage

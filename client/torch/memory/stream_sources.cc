#include "client/torch/memory/stream_sources.h"

#include <algorithm>

namespace stowage {
namespace {

int64_t RoundUpTo(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

bool Contains(const std::vector<c10::Stream>& streams, c10::Stream stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

}  // namespace

// What was freed on another stream before may still be in use there.
BlockSource* StreamSources::Enter(BlockSource* source) {
  const c10::Stream stream = memory_->CurrentStream();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (source != nullptr) NoteStream(stream);
  return std::exchange(entered_, source);
}

void StreamSources::NoteStream(c10::Stream stream) {
  if (stream_ && *stream_ != stream) memory_->Wait(stream, *stream_);
  stream_ = stream;
  handle_ = memory_->Handle(stream);
  for (auto& [start, region] : regions_) {
    if (!Contains(region.streams, stream)) region.streams.push_back(stream);
  }
}

void* StreamSources::Reserve(Bytes size, Bytes alignment) {
  const c10::Stream stream = memory_->CurrentStream();
  const int64_t bytes = RoundUpTo(size.value(), kGranularity) + alignment.value() - kGranularity;
  const int64_t before = memory_->PeakOfAllocated();
  void* const block = regions_count_.Reserve(Bytes(bytes));
  if (block == nullptr) return nullptr;
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(block));
  void* const start = static_cast<char*>(block) + RoundUpTo(address, alignment.value()) - address;
  const std::lock_guard<std::mutex> lock(mutex_);
  regions_.emplace(start, Region{block, bytes, {stream}});
  if (own_peak_) return start;
  earlier_peak_ = before;
  peak_.Reset();
  own_peak_ = true;
  return start;
}

void StreamSources::Unreserve(void* region, Bytes /*size*/) {
  Region gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = regions_.find(region);
    gone = std::move(it->second);
    regions_.erase(it);
  }
  // The first is the caching allocator's own for it.
  for (size_t i = 1; i < gone.streams.size(); ++i) {
    memory_->RecordStream(gone.block, gone.streams[i]);
  }
  regions_count_.Unreserve(gone.block, Bytes(gone.bytes));
}

void* StreamSources::Allocate(size_t size, const void* handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!Serves(handle)) return nullptr;
  void* const block = entered_->Allocate(size);
  if (block == nullptr) return nullptr;
  const Bytes bytes(static_cast<int64_t>(size));
  served_.emplace(block, Served{bytes, *stream_, {}});
  regions_count_.Served(bytes);
  return block;
}

void StreamSources::Allocated(const void* block, size_t size, const void* handle) {
  if (sources_.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Serves(handle)) entered_->Allocated(block, size);
}

bool StreamSources::Free(const void* block) {
  if (sources_.empty()) return false;
  bool served = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = served_.find(block);
    served = it != served_.end();
    if (served) {
      for (const c10::Stream& other : it->second.others) memory_->Wait(it->second.stream, other);
      regions_count_.Returned(it->second.bytes);
      served_.erase(it);
    }
  }
  // Last: from here on the source may serve these bytes again.
  sources_.Free(block);
  return served;
}

bool StreamSources::RecordStream(const void* block, c10::Stream stream) {
  if (sources_.empty()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = served_.find(block);
  if (it == served_.end()) return false;
  Served& served = it->second;
  if (stream != served.stream && !Contains(served.others, stream)) served.others.push_back(stream);
  return true;
}

StreamSources::AllocatedBytes StreamSources::WithoutRegions(AllocatedBytes said) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!own_peak_) return said;
  const int64_t current = said.current - regions_count_.unserved().value();
  return {current, std::max({earlier_peak_, peak_.peak().blocks.value(), current})};
}

void StreamSources::ResetPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  own_peak_ = !regions_.empty();
  earlier_peak_ = 0;
  peak_.Reset();
}

}  // namespace stowage

#include "tests/client/device/block_cache.h"

#include <algorithm>
#include <cstdlib>

namespace stowage {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallBlock = kMiB;
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kMiddleBlock = 10 * kMiB;
constexpr size_t kMiddleSegment = 20 * kMiB;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t SegmentBytes(size_t size) {
  if (size <= kSmallBlock) return kSmallSegment;
  if (size < kMiddleBlock) return kMiddleSegment;
  return RoundUp(size, kSmallSegment);
}

bool Splits(size_t rest, bool small) {
  return small ? rest >= BlockCache::kGranularity : rest > kSmallBlock;
}

}  // namespace

BlockCache::~BlockCache() {
  // Blocks that are in use outlive it: tensors of static storage duration are freed later than anything.
  EmptyLocked();
}

void* BlockCache::Allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t size = RoundUp(bytes, kGranularity);
  const bool small = size <= kSmallBlock;
  Block* block = Take(size, small);
  if (block == nullptr) {
    ++stats_.retries;
    EmptyLocked();
    block = Take(size, small);
  }
  if (block == nullptr) {
    ++stats_.refusals;
    return nullptr;
  }
  Split(block, size);
  block->used = true;
  block->requested = bytes;
  used_[block->data] = block;
  stats_.allocated_bytes += static_cast<int64_t>(block->size);
  stats_.requested_bytes += static_cast<int64_t>(bytes);
  stats_.allocated_peak_bytes = std::max(stats_.allocated_peak_bytes, stats_.allocated_bytes);
  stats_.requested_peak_bytes = std::max(stats_.requested_peak_bytes, stats_.requested_bytes);
  return block->data;
}

BlockCache::Block* BlockCache::Take(size_t size, bool small) {
  if (static_cast<int64_t>(size) > stats_.live_limit_bytes - stats_.allocated_bytes) return nullptr;
  Block* const block = TakeFree(size, small);
  return block != nullptr ? block : NewSegment(SegmentBytes(size), small);
}

BlockCache::Block* BlockCache::TakeFree(size_t size, bool small) {
  Pool& pool = small ? small_ : large_;
  const auto found = pool.lower_bound({size, nullptr});
  if (found == pool.end()) return nullptr;
  Block* const block = found->second;
  pool.erase(found);
  return block;
}

BlockCache::Block* BlockCache::NewSegment(size_t size, bool small) {
  if (stats_.reserved_bytes + static_cast<int64_t>(size) > stats_.limit_bytes) return nullptr;
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kGranularity, size));
  if (data == nullptr) return nullptr;
  auto* const segment = new Segment{data, size, small, nullptr};
  segment->first = new Block{segment, data, size};
  stats_.reserved_bytes += static_cast<int64_t>(size);
  stats_.reserved_peak_bytes = std::max(stats_.reserved_peak_bytes, stats_.reserved_bytes);
  return segment->first;
}

void BlockCache::Split(Block* block, size_t size) {
  if (!Splits(block->size - size, block->segment->small)) return;
  auto* const rest = new Block{block->segment, block->data + size, block->size - size};
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) rest->after->before = rest;
  block->after = rest;
  block->size = size;
  PoolOf(*rest->segment)[{rest->size, rest->data}] = rest;
}

BlockCache::Block* BlockCache::Join(Block* block, Block* next) {
  block->size += next->size;
  block->after = next->after;
  if (block->after != nullptr) block->after->before = block;
  delete next;
  return block;
}

void BlockCache::Free(void* data) {
  if (data == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = used_.find(data);
  Block* block = found->second;
  used_.erase(found);
  stats_.allocated_bytes -= static_cast<int64_t>(block->size);
  stats_.requested_bytes -= static_cast<int64_t>(block->requested);
  block->used = false;
  Pool& pool = PoolOf(*block->segment);
  for (Block* const neighbour : {block->before, block->after}) {
    if (neighbour == nullptr || neighbour->used) continue;
    pool.erase({neighbour->size, neighbour->data});
    block = neighbour == block->after ? Join(block, neighbour) : Join(neighbour, block);
  }
  pool[{block->size, block->data}] = block;
}

void BlockCache::Empty() {
  const std::lock_guard<std::mutex> lock(mutex_);
  EmptyLocked();
}

void BlockCache::EmptyLocked() {
  synchronize_();
  for (Pool* const pool : {&small_, &large_}) {
    for (auto it = pool->begin(); it != pool->end();) {
      Block* const block = it->second;
      if (block->before != nullptr || block->after != nullptr) {
        ++it;
        continue;
      }
      it = pool->erase(it);
      stats_.reserved_bytes -= static_cast<int64_t>(block->segment->size);
      std::free(block->segment->data);
      delete block->segment;
      delete block;
    }
  }
}

void BlockCache::SetLimit(int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.limit_bytes = bytes;
}

void BlockCache::SetLiveLimit(int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.live_limit_bytes = bytes;
}

BlockCache::Stats BlockCache::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void BlockCache::ResetPeaks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.allocated_peak_bytes = stats_.allocated_bytes;
  stats_.requested_peak_bytes = stats_.requested_bytes;
  stats_.reserved_peak_bytes = stats_.reserved_bytes;
}

}  // namespace stowage

#include "client/torch/offload/host_pool.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"

namespace stowage {
namespace {

constexpr size_t kBlockAlignment = 64;
constexpr size_t kLeastSlab = size_t{16} << 20;

size_t RoundUp(size_t bytes) {
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

[[noreturn]] void ThrowNone(size_t bytes) {
  throw HostMemoryError(absl::StrCat("out of host memory: the system has no ", bytes, " bytes"));
}

}  // namespace

HostPool::HostPool(Bytes limit, Bytes at_once, Source source)
    : limit_(limit), source_(std::move(source)) {
  const size_t size = RoundUp(static_cast<size_t>(at_once.value()));
  if (size > 0 && !AddSlab(size)) ThrowNone(size);
}

HostPool::~HostPool() {
  for (const auto& [data, size] : slabs_) source_.free(data);
}

bool HostPool::AddSlab(size_t size) {
  auto* const data = static_cast<std::byte*>(source_.allocate(size));
  if (data == nullptr) return false;
  slabs_.emplace(data, size);
  slab_bytes_ += size;
  free_.emplace(data, size);
  return true;
}

// By as much as there is, so that slabs are few; by no more than is needed where the system has no more.
void HostPool::Grow(size_t size, size_t room) {
  const size_t wanted = std::min(room, std::max({size, slab_bytes_, kLeastSlab}));
  if (wanted > 0 && AddSlab(wanted)) return;
  const size_t least = std::min(size, room);
  if (least > 0 && !AddSlab(least)) ThrowNone(least);
}

// The first free piece that is large enough; null if there is none.
std::byte* HostPool::TakePiece(size_t size) {
  const auto piece = std::find_if(free_.begin(), free_.end(),
                                  [size](const auto& entry) { return entry.second >= size; });
  if (piece == free_.end()) return nullptr;
  const auto [data, piece_size] = *piece;
  free_.erase(piece);
  if (piece_size > size) free_.emplace(data + size, piece_size - size);
  return data;
}

// Of whatever is free, which is enough.
HostPool::Extents HostPool::TakePieces(size_t size) {
  Extents extents;
  while (size > 0) {
    const size_t piece = std::min(size, free_.begin()->second);
    extents.push_back({TakePiece(piece), piece});
    size -= piece;
  }
  return extents;
}

HostPool::Extents HostPool::Take(size_t size, size_t room) {
  if (std::byte* const data = TakePiece(size)) return {{data, size}};
  Grow(size, room);
  if (std::byte* const data = TakePiece(size)) return {{data, size}};
  return TakePieces(size);
}

HostPool::Block HostPool::Allocate(size_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > static_cast<size_t>((limit_ - held_).value())) {
    throw HostMemoryError(absl::StrCat("out of host memory: ", bytes, " bytes asked for, ",
                                       held_.value(), " in use, limit ", limit_.value()));
  }
  const size_t size = RoundUp(bytes);
  const size_t lost = lost_ + size - bytes;
  const size_t most = RoundUp(static_cast<size_t>(limit_.value()) + lost);
  Extents extents = Take(size, most - std::min(most, slab_bytes_));
  lost_ = lost;
  held_ += Bytes(static_cast<int64_t>(bytes));
  peak_ = std::max(peak_, held_);
  return {this, std::move(extents), bytes};
}

void HostPool::Release(const Extents& extents, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ -= Bytes(static_cast<int64_t>(bytes));
  lost_ -= RoundUp(bytes) - bytes;
  for (const Block::Extent& extent : extents) Free(extent.data, extent.bytes);
}

void HostPool::Free(std::byte* data, size_t size) {
  auto piece = free_.emplace(data, size).first;
  const auto merge = [this](auto left, auto right) {
    if (left->first + left->second != right->first || slabs_.count(right->first) > 0) return false;
    left->second += right->second;
    free_.erase(right);
    return true;
  };
  const auto next = std::next(piece);
  if (next != free_.end()) merge(piece, next);
  if (piece != free_.begin()) merge(std::prev(piece), piece);
}

Bytes HostPool::held() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_;
}

Bytes HostPool::peak() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_;
}

void HostPool::ResetPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  peak_ = held_;
}

}  // namespace stowage

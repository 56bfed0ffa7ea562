#include "client/torch/offload/host_pool.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"

namespace stowage {
namespace {

constexpr size_t kBlockAlignment = 64;

size_t RoundUp(size_t bytes) {
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

}  // namespace

HostPool::HostPool(Bytes limit, Bytes at_once, Source source)
    : limit_(limit), source_(std::move(source)) {
  if (at_once > Bytes(0)) AddSlab(RoundUp(static_cast<size_t>(at_once.value())));
}

HostPool::~HostPool() {
  for (const auto& [data, size] : slabs_) source_.free(data);
}

void HostPool::AddSlab(size_t size) {
  auto* const data = static_cast<std::byte*>(source_.allocate(size));
  if (data == nullptr) {
    throw HostMemoryError(absl::StrCat("out of host memory: the system has no ", size, " bytes"));
  }
  slabs_.emplace(data, size);
  free_.emplace(data, size);
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

HostPool::Block HostPool::Allocate(size_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > static_cast<size_t>((limit_ - held_).value())) {
    throw HostMemoryError(absl::StrCat("out of host memory: ", bytes, " bytes asked for, ",
                                       held_.value(), " in use, limit ", limit_.value()));
  }
  const size_t size = RoundUp(bytes);
  std::byte* data = TakePiece(size);
  if (data == nullptr) {
    AddSlab(size);
    data = TakePiece(size);
  }
  held_ += Bytes(static_cast<int64_t>(bytes));
  peak_ = std::max(peak_, held_);
  return {this, data, bytes};
}

void HostPool::Release(std::byte* data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ -= Bytes(static_cast<int64_t>(bytes));
  auto piece = free_.emplace(data, RoundUp(bytes)).first;
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

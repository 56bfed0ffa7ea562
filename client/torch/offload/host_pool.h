// Host memory for what leaves the device: taken from the system in slabs as it is needed, up to a limit, kept, and used again.
//
// A GPU's host memory comes from here, and not from LibTorch's caching host allocator: that rounds sizes up to powers of
// two and has no limit, while page-locked memory is what the rest of the machine lacks.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_POOL_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_POOL_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "solvers/model/units.h"

namespace stowage {

// Thread-safe. The pool outlives its blocks.
class HostPool {
 public:
  // Where the memory comes from: `allocate` returns null or throws if there is none, blocks are
  // aligned to 64 bytes.
  struct Source {
    std::function<void*(size_t)> allocate;
    std::function<void(void*)> free;
  };

  // Bytes of the pool for as long as the object lives: in one extent, or in several where what is free lies in pieces.
  class Block {
   public:
    struct Extent {
      std::byte* data;
      size_t bytes;
    };

    Block() = default;
    Block(Block&& other) noexcept { *this = std::move(other); }
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(extents_, other.extents_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->Release(extents_, bytes_);
    }

    size_t bytes() const { return bytes_; }
    const std::vector<Extent>& extents() const { return extents_; }
    // `visit(data, offset, bytes)` for each part in one piece of the bytes from `begin` on; `offset` counts from there.
    template <class Visit>
    void ForEachPiece(size_t begin, size_t bytes, const Visit& visit) const {
      size_t offset = 0;
      for (const Extent& extent : extents_) {
        if (begin >= extent.bytes) {
          begin -= extent.bytes;
          continue;
        }
        const size_t piece = std::min(extent.bytes - begin, bytes - offset);
        if (piece > 0) visit(extent.data + begin, offset, piece);
        offset += piece;
        begin = 0;
      }
    }

   private:
    friend class HostPool;
    Block(HostPool* pool, std::vector<Extent> extents, size_t bytes)
        : pool_(pool), extents_(std::move(extents)), bytes_(bytes) {}

    HostPool* pool_ = nullptr;
    std::vector<Extent> extents_;
    size_t bytes_ = 0;
  };

  // No more than `limit` bytes are in use at any time, and slabs take no more than that and what blocks lose as their sizes
  // are rounded up to 64 bytes.
  // `at_once` bytes are allocated here. Throws HostMemoryError.
  HostPool(Bytes limit, Bytes at_once, Source source);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // Throws HostMemoryError that names bytes asked for, in use and the limit. O(log blocks + free
  // pieces).
  Block Allocate(size_t bytes);

  // Bytes in use now, and most since the last ResetPeak.
  Bytes held() const;
  Bytes peak() const;
  void ResetPeak();
  Bytes limit() const { return limit_; }

 private:
  using Extents = std::vector<Block::Extent>;

  std::byte* TakePiece(size_t size);
  Extents TakePieces(size_t size);
  Extents Take(size_t size, size_t room);
  bool AddSlab(size_t size);
  void Grow(size_t size, size_t room);
  void Release(const Extents& extents, size_t bytes);
  void Free(std::byte* data, size_t size);

  const Bytes limit_;
  const Source source_;
  mutable std::mutex mutex_;
  Bytes held_;
  Bytes peak_;
  size_t lost_ = 0;  // by rounding, of the blocks there are
  size_t slab_bytes_ = 0;
  std::map<std::byte*, size_t> slabs_;  // all that was allocated
  std::map<std::byte*, size_t> free_;   // pieces of slabs; no two of one slab touch
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_POOL_H_

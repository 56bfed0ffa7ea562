// Host memory for what leaves the device: allocated once, in blocks that are used again.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_POOL_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_POOL_H_

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

  // Bytes of the pool for as long as the object lives.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept { *this = std::move(other); }
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(data_, other.data_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->Release(data_, bytes_);
    }

    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }

   private:
    friend class HostPool;
    Block(HostPool* pool, std::byte* data, size_t bytes)
        : pool_(pool), data_(data), bytes_(bytes) {}

    HostPool* pool_ = nullptr;
    std::byte* data_ = nullptr;
    size_t bytes_ = 0;
  };

  // No more than `limit` bytes are in use at any time. `at_once` bytes are allocated here; only where
  // what is free of them lies in pieces that are too small is more allocated, and kept as well.
  // Throws HostMemoryError.
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

 private:
  std::byte* TakePiece(size_t size);
  void AddSlab(size_t size);
  void Release(std::byte* data, size_t bytes);

  const Bytes limit_;
  const Source source_;
  mutable std::mutex mutex_;
  Bytes held_;
  Bytes peak_;
  std::map<std::byte*, size_t> slabs_;  // all that was allocated
  std::map<std::byte*, size_t> free_;   // pieces of slabs; no two of one slab touch
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_POOL_H_

// Memory of the test device: blocks that are cut and kept as CUDA's caching allocator of LibTorch cuts and keeps them.
//
// Sizes are rounded up to 512 bytes. Small blocks (up to 1 MiB) come from segments of 2 MiB, larger ones from segments of
// 20 MiB (below 10 MiB) or of their own size, rounded up to 2 MiB. The rest of a segment is split off where it is 512
// bytes (small), or more than 1 MiB (large): else it stays with the block and counts as allocated. What is freed is kept.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_BLOCK_CACHE_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_BLOCK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace stowage {

class BlockCache {
 public:
  static constexpr size_t kGranularity = 512;

  struct Stats {
    int64_t allocated_bytes = 0;  // blocks in use
    int64_t allocated_peak_bytes = 0;
    int64_t requested_bytes = 0;  // what was asked for of them
    int64_t requested_peak_bytes = 0;
    int64_t reserved_bytes = 0;  // segments
    int64_t reserved_peak_bytes = 0;
    int64_t retries = 0;  // allocations that had to give back what was kept
    int64_t refusals = 0;
    int64_t limit_bytes = INT64_MAX;       // of what may be reserved
    int64_t live_limit_bytes = INT64_MAX;  // of blocks in use
  };

  // `synchronize` waits for the work that uses blocks, which is asked before memory goes back to the system.
  explicit BlockCache(std::function<void()> synchronize) : synchronize_(std::move(synchronize)) {}
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Null where the limit is reached, also without all that is kept. 0 bytes give null, too.
  void* Allocate(size_t bytes);
  // Only what Allocate returned.
  void Free(void* data);

  // Gives back segments of which nothing is in use.
  void Empty();
  // Most that segments may take.
  void SetLimit(int64_t bytes);
  // Most that blocks in use may take: of a device that is full at any point one likes.
  void SetLiveLimit(int64_t bytes);

  Stats stats() const;
  void ResetPeaks();

 private:
  struct Segment;
  struct Block {
    Segment* segment;
    std::byte* data;
    size_t size;
    size_t requested = 0;
    bool used = false;
    Block* before = nullptr;
    Block* after = nullptr;
  };
  struct Segment {
    std::byte* data;
    size_t size;
    bool small;
    Block* first;
  };
  // The smallest that fits, then the lowest.
  using Order = std::pair<size_t, std::byte*>;
  using Pool = std::map<Order, Block*>;

  Pool& PoolOf(const Segment& segment) { return segment.small ? small_ : large_; }
  Block* Take(size_t size, bool small);
  Block* TakeFree(size_t size, bool small);
  Block* NewSegment(size_t size, bool small);
  void Split(Block* block, size_t size);
  Block* Join(Block* block, Block* next);
  void EmptyLocked();

  const std::function<void()> synchronize_;
  mutable std::mutex mutex_;
  Pool small_, large_;  // free blocks
  std::unordered_map<const void*, Block*> used_;
  Stats stats_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_BLOCK_CACHE_H_

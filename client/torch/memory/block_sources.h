// The sources that an allocator shows its blocks to, while there are any: what the allocators of both
// devices share. Thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_BLOCK_SOURCES_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_BLOCK_SOURCES_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/torch/memory/block_source.h"

namespace stowage {

class BlockSources {
 public:
  void Add(std::shared_ptr<BlockSource> source);
  // Lets go of sources that are done.
  void DropDone();
  // Takes no lock: allocators ask for every block.
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // Shows a block that goes. Its size, if one of them served it; one that is done by that is let go of. O(sources).
  std::optional<size_t> Free(const void* block);

 private:
  std::atomic<size_t> count_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<BlockSource>> sources_;  // guarded by mutex_
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_BLOCK_SOURCES_H_

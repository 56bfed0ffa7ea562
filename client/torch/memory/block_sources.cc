#include "client/torch/memory/block_sources.h"

#include <algorithm>
#include <utility>

namespace stowage {

void BlockSources::Add(std::shared_ptr<BlockSource> source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sources_.push_back(std::move(source));
  count_.store(sources_.size(), std::memory_order_release);
}

void BlockSources::DropDone() {
  std::vector<std::shared_ptr<BlockSource>> done;  // destroyed when the lock is gone
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto first_done = std::stable_partition(sources_.begin(), sources_.end(),
                                                [](const auto& source) { return !source->done(); });
  done.assign(first_done, sources_.end());
  sources_.erase(first_done, sources_.end());
  count_.store(sources_.size(), std::memory_order_release);
}

std::optional<size_t> BlockSources::Free(const void* block) {
  std::optional<size_t> size;
  bool done = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < sources_.size() && !size; ++i) {
      size = sources_[i]->Free(block);
      done = size && sources_[i]->done();
    }
  }
  if (done) DropDone();
  return size;
}

}  // namespace stowage

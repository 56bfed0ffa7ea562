#include "client/torch/memory/region_count.h"

namespace stowage {

// Its block is not counted, not even for a moment, or it would be the peak.
void* RegionCount::Reserve(Bytes bytes) {
  memory_->EmptyCache();
  count_->Freed(bytes);
  void* const block = memory_->Allocate(bytes);
  if (block == nullptr) {
    count_->Allocated(bytes);
    return nullptr;
  }
  unserved_ += count_->Block(bytes).value();
  return block;
}

void RegionCount::Unreserve(void* block, Bytes bytes) {
  memory_->Free(block);
  count_->Allocated(bytes);
  unserved_ -= count_->Block(bytes).value();
}

void RegionCount::Served(Bytes bytes) {
  count_->Allocated(bytes);
  unserved_ -= count_->Block(bytes).value();
}

void RegionCount::Returned(Bytes bytes) {
  count_->Freed(bytes);
  unserved_ += count_->Block(bytes).value();
}

}  // namespace stowage

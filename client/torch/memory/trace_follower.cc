#include "client/torch/memory/trace_follower.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stowage {
namespace {

// How many planned blocks a step may leave out before what comes next is not recognised.
constexpr size_t kLookAhead = 16;

}  // namespace

void TraceFollower::Restart(std::shared_ptr<const ArenaPlan> plan) {
  plan_ = std::move(plan);
  next_ = 0;
  counts_ = {};
}

const PlannedBlock* TraceFollower::Match(int64_t size) {
  const size_t end = std::min(plan_->blocks.size(), next_ + kLookAhead);
  for (size_t i = next_; i < end; ++i) {
    if (plan_->blocks[i].size != size) continue;
    next_ = i + 1;
    return &plan_->blocks[i];
  }
  return nullptr;
}

std::optional<int64_t> TraceFollower::Allocate(int64_t size) {
  const PlannedBlock* block = Match(size);
  if (block != nullptr && block->offset == PlannedBlock::kOutside) {
    ++counts_.outside;
    return std::nullopt;
  }
  if (block == nullptr || !IsFree(block->offset, size)) {
    ++counts_.departed;
    return std::nullopt;
  }
  ++counts_.served;
  in_use_.emplace(block->offset, size);
  return block->offset;
}

int64_t TraceFollower::Free(int64_t offset) {
  const auto it = in_use_.find(offset);
  const int64_t size = it->second;
  in_use_.erase(it);
  return size;
}

bool TraceFollower::IsFree(int64_t offset, int64_t size) const {
  const auto after = in_use_.lower_bound(offset);
  if (after != in_use_.end() && after->first < offset + size) return false;
  if (after == in_use_.begin()) return true;
  const auto before = std::prev(after);
  return before->first + before->second <= offset;
}

}  // namespace stowage

#include "client/torch/memory/allocation_trace.h"

#include <utility>

#include "solvers/placement/placement.h"

namespace stowage {

void AllocationTrace::Allocate(const void* block, int64_t size) {
  live_[block] = lives_.size();
  lives_.push_back({Bytes(size), moment_++, -1});
}

void AllocationTrace::Free(const void* block) {
  const auto it = live_.find(block);
  if (it == live_.end()) return;
  lives_[it->second].end = moment_++;
  live_.erase(it);
}

absl::StatusOr<ArenaPlan> AllocationTrace::Plan(Bytes alignment, int64_t effort) const {
  ArenaPlan plan;
  std::vector<BlockLife> inside;
  std::vector<size_t> numbers;
  for (const BlockLife& life : lives_) {
    if (life.end >= 0) {
      inside.push_back(life);
      numbers.push_back(plan.blocks.size());
    }
    plan.blocks.push_back({life.size.value(), PlannedBlock::kOutside});
  }
  PlacementOptions options;
  options.alignment = alignment;
  options.effort = effort;
  const absl::StatusOr<Placement> placement = PlaceBlocks(inside, options);
  if (!placement.ok()) return placement.status();
  for (size_t i = 0; i < numbers.size(); ++i) {
    plan.blocks[numbers[i]].offset = placement->offsets[i].value();
  }
  plan.extent = placement->extent;
  plan.live_peak = placement->live_peak;
  return plan;
}

}  // namespace stowage

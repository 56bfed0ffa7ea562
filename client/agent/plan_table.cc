#include "client/agent/plan_table.h"

#include <algorithm>

namespace stowage {

PlannedShape* PlanTable::Find(const BatchSignature& signature) {
  const auto found = std::find_if(
      shapes_.begin(), shapes_.end(),
      [&signature](const PlannedShape& shape) { return shape.signature == signature; });
  if (found == shapes_.end()) return nullptr;
  shapes_.splice(shapes_.begin(), shapes_, found);
  return &shapes_.front();
}

PlannedShape* PlanTable::FindOrAdd(const BatchSignature& signature) {
  if (PlannedShape* known = Find(signature)) return known;
  shapes_.emplace_front(signature, watched_);
  if (shapes_.size() > capacity_) {
    shapes_.pop_back();
    ++evicted_;
  }
  return &shapes_.front();
}

PlannedShape* PlanTable::Larger(const BatchSignature& signature, bool fails) {
  PlannedShape* best = nullptr;
  for (PlannedShape& shape : shapes_) {
    if (shape.step == nullptr || shape.fails() != fails || shape.signature == signature ||
        !signature.FitsInto(shape.signature)) {
      continue;
    }
    const auto peak = [](const PlannedShape* of) {
      return of->adopted->plan.bounds.store_all_peak;
    };
    if (best == nullptr || peak(&shape) < peak(best)) best = &shape;
  }
  return best;
}

std::vector<const PendingReplan*> PlanTable::Pending() const {
  std::vector<const PendingReplan*> pending;
  for (const PlannedShape& shape : shapes_) {
    if (shape.pending) pending.push_back(&*shape.pending);
  }
  return pending;
}

std::vector<PlannedShape*> PlanTable::BeyondHostMemory(Bytes limit) {
  std::vector<PlannedShape*> beyond;
  for (PlannedShape& shape : shapes_) {
    if (shape.step == nullptr || shape.fails()) continue;
    if (shape.adopted->plan.prediction.host_peak > limit) beyond.push_back(&shape);
  }
  return beyond;
}

}  // namespace stowage

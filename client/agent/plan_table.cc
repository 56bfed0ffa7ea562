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

PlannedShape* PlanTable::Larger(const BatchSignature& signature) {
  PlannedShape* best = nullptr;
  for (PlannedShape& shape : shapes_) {
    if (shape.step == nullptr || shape.fails() || shape.signature == signature ||
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

const PendingReplan* PlanTable::MostPressing() const {
  const PendingReplan* most = nullptr;
  for (const PlannedShape& shape : shapes_) {
    if (shape.pending && (most == nullptr || shape.pending->reason > most->reason)) {
      most = &*shape.pending;
    }
  }
  return most;
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

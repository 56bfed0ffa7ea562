#include "solvers/chain/persistent_slots.h"

#include <algorithm>

namespace stowage {

PersistentSlots::PersistentSlots(const PersistentSpace& space, int64_t slot_count)
    : stages(space.last()), slots(static_cast<int32_t>(slot_count)) {
  const auto cut = [slot_count](int64_t size) {
    return static_cast<int32_t>(std::min(size, slot_count + 1));
  };
  for (int s = 1; s <= stages; ++s) {
    input.push_back(cut(space.activation(s - 1)));
    saved.push_back(cut(space.saved(s)));
    gradient.push_back(cut(space.gradient(s)));
    saving_need.push_back(cut(space.SavingNeed(s)));
    backward_need.push_back(cut(space.BackwardNeed(s)));
  }
  FillRunNeeds(space);
}

void PersistentSlots::FillRunNeeds(const PersistentSpace& space) {
  for (int s = 0; s < stages; ++s) {
    run_begin.push_back(run_need.size() - static_cast<size_t>(s));
    int64_t need = space.FirstRunNeed(s + 1);
    run_need.push_back(0);  // keeps index s' = s in range
    for (int split = s + 1; split < stages; ++split) {
      if (split > s + 1) need = space.ExtendRunNeed(need, split);
      const bool allowed = space.Recomputable(s + 1, split);
      run_need.push_back(allowed ? static_cast<int32_t>(std::min<int64_t>(need, slots + 1))
                                 : slots + 1);
    }
  }
}

absl::StatusOr<LiveSlots> LiveSlots::Compute(const PersistentSlots& slots, const LeastMemory& least,
                                             StopPoll* poll) {
  LiveSlots live(slots.stages);
  for (int t = 0; t < slots.stages; ++t) {
    absl::Status status = poll->Spend(int64_t{16} * (t + 1));
    if (!status.ok()) return status;
    const size_t ti = static_cast<size_t>(t);
    int32_t inner = 0;
    for (int s = t; s >= 0; --s) {
      const size_t i = static_cast<size_t>(s);
      const int32_t need =
          std::max(slots.gradient[ti] + slots.saving_need[i], slots.backward_need[i]);
      inner = std::min(std::max(need, slots.saved[i] + inner), slots.slots + 1);
      const int64_t memory = least.table(s + 1, t + 1).memory;
      live.table_(s + 1, t + 1) = {static_cast<int32_t>(std::min<int64_t>(memory, slots.slots + 1)),
                                   inner};
    }
  }
  return live;
}

}  // namespace stowage

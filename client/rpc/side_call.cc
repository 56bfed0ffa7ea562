#include "client/rpc/side_call.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

ProgressCallback SideCallWait::Listener() {
  if (!progress_) return {};
  return [this](const PlanProgress& so_far) { Hear(so_far); };
}

ProgressCallback SideCallWait::Teller() {
  if (!progress_) return {};
  return [this](const PlanProgress& so_far) {
    Hear(so_far);
    std::unique_lock<std::mutex> lock(mutex_);
    TellAll(&lock);
  };
}

void SideCallWait::Hear(const PlanProgress& so_far) {
  constexpr size_t kMostHeard =
      64;  // of a callback that is slower than those beside, the latest is enough
  const std::lock_guard<std::mutex> lock(mutex_);
  share_ = std::max(share_, so_far.share);
  const Plan* const best = so_far.best;
  if (best != nullptr &&
      (best_ == nullptr || best->prediction.makespan < best_->prediction.makespan)) {
    best_ = std::make_shared<const Plan>(*best);
  }
  if (heard_.size() == kMostHeard) heard_.pop_back();
  heard_.push_back({share_, best_});
  changed_.notify_all();
}

void SideCallWait::TellAll(std::unique_lock<std::mutex>* lock) {
  const std::deque<Heard> heard = std::exchange(heard_, {});
  lock->unlock();
  for (const Heard& next : heard) progress_({next.share, next.best.get()});
  lock->lock();
}

}  // namespace stowage

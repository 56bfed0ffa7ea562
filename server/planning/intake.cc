#include "server/planning/intake.h"

#include <utility>

#include "server/planning/planning_error.h"

namespace stowage {

Intake::Intake(int threads, size_t queue_limit) : queue_limit_(queue_limit) {
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

Intake::~Intake() { Stop(); }

bool Intake::TrySubmit(IntakeTask task, IntakeLane lane) {
  std::lock_guard<std::mutex> lock(mutex_);
  Queue& queue = lanes_[static_cast<size_t>(lane)];
  if (stopped_ || queue.size() >= queue_limit_) return false;
  queue.push_back(std::move(task));
  wake_.notify_one();
  return true;
}

void Intake::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  std::lock_guard<std::mutex> lock(join_mutex_);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

Intake::Queue* Intake::NextLocked() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Queue& lane = lanes_[(turn_ + i) % lanes_.size()];
    if (!lane.empty()) return &lane;
  }
  return nullptr;
}

void Intake::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || NextLocked() != nullptr; });
    Queue* const lane = NextLocked();
    if (lane == nullptr) return;
    IntakeTask task = std::move(lane->front());
    lane->pop_front();
    turn_ = lane == &lanes_[0] ? 1 : 0;
    const bool stopped = stopped_;
    lock.unlock();
    task(stopped ? DrainingError() : absl::OkStatus());
    task = nullptr;  // what it holds may not die under the lock
    lock.lock();
  }
}

}  // namespace stowage

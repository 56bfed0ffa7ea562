#include "server/runtime/deadline_timer.h"

namespace stowage {

DeadlineTimer::DeadlineTimer() : thread_([this] { Run(); }) {}

DeadlineTimer::~DeadlineTimer() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DeadlineTimer::Schedule(uint64_t id, Clock::time_point when, std::function<void()> function) {
  std::lock_guard<std::mutex> lock(mutex_);
  CancelLocked(id);
  pending_.emplace(Position(when, id), std::move(function));
  when_.emplace(id, when);
  if (pending_.begin()->first.second == id) wake_.notify_one();
}

void DeadlineTimer::Cancel(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  CancelLocked(id);
}

void DeadlineTimer::CancelLocked(uint64_t id) {
  const auto found = when_.find(id);
  if (found == when_.end()) return;
  pending_.erase(Position(found->second, id));
  when_.erase(found);
}

void DeadlineTimer::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (pending_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto first = pending_.begin();
    if (Clock::now() < first->first.first) {
      const Clock::time_point when = first->first.first;
      wake_.wait_until(lock, when);
      continue;
    }
    std::function<void()> function = std::move(first->second);
    when_.erase(first->first.second);
    pending_.erase(first);
    lock.unlock();
    function();
    function = nullptr;
    lock.lock();
  }
}

}  // namespace stowage

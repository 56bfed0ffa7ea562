#include "server/planning/intake.h"

#include <utility>

namespace stowage {

Intake::Intake(int threads, size_t queue_limit) : queue_limit_(queue_limit) {
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

Intake::~Intake() { Stop(); }

bool Intake::TrySubmit(std::function<void()> task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || queue_.size() >= queue_limit_) return false;
  queue_.push_back(std::move(task));
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

void Intake::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds may not die under the lock
    lock.lock();
  }
}

}  // namespace stowage

#include "server/planning/solver_pool.h"

#include <algorithm>

namespace stowage {

SolverPool::SolverPool(int threads, size_t queue_limit, ServerMetrics* metrics)
    : thread_count_(threads), queue_limit_(queue_limit), metrics_(metrics) {
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

SolverPool::~SolverPool() { Stop(); }

bool SolverPool::TrySubmit(uint64_t id, std::function<void()> job) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || queue_.size() >= queue_limit_) return false;
  queue_.emplace_back(id, std::move(job));
  metrics_->QueueDepth(static_cast<int64_t>(queue_.size()));
  wake_.notify_one();
  return true;
}

void SolverPool::Withdraw(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.erase(std::remove_if(queue_.begin(), queue_.end(),
                              [id](const auto& queued) { return queued.first == id; }),
               queue_.end());
  metrics_->QueueDepth(static_cast<int64_t>(queue_.size()));
}

void SolverPool::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    queue_.clear();
    metrics_->QueueDepth(0);
  }
  wake_.notify_all();
  std::lock_guard<std::mutex> lock(join_mutex_);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void SolverPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (stopped_) return;
    std::function<void()> job = std::move(queue_.front().second);
    queue_.pop_front();
    metrics_->QueueDepth(static_cast<int64_t>(queue_.size()));
    lock.unlock();
    job();
    job = nullptr;  // what it holds may not die under the lock
    lock.lock();
  }
}

}  // namespace stowage

// A fixed number of threads behind a bounded queue.
#ifndef STOWAGE_SERVER_PLANNING_SOLVER_POOL_H_
#define STOWAGE_SERVER_PLANNING_SOLVER_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "server/metrics/server_metrics.h"

namespace stowage {

// Thread-safe. Jobs run in the order they were submitted, and call nothing of this class but
// TrySubmit and Withdraw.
class SolverPool {
 public:
  // `threads` and `queue_limit` >= 1; `metrics` outlives this object.
  SolverPool(int threads, size_t queue_limit, ServerMetrics* metrics);
  ~SolverPool();

  // False when the queue is full or the pool has stopped.
  bool TrySubmit(uint64_t id, std::function<void()> job);
  // Takes a job that has not started out of the queue.
  void Withdraw(uint64_t id);
  // Drops what is queued, waits for what runs. Idempotent.
  void Stop();

  size_t queue_limit() const { return queue_limit_; }
  int threads() const { return thread_count_; }

 private:
  void Work();

  const int thread_count_;
  const size_t queue_limit_;
  ServerMetrics* const metrics_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<uint64_t, std::function<void()>>> queue_;
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_SOLVER_POOL_H_

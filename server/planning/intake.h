// Threads for what gRPC's own must not do: convert large requests, wait for a slow store.
#ifndef STOWAGE_SERVER_PLANNING_INTAKE_H_
#define STOWAGE_SERVER_PLANNING_INTAKE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stowage {

// Thread-safe. Tasks start in the order they were submitted.
class Intake {
 public:
  // Both >= 1.
  Intake(int threads, size_t queue_limit);
  ~Intake();

  // False when the queue is full or the intake has stopped.
  bool TrySubmit(std::function<void()> task);
  // Refuses more, runs what is queued (every task answers somebody) and waits for it. Idempotent;
  // not to be called by a task.
  void Stop();

  size_t queue_limit() const { return queue_limit_; }

 private:
  void Work();

  const size_t queue_limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_INTAKE_H_

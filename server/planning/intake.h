// Threads for what gRPC's own must not do: convert large requests, wait for a slow store.
//
// What is done for calls and what is only news for those that watch wait in lanes of their own, which
// have turns: however many watch, calls go on, and the other way round.
#ifndef STOWAGE_SERVER_PLANNING_INTAKE_H_
#define STOWAGE_SERVER_PLANNING_INTAKE_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

enum class IntakeLane { kCalls, kNews };

// Called once: with OK to do its work, or with why it is not to be done, for whoever waits for it.
using IntakeTask = std::function<void(const absl::Status& admitted)>;

// Thread-safe. Tasks of a lane start in the order they were submitted.
class Intake {
 public:
  // Both >= 1; the limit is that of each lane.
  Intake(int threads, size_t queue_limit);
  ~Intake();

  // False when the lane is full or the intake has stopped.
  bool TrySubmit(IntakeTask task, IntakeLane lane = IntakeLane::kCalls);
  // Refuses more, tells what is queued UNAVAILABLE (DRAINING) and waits for it. Idempotent; not to be
  // called by a task.
  void Stop();

  size_t queue_limit() const { return queue_limit_; }

 private:
  using Queue = std::deque<IntakeTask>;

  // The lane whose turn it is; null when nothing waits.
  Queue* NextLocked();
  void Work();

  const size_t queue_limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::array<Queue, 2> lanes_;
  size_t turn_ = 0;
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_INTAKE_H_

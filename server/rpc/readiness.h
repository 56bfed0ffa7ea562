// Whether the server should be sent new work: no while it drains, and no from when its queue has
// been full for a second until it has had room for a second, so that a probe sees no flutter.
#ifndef STOWAGE_SERVER_RPC_READINESS_H_
#define STOWAGE_SERVER_RPC_READINESS_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace stowage {

// The rule, by itself. Not thread-safe.
class ReadinessRule {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{1000};

  // What holds at `now`, where the queue is full or not.
  bool Next(bool full, Clock::time_point now);

 private:
  bool ready_ = true;
  bool was_full_ = false;
  Clock::time_point since_;  // when the queue became what it is
};

// Looks ten times a second, on a thread of its own.
class ReadinessWatch {
 public:
  // `set` is called when the answer changes, the first time from yes to no.
  ReadinessWatch(std::function<bool()> full, std::function<void(bool ready)> set);
  ~ReadinessWatch();

  // No call of `set` begins after it. Idempotent.
  void Stop();

 private:
  void Watch();

  const std::function<bool()> full_;
  const std::function<void(bool)> set_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_READINESS_H_

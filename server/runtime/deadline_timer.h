// Calls functions at points in time, on one thread of its own.
#ifndef STOWAGE_SERVER_RUNTIME_DEADLINE_TIMER_H_
#define STOWAGE_SERVER_RUNTIME_DEADLINE_TIMER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace stowage {

// Thread-safe. Functions are called without a lock held and may call back.
class DeadlineTimer {
 public:
  using Clock = std::chrono::steady_clock;

  DeadlineTimer();
  ~DeadlineTimer();

  // At most one function per id: a second one replaces the first.
  void Schedule(uint64_t id, Clock::time_point when, std::function<void()> function);
  // No effect when there is none, or when it is being called.
  void Cancel(uint64_t id);

 private:
  using Position = std::pair<Clock::time_point, uint64_t>;

  void CancelLocked(uint64_t id);
  void Run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Position, std::function<void()>> pending_;
  std::unordered_map<uint64_t, Clock::time_point> when_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_DEADLINE_TIMER_H_

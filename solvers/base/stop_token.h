// How a running solve is told to stop, and how its loops hear of it.
#ifndef STOWAGE_SOLVERS_BASE_STOP_TOKEN_H_
#define STOWAGE_SOLVERS_BASE_STOP_TOKEN_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"

namespace stowage {

// Tells a running solve to stop: by a flag that any thread may set, by a deadline, or both. The
// deadline may move while the solve runs, to a later time only.
// Thread-safe.
class StopToken {
 public:
  using Clock = std::chrono::steady_clock;

  StopToken() = default;  // without a deadline
  explicit StopToken(Clock::time_point deadline) : deadline_(deadline.time_since_epoch().count()) {}

  void RequestStop() { stopped_.store(true, std::memory_order_relaxed); }
  // No effect where the deadline is later already, or there is none.
  void ExtendDeadline(Clock::time_point deadline);
  // Has the deadline pass at the `look`-th look of a solve at this token (the first is 1), and for all later ones. A
  // solve on one thread then ends at the same step on every machine.
  void PassDeadlineAtLook(int64_t look) { last_look_.store(look, std::memory_order_relaxed); }

  // A look.
  bool deadline_passed() const;
  bool stop_requested() const { return stopped_.load(std::memory_order_relaxed); }
  // OK, CANCELLED or DEADLINE_EXCEEDED. A look. Costs one clock read: solvers call it every few
  // milliseconds.
  absl::Status Check() const;
  // How often solves have looked at it so far.
  int64_t looks() const { return looks_.load(std::memory_order_relaxed); }

 private:
  static constexpr Clock::rep kNone = std::numeric_limits<Clock::rep>::max();

  std::atomic<bool> stopped_{false};
  std::atomic<Clock::rep> deadline_{kNone};
  std::atomic<int64_t> last_look_{std::numeric_limits<int64_t>::max()};
  mutable std::atomic<int64_t> looks_{0};
};

// Checks a token often enough (every few milliseconds) and no oftener: solvers report the steps of
// their innermost loops. Not thread-safe.
class StopPoll {
 public:
  // A step is some nanoseconds of work.
  static constexpr int64_t kStepsPerCheck = 1 << 20;

  explicit StopPoll(const StopToken* stop) : stop_(stop) {}
  absl::Status Spend(int64_t steps) {
    spent_ += steps;
    if (spent_ < kStepsPerCheck) return absl::OkStatus();
    spent_ = 0;
    return stop_ == nullptr ? absl::OkStatus() : stop_->Check();
  }

 private:
  const StopToken* stop_;
  int64_t spent_ = kStepsPerCheck;  // a solve that is stopped already does nothing
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_STOP_TOKEN_H_

#include "solvers/base/stop_token.h"

namespace stowage {

void StopToken::ExtendDeadline(Clock::time_point deadline) {
  const Clock::rep later = deadline.time_since_epoch().count();
  Clock::rep now = deadline_.load(std::memory_order_relaxed);
  while (now < later && !deadline_.compare_exchange_weak(now, later, std::memory_order_relaxed)) {
  }
}

bool StopToken::deadline_passed() const {
  const int64_t look = looks_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (look >= last_look_.load(std::memory_order_relaxed)) return true;
  const Clock::rep deadline = deadline_.load(std::memory_order_relaxed);
  return deadline != kNone && Clock::now().time_since_epoch().count() >= deadline;
}

absl::Status StopToken::Check() const {
  const bool late = deadline_passed();
  if (stop_requested()) return absl::CancelledError("the solve was cancelled");
  if (late) return absl::DeadlineExceededError("the solve reached its deadline");
  return absl::OkStatus();
}

}  // namespace stowage

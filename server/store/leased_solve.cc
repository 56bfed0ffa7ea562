#include "server/store/leased_solve.h"

#include <algorithm>
#include <utility>

namespace stowage {

LeasedSolve::LeasedSolve(const LeasedSolveOptions& options, SolveLease* lease,
                         ServerMetrics* metrics)
    : options_(options), lease_(lease), metrics_(metrics) {}

Turn LeasedSolve::Take(const SolveQuestion& question, const std::function<bool()>& look,
                       LeaseWait* wait) {
  LeaseAnswer answer = lease_->Acquire(question);
  if (answer.state == LeaseState::kAlone) return Turn{SolveTurn::kSolve, nullptr};
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  const bool failed = answer.state == LeaseState::kFailed;
  const bool was_taken = wait->taken != Clock::time_point();
  if (failed && !(was_taken && now < wait->taken + options_.lease_time)) {
    metrics_->Leased(LeaseOutcome::kFailed);
    return Turn{SolveTurn::kSolve, nullptr};
  }
  if (look()) {
    metrics_->Leased(LeaseOutcome::kWaited);
    return Turn{SolveTurn::kFound, nullptr};
  }
  if (answer.state == LeaseState::kGranted) {
    metrics_->Leased(LeaseOutcome::kGranted);
    *wait = LeaseWait();
    return Turn{SolveTurn::kSolve, std::move(answer.held)};
  }
  if (!failed) wait->taken = now;
  if (wait->until == Clock::time_point()) {
    wait->until = now + options_.longest_wait;
    wait->pause = options_.first_pause;
  } else {
    wait->pause = std::min(2 * wait->pause, options_.longest_pause);
  }
  if (now < wait->until) return Turn{SolveTurn::kWait, nullptr};
  metrics_->Leased(LeaseOutcome::kExpired);
  return Turn{SolveTurn::kSolve, nullptr};
}

bool LeasedSolve::Found(LeaseWait* wait) {
  if (wait->until == std::chrono::steady_clock::time_point()) return false;
  *wait = LeaseWait();
  metrics_->Leased(LeaseOutcome::kWaited);
  return true;
}

Turn LeasedSolve::TryNow(const SolveQuestion& question, const std::function<bool()>& look) {
  LeaseAnswer answer = lease_->Acquire(question);
  if (answer.state == LeaseState::kAlone) return Turn{SolveTurn::kSolve, nullptr};
  if (answer.state == LeaseState::kTaken) return Turn{SolveTurn::kFound, nullptr};
  const bool granted = answer.state == LeaseState::kGranted;
  if (granted && look()) return Turn{SolveTurn::kFound, nullptr};
  metrics_->Leased(granted ? LeaseOutcome::kGranted : LeaseOutcome::kFailed);
  return Turn{SolveTurn::kSolve, std::move(answer.held)};
}

}  // namespace stowage

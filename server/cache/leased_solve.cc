#include "server/cache/leased_solve.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;

bool ToldToStop(const StopToken* stop) { return stop != nullptr && !stop->Check().ok(); }

// In steps, so that a stop is heard within 20 ms.
void Pause(std::chrono::nanoseconds time, const StopToken* stop) {
  constexpr std::chrono::nanoseconds kStep = std::chrono::milliseconds(20);
  const Clock::time_point end = Clock::now() + time;
  for (Clock::time_point now = Clock::now(); now < end && !ToldToStop(stop); now = Clock::now()) {
    std::this_thread::sleep_for(std::min(kStep, std::chrono::nanoseconds(end - now)));
  }
}

// A thread that waits, or may not.
class Waiting {
 public:
  Waiting(std::atomic<int>* count, int most) : count_(count), may_wait_(++*count <= most) {}
  ~Waiting() { --*count_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  bool may_wait() const { return may_wait_; }

 private:
  std::atomic<int>* const count_;
  const bool may_wait_;
};

}  // namespace

LeasedSolve::LeasedSolve(const LeasedSolveOptions& options, SolveLease* lease,
                         ServerMetrics* metrics)
    : options_(options), lease_(lease), metrics_(metrics) {}

Turn LeasedSolve::Await(const SolveQuestion& question, const std::function<bool()>& look,
                        const StopToken* stop) {
  const Clock::time_point patience = Clock::now() + options_.longest_wait;
  std::chrono::nanoseconds pause = options_.first_pause;
  std::optional<Waiting> waiting;
  while (true) {
    LeaseAnswer answer = lease_->Acquire(question);
    if (answer.state == LeaseState::kAlone) return Turn{SolveTurn::kSolve, nullptr};
    if (answer.state == LeaseState::kFailed) {
      metrics_->Leased(LeaseOutcome::kFailed);
      return Turn{SolveTurn::kSolve, nullptr};
    }
    if (look()) {
      metrics_->Leased(LeaseOutcome::kWaited);
      return Turn{SolveTurn::kFound, nullptr};
    }
    if (answer.state == LeaseState::kGranted) {
      metrics_->Leased(LeaseOutcome::kGranted);
      return Turn{SolveTurn::kSolve, std::move(answer.held)};
    }
    if (!waiting) waiting.emplace(&waiting_, options_.most_waiting);
    if (!waiting->may_wait()) {
      metrics_->Leased(LeaseOutcome::kCrowded);
      return Turn{SolveTurn::kSolve, nullptr};
    }
    if (Clock::now() >= patience) {
      metrics_->Leased(LeaseOutcome::kExpired);
      return Turn{SolveTurn::kSolve, nullptr};
    }
    Pause(pause, stop);
    if (ToldToStop(stop)) return Turn{SolveTurn::kStopped, nullptr};
    pause = std::min(2 * pause, options_.longest_pause);
  }
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

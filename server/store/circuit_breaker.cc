#include "server/store/circuit_breaker.h"

#include <algorithm>

namespace stowage {

CircuitBreaker::CircuitBreaker(const BreakerOptions& options, uint64_t seed)
    : options_(options), random_(seed), pause_(options.first_pause) {}

CircuitBreaker::Pass CircuitBreaker::Admit(Clock::time_point now) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!open_) return Pass::kYes;
  if (probing_ || now < until_) return Pass::kNo;
  probing_ = true;
  return Pass::kProbe;
}

void CircuitBreaker::Succeeded() {
  std::lock_guard<std::mutex> lock(mutex_);
  failures_ = 0;
  // A call from before the breaker opened says no more than that it was slow: the probe decides.
  if (open_ && !probing_) return;
  open_ = false;
  probing_ = false;
  pause_ = options_.first_pause;
}

void CircuitBreaker::Failed(Clock::time_point now) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (probing_) {
    probing_ = false;
    pause_ = std::min(2 * pause_, options_.longest_pause);
    return Open(now);
  }
  if (!open_ && ++failures_ >= options_.failures) Open(now);
}

void CircuitBreaker::NotTried(Pass pass) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pass == Pass::kProbe) probing_ = false;
}

bool CircuitBreaker::open() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return open_;
}

void CircuitBreaker::Open(Clock::time_point now) {
  open_ = true;
  failures_ = 0;
  const auto half = pause_.count() / 2;
  until_ = now + std::chrono::nanoseconds(
                     half + static_cast<int64_t>(random_() % static_cast<uint64_t>(half + 1)));
}

}  // namespace stowage

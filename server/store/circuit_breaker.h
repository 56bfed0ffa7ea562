// Leaves alone what keeps failing, so that a dead neighbour costs its time-out once and not once
// per request.
//
// Closed: all pass. After `failures` failures in a row it opens: none pass for a while. Then one
// passes as a probe: its success closes the breaker, its failure opens it for twice as long, up to
// a bound. The while is drawn from [1/2, 1] of its nominal length: servers that saw the same death
// do not all come back at once.
#ifndef STOWAGE_SERVER_STORE_CIRCUIT_BREAKER_H_
#define STOWAGE_SERVER_STORE_CIRCUIT_BREAKER_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>

namespace stowage {

struct BreakerOptions {
  int failures = 3;  // >= 1
  std::chrono::nanoseconds first_pause = std::chrono::milliseconds(200);
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(10);
};

// Thread-safe. The caller says what time it is.
class CircuitBreaker {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CircuitBreaker(const BreakerOptions& options, uint64_t seed = std::random_device{}());

  // Whether to try now, as a probe or as all others. Who is let pass tells the outcome, by one of the other three.
  enum class Pass { kNo, kYes, kProbe };
  Pass Admit(Clock::time_point now);
  void Succeeded();
  void Failed(Clock::time_point now);
  // Nothing was tried after all: of the neighbour that says nothing, and of a probe that another one has to be made.
  void NotTried(Pass pass);

  // Whether somebody would be turned away now, or is being tried as a probe.
  bool open() const;

 private:
  void Open(Clock::time_point now);

  const BreakerOptions options_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  int failures_ = 0;  // in a row
  bool open_ = false;
  bool probing_ = false;
  Clock::time_point until_;
  std::chrono::nanoseconds pause_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_CIRCUIT_BREAKER_H_

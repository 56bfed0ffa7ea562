// A rate with bursts.
#ifndef STOWAGE_SERVER_RUNTIME_TOKEN_BUCKET_H_
#define STOWAGE_SERVER_RUNTIME_TOKEN_BUCKET_H_

#include <algorithm>
#include <chrono>

namespace stowage {

// Not thread-safe. Time is the caller's, and never runs back.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // Full at `now`; one more token every `interval`, at most `burst`. Both positive.
  TokenBucket(Duration interval, int burst, Time now)
      : interval_(interval), burst_(burst), empty_at_(now - interval * burst) {}

  // When a token is there for whoever asks next.
  Time NextAt() const { return empty_at_ + interval_; }

  // False when none is there.
  bool Take(Time now) {
    if (now < NextAt()) return false;
    empty_at_ = std::max(empty_at_, now - interval_ * burst_) + interval_;
    return true;
  }

  // What a Take took was not needed.
  void GiveBack() { empty_at_ -= interval_; }

 private:
  Duration interval_;
  int burst_;
  Time empty_at_;  // had nobody taken any since, the bucket would have been empty then
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_TOKEN_BUCKET_H_

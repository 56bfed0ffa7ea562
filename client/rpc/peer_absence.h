// When a server that could not be reached is asked again: it is left alone for a pause, then one call finds
// out whether it is back, while the others leave it alone for another pause. The pauses double while it is not, up
// to a bound. Internal to client/rpc.
//
// Without a lock: a forked child may find one taken.
#ifndef STOWAGE_CLIENT_RPC_PEER_ABSENCE_H_
#define STOWAGE_CLIENT_RPC_PEER_ABSENCE_H_

#include <algorithm>
#include <atomic>

#include "client/rpc/plan_connection.h"

namespace stowage {

// Thread-safe. The caller says what time it is.
class PeerAbsence {
 public:
  using Clock = CallOptions::Clock;

  // Whether a call asks: as all do, as the one that finds out, or not.
  enum class Turn { kAsk, kProbe, kLeave };

  PeerAbsence(Clock::duration first_pause, Clock::duration longest_pause)
      : first_pause_(first_pause.count()), longest_pause_(longest_pause.count()) {}

  Turn Next(Clock::time_point now) {
    Clock::rep until = until_;
    if (until == kHere) return Turn::kAsk;
    if (now.time_since_epoch().count() < until) return Turn::kLeave;
    // Others leave it to the one that is first.
    const bool first = until_.compare_exchange_strong(until, After(now, pause_));
    return first ? Turn::kProbe : Turn::kLeave;
  }

  // The server has said something.
  void Heard() { until_ = kHere; }

  // A call that had that turn has not reached it. Within a pause that is no news, but from the call that finds out. After
  // one, while none finds out, there is another pause.
  void Missed(Turn turn, Clock::time_point now) {
    const Clock::rep until = until_;
    if (turn == Turn::kProbe) {
      pause_ = std::min<Clock::rep>(2 * pause_, longest_pause_);
    } else if (until == kHere) {
      pause_ = first_pause_;
    } else if (now.time_since_epoch().count() < until) {
      return;
    }
    until_ = After(now, pause_);
  }

 private:
  static constexpr Clock::rep kHere = 0;

  static Clock::rep After(Clock::time_point now, Clock::rep pause) {
    return now.time_since_epoch().count() + pause;
  }

  const Clock::rep first_pause_;
  const Clock::rep longest_pause_;
  std::atomic<Clock::rep> until_{kHere};  // since the clock's epoch
  std::atomic<Clock::rep> pause_{0};
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_PEER_ABSENCE_H_

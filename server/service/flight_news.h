// What is known of a flight while it solves: how far it is, and the best plan so far.
#ifndef STOWAGE_SERVER_SERVICE_FLIGHT_NEWS_H_
#define STOWAGE_SERVER_SERVICE_FLIGHT_NEWS_H_

#include <chrono>
#include <memory>
#include <mutex>

#include "solvers/schedule/plan.h"

namespace stowage {

// Thread-safe.
class FlightNews {
 public:
  using Clock = std::chrono::steady_clock;

  struct Latest {
    double progress = 0;  // in [0, 1]; never falls
    std::shared_ptr<const Plan>
        best;  // validated under the flight's costs; null until there is one
  };

  // True when it is time to tell who watches: at most every 100 ms.
  bool Progressed(double share);
  // Whether the next plan would be worth its replay: plans come in bursts, and each one is replayed.
  bool WantsPlan() const;
  // True as for Progressed; one that is not faster than the best so far is no news.
  bool Found(std::shared_ptr<const Plan> plan);

  Latest latest() const;

 private:
  bool TimeToTell(Clock::time_point now);

  mutable std::mutex mutex_;
  Latest latest_;
  Clock::time_point found_{};
  Clock::time_point told_{};
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_FLIGHT_NEWS_H_

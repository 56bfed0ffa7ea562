// How long a solve will probably take: what equal solvers took on problems of about the size.
#ifndef STOWAGE_SERVER_SERVICE_SOLVE_COSTS_H_
#define STOWAGE_SERVER_SERVICE_SOLVE_COSTS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "server/entries/planning_problem.h"

namespace stowage {

struct SolveEstimate {
  std::chrono::nanoseconds time{0};
  // Measured lately on problems of this size. Else a guess, good enough for an order and for nothing
  // else.
  bool measured = false;
};

// A moving mean for each solver and power of two of steps; where there is none yet, that of the
// nearest size, by the square of the steps. Thread-safe.
class SolveCosts {
 public:
  using Clock = std::chrono::steady_clock;

  SolveEstimate Estimate(const PlanningProblem& problem) const;
  void Measured(const PlanningProblem& problem, std::chrono::nanoseconds took);

 private:
  struct Mean {
    std::chrono::nanoseconds time;
    Clock::time_point last;
  };
  using Sizes = std::map<int, Mean>;

  mutable std::mutex mutex_;
  std::map<std::string, Sizes> solvers_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_SOLVE_COSTS_H_

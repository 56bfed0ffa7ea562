// Whether a plan that was made under the costs of reference is still good under a caller's.
//
// A plan is measured against the better of two figures: a bound that no schedule beats, and what a
// solve as good as the one for the reference is expected to reach (cost_ratios.h). So a plan is stale
// when costs have moved, and not because its solver proves little.
#ifndef STOWAGE_SERVER_ENTRIES_STALENESS_H_
#define STOWAGE_SERVER_ENTRIES_STALENESS_H_

#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"

namespace stowage {

inline constexpr double kStaleTolerance = 0.05;

struct Staleness {
  Nanos bound;        // proven: no schedule within the budget is faster under the caller's costs
  Nanos expected;     // of a solve under the caller's costs
  double excess = 0;  // of the plan over the larger one: 0.1 is 10% slower
};

// `judged` is a plan under the caller's costs (PlanUnder); `best` what it, or a faster one that holds
// for the caller, takes under the reference. O(steps).
Staleness StalenessOf(const Instance& caller, const Instance& reference, Nanos best,
                      const Plan& judged);

enum class Freshness {
  kFresh,
  kAging,  // over the tolerance: answers, and wants to be solved anew in the background
  kStale,  // over twice the tolerance: no answer
};

Freshness FreshnessOf(const Staleness& staleness, double tolerance = kStaleTolerance);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_STALENESS_H_

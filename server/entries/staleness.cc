#include "server/entries/staleness.h"

#include <algorithm>

#include "server/entries/cost_ratios.h"

namespace stowage {

Staleness StalenessOf(const Instance& caller, const Instance& reference, Nanos best,
                      const Plan& judged) {
  Staleness staleness;
  staleness.bound = judged.bounds.lower_bound;
  staleness.expected = ExpectedUnder(caller, reference, best);
  const Nanos within_reach = std::max(staleness.bound, staleness.expected);
  if (within_reach > Nanos(0)) {
    staleness.excess = static_cast<double>(judged.prediction.makespan.value()) /
                           static_cast<double>(within_reach.value()) -
                       1;
  }
  staleness.excess = std::max(staleness.excess, 0.0);
  return staleness;
}

Freshness FreshnessOf(const Staleness& staleness, double tolerance) {
  if (staleness.excess <= tolerance) return Freshness::kFresh;
  return staleness.excess <= 2 * tolerance ? Freshness::kAging : Freshness::kStale;
}

}  // namespace stowage

#include "solvers/plan/lower_bound.h"

#include <cstdint>
#include <vector>

#include "solvers/plan/bound_knapsack.h"
#include "solvers/plan/bound_needs.h"

namespace stowage {
Nanos MakespanLowerBound(const Chain& chain, Bytes budget) {
  const std::vector<int64_t> needs = MomentNeeds(chain);
  BoundKnapsack knapsack;
  for (int l = 1; l <= chain.length() + 1; ++l) {
    knapsack.Require(budget.value() - needs[static_cast<size_t>(l)]);
    const Stage& s = chain.stage(l);
    if (s.saved == Bytes(0)) continue;
    if (s.recomputable()) {
      knapsack.Add(s.saved.value(), s.forward_time.value(), s.saved.value());
    } else {
      knapsack.Hold(s.saved.value());
    }
  }
  return chain.ideal_time() + Nanos(knapsack.RoundedUp());
}

}  // namespace stowage

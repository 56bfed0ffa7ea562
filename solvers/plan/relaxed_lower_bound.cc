#include "solvers/plan/relaxed_lower_bound.h"

#include <algorithm>
#include <cstddef>

#include "solvers/plan/bound_knapsack.h"
#include "solvers/plan/bound_needs.h"
#include "solvers/plan/lower_bound.h"

namespace stowage {

RelaxedLowerBound RelaxLowerBound(const Chain& chain, Bytes budget,
                                  const std::vector<int64_t>& needs) {
  const size_t last = static_cast<size_t>(chain.length()) + 1;
  RelaxedLowerBound bound;
  bound.prices.resize(last + 1);
  BoundKnapsack knapsack;
  for (size_t l = 1; l <= last; ++l) {
    bound.prices[l - 1] = knapsack.Require(budget.value() - needs[l]);
    const Stage& s = chain.stage(static_cast<int>(l));
    if (s.saved == Bytes(0)) continue;
    if (s.recomputable()) {
      knapsack.Add(s.saved.value(), s.forward_time.value(), s.saved.value());
    } else {
      knapsack.Hold(s.saved.value());
    }
  }
  for (size_t i = last; i >= 1; --i) {
    bound.prices[i - 1] = std::max(bound.prices[i - 1], bound.prices[i]);
  }
  bound.repeated = Nanos(knapsack.RoundedUp());
  return bound;
}

Nanos MakespanLowerBound(const Chain& chain, Bytes budget) {
  return chain.ideal_time() + RelaxLowerBound(chain, budget, MomentNeeds(chain)).repeated;
}

}  // namespace stowage

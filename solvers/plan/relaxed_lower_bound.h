// MakespanLowerBound of solvers/plan/lower_bound.h, with what its optimum says of the chain.
// Internal to solvers/plan.
//
// It is a linear program: the share of each stage that is given up, and a constraint for each
// moment. Where a moment lacks memory and the cheapest byte costs r_l, the prices
//     p_i = max of r_l over l > i
// of a byte of a stage i that is held are its dual: prices of moments, p_{l-1} - p_l, that are not
// negative, and above zero only where nothing is left.
#ifndef STOWAGE_SOLVERS_PLAN_RELAXED_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_RELAXED_LOWER_BOUND_H_

#include <cstdint>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/units.h"

namespace stowage {

struct RelaxedLowerBound {
  Nanos repeated;              // the least time of repeated forwards
  std::vector<double> prices;  // ns for a byte, by stage 0..L+1; they fall to 0
};

// O(L log L). `needs` are the chain's MomentNeeds.
RelaxedLowerBound RelaxLowerBound(const Chain& chain, Bytes budget,
                                  const std::vector<int64_t>& needs);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_RELAXED_LOWER_BOUND_H_

// A frontier that was made under one caller's costs, as another's.
#ifndef STOWAGE_SERVER_PLANNING_FRONTIER_UNDER_H_
#define STOWAGE_SERVER_PLANNING_FRONTIER_UNDER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "solvers/plan/frontier.h"
#include "solvers/plan/linked_problem.h"

namespace stowage {

// Whose points the referee of the problem judges, with its link if there is one. The problem outlives it.
FrontierBuilder BuilderFor(const LinkedProblem& linked);

// Every point of `frontier`, made under `reference`, replayed under the costs of `caller`, also where
// they are equal: a frontier that comes out of a store is only what its schedules are. Null unless
// the referee accepts them all, the same schedules fit and the times of the steps differ by at most a
// quarter of them all: then another frontier may be far better. O(points x schedule).
std::shared_ptr<const Frontier> FrontierUnder(const LinkedProblem& caller,
                                              const LinkedProblem& reference,
                                              const std::shared_ptr<const Frontier>& frontier);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_FRONTIER_UNDER_H_

// A frontier that was made under one caller's costs, as another's.
#ifndef STOWAGE_SERVER_ENTRIES_FRONTIER_UNDER_H_
#define STOWAGE_SERVER_ENTRIES_FRONTIER_UNDER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"

namespace stowage {

// Every point of `frontier`, made under `reference`, replayed under the costs of `caller`, also where
// they are equal: a frontier that comes out of a store is only what its schedules are. Null unless
// the evaluator accepts them all, the same schedules fit and the times of the steps differ by at most a
// quarter of them all: then another frontier may be far better. O(points x schedule).
std::shared_ptr<const Frontier> FrontierUnder(const Instance& caller, const Instance& reference,
                                              const std::shared_ptr<const Frontier>& frontier);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_FRONTIER_UNDER_H_

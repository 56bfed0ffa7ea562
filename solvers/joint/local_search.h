// Small changes to an outline, as long as they make it faster. Internal to solvers/joint.
#ifndef STOWAGE_SOLVERS_JOINT_LOCAL_SEARCH_H_
#define STOWAGE_SOLVERS_JOINT_LOCAL_SEARCH_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "solvers/joint/incumbent.h"
#include "solvers/joint/outline.h"
#include "solvers/joint/segment_costs.h"
#include "solvers/solver.h"

namespace stowage {

// Offers an outline's schedule, without transfers, with its own choice of what leaves and with
// others that are quick to find. As Incumbent::OfferQuickly.
absl::StatusOr<std::optional<Nanos>> OfferOutline(const Outline& outline, const SegmentCosts& costs,
                                                  const std::string& explanation, Incumbent* best);

// Outlines that differ in one part or two neighbouring ones: less or more room for a segment, a
// stage that goes from one part to the next, parts joined or split, an input that leaves or stays.
// They are made one by one, until `visit` returns false: all of them take O(L^2) memory.
void ForEachNeighbour(const Outline& outline, const SegmentCosts& costs,
                      absl::FunctionRef<bool(const Outline&)> visit);

// Moves from `outline`, of the given time, to the first neighbour that is faster, again and again,
// until none is, nor any neighbour of one that recomputes less but does not fit, or until so many
// schedules have been looked at; takes these off. Returns where it ends. CANCELLED,
// DEADLINE_EXCEEDED.
absl::StatusOr<Outline> ImproveLocally(Outline outline, Nanos makespan, const SegmentCosts& costs,
                                       const SolveOptions& options, int64_t* schedules,
                                       Incumbent* best);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_LOCAL_SEARCH_H_

// From an outline to the schedule without transfers that it stands for, and back. Internal to
// solvers/joint.
#ifndef STOWAGE_SOLVERS_JOINT_OUTLINE_SCHEDULE_H_
#define STOWAGE_SOLVERS_JOINT_OUTLINE_SCHEDULE_H_

#include <optional>

#include "solvers/joint/outline.h"
#include "solvers/joint/segment_costs.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Segments run in their rooms, which are at least their least ones. O(L^2).
Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs);

// What the schedule recomputes, ns. O(parts), of a few steps each.
double RecomputeTimeOf(const Outline& outline, const SegmentCosts& costs);

// An outline that begins as the schedule does up to its first backward, each part with all the room
// that is of use to it; nothing if there is none. O(L).
std::optional<Outline> OutlineOf(const Schedule& schedule, const SegmentCosts& costs);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_OUTLINE_SCHEDULE_H_

// From an outline to the schedule without transfers that it stands for. Internal to solvers/joint.
#ifndef STOWAGE_SOLVERS_JOINT_OUTLINE_SCHEDULE_H_
#define STOWAGE_SOLVERS_JOINT_OUTLINE_SCHEDULE_H_

#include "solvers/joint/outline.h"
#include "solvers/joint/segment_costs.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Segments run in their rooms, which are at least their least ones. O(L^2).
Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_OUTLINE_SCHEDULE_H_

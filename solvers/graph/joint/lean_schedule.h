// A schedule with transfers that is as fast and takes less memory in between. Internal to
// solvers/graph/joint.
#ifndef STOWAGE_SOLVERS_GRAPH_JOINT_LEAN_SCHEDULE_H_
#define STOWAGE_SOLVERS_GRAPH_JOINT_LEAN_SCHEDULE_H_

#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// `schedule`, which is `compute` with copies around its turn (solvers/offload/trace_problem.h), with its
// waits for offloads early and its prefetches late, as far as the referee says that it is no slower and
// takes no more at its peak: what lies in memory without need makes it hard to place blocks in one
// region. O(instructions log instructions + TraceOf).
Schedule LeanSchedule(const Graph& graph, const TransferModel& link, const Schedule& compute,
                      Schedule schedule);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_JOINT_LEAN_SCHEDULE_H_

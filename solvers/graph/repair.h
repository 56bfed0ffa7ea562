// Makes a set of checkpoints one that a rule allows.
#ifndef STOWAGE_SOLVERS_GRAPH_REPAIR_H_
#define STOWAGE_SOLVERS_GRAPH_REPAIR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/solver.h"

namespace stowage {

// `checkpoints` in any order (repetitions count once), the source, the target and what must be kept,
// and for segments with several first or last checkpoints the vertices next to these, until every
// segment has two end points: both rules allow the result. A segment that takes many rounds is kept
// whole. O((V + E) log V). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<CheckpointSet> RepairCheckpoints(const CheckpointGraph& graph,
                                                const std::vector<int>& checkpoints,
                                                StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_REPAIR_H_

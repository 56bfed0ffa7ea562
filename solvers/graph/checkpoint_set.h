// A set of checkpoints and what it costs: the objective of Feng & Huang 2018.
//
//   objective(R) = sum of the bytes of R + the largest segment
//
// R holds the source, the target and whatever must be kept. Without R the graph falls into weakly
// connected parts, the segments; one costs the bytes of its vertices, and what ops in R that need
// their inputs hold of other segments beside it. Two rules say which sets are allowed:
//   two end points      every segment reads one checkpoint and is read by one (the paper's rule);
//   several end points  any, as long as the graph of checkpoints and segments has no cycle (Kusumoto
//                       et al. 2019 grow lower sets, which is the same).
#ifndef STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SET_H_
#define STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SET_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/solver.h"

namespace stowage {

enum class SegmentRule { kTwoEndPoints, kSeveralEndPoints };

// "two_end_points", "several_end_points".
const char* ToString(SegmentRule rule);

struct CheckpointSet {
  std::vector<int> checkpoints;  // rising
  Bytes checkpoint_bytes;
  Bytes segment_bytes;  // of the largest segment; 0 without one

  Bytes objective() const { return checkpoint_bytes + segment_bytes; }
};

// The order in which equally good sets are preferred: the smaller objective, then fewer
// checkpoints, then the smaller indices. What makes solutions reproducible.
bool IsBetter(const CheckpointSet& a, const CheckpointSet& b);

// The segments of a set: `segment_of[v]` is the segment's number (0.. in the order of their first
// vertices) or kCheckpoint.
struct Segmentation {
  static constexpr int kCheckpoint = -1;
  std::vector<int> segment_of;
  std::vector<Bytes> segment_bytes;
};

// The segments between the vertices that are kept, whatever any rule says, without what is needed
// of other segments. O((V + E) log V). Fails as the token says.
absl::StatusOr<Segmentation> SplitAtCheckpoints(const CheckpointGraph& graph,
                                                const std::vector<bool>& kept, StopPoll* poll);

// Where a segment has more than one start or end point.
struct FurtherEnd {
  int segment;
  bool is_start;   // the checkpoint is read by the segment, else it reads it
  int checkpoint;  // not the first such
  int first;       // checkpoint
  int vertex;      // of the segment, next to the checkpoint
};

// Visits every edge to a further end, until `visit` returns false. O(V + E). Fails as the token says.
absl::Status ForEachFurtherEnd(const CheckpointGraph& graph, const Segmentation& segmentation,
                               const std::function<bool(const FurtherEnd&)>& visit, StopPoll* poll);

// Validates a set. Every answer of a solver passes this before a caller gets it. `checkpoints` in any order.
// INVALID_ARGUMENT that names the vertex: not in the graph, twice, a vertex missing that must be
// kept, a segment that breaks the rule. CANCELLED or DEADLINE_EXCEEDED by `poll`, which may be
// null. O((V + E) log V).
absl::StatusOr<CheckpointSet> ValidateCheckpoints(const CheckpointGraph& graph,
                                                  std::vector<int> checkpoints, SegmentRule rule,
                                                  Segmentation* segmentation = nullptr,
                                                  StopPoll* poll = nullptr);

// Makes a set of checkpoints one that a rule allows.

// `checkpoints` in any order (repetitions count once), the source, the target and what must be kept,
// and for segments with several first or last checkpoints the vertices next to these, until every
// segment has two end points: both rules allow the result. A segment that takes many rounds is kept
// whole. O((V + E) log V). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<CheckpointSet> RepairCheckpoints(const CheckpointGraph& graph,
                                                const std::vector<int>& checkpoints,
                                                StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SET_H_

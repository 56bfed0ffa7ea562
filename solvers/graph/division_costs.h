// What the nodes of a division tree cost a search for checkpoints.
#ifndef STOWAGE_SOLVERS_GRAPH_DIVISION_COSTS_H_
#define STOWAGE_SOLVERS_GRAPH_DIVISION_COSTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_tree.h"
#include "solvers/solver.h"

namespace stowage {

// How much an op that needs its inputs makes the segments that end at it cost.
enum class NeededInputs {
  kIgnored,    // nothing: segments cost at most what they really do
  kAllCharged  // as if no input were a checkpoint but those that must be once a segment is divided:
               // segments cost at least what they really do
};

// By node.
struct DivisionCosts {
  // As one segment; or, of a Linear node, as the last part of one.
  std::vector<int64_t> whole;
  // Something inside must be kept, so the node cannot be inside a segment.
  std::vector<bool> must_open;
};

// O(V + E). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<DivisionCosts> CostsOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                      NeededInputs needed, StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_DIVISION_COSTS_H_

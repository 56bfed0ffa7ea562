// Vertices that every path from the source to the target passes: no edge jumps over one.
#ifndef STOWAGE_SOLVERS_GRAPH_SPLITTING_VERTICES_H_
#define STOWAGE_SOLVERS_GRAPH_SPLITTING_VERTICES_H_

#include <vector>

#include "solvers/graph/checkpoint_graph.h"

namespace stowage {

// Rising; the source and the target are among them. Any subset that holds these two is a set of
// checkpoints with two end points per segment. O(V + E).
std::vector<int> SplittingVertices(const CheckpointGraph& graph);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_SPLITTING_VERTICES_H_

// Splits a biconnected graph at all its separation pairs (Hopcroft & Tarjan 1973, as corrected by
// Gutwenger & Mutzel 2000, step 3).
//
// A split replaces the graph by two that each get a virtual edge between the pair. What cannot be
// split further is a bond of three edges, a triangle, or has no separation pair (rigid). The result
// is not unique; triconnected_components.h joins it into what is.
#ifndef STOWAGE_SOLVERS_GRAPH_SPLIT_COMPONENTS_H_
#define STOWAGE_SOLVERS_GRAPH_SPLIT_COMPONENTS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/solver.h"

namespace stowage {

struct SplitComponents {
  std::vector<std::pair<int, int>> edges;  // the given ones, then the virtual ones
  // A given edge is in one component, a virtual one in two. Those of component c are
  // members[first[c]] .. members[first[c + 1] - 1].
  std::vector<int> members;
  std::vector<size_t> first;

  int size() const { return static_cast<int>(first.size()) - 1; }
};

// `edges` join vertices 0..vertices-1, at least 3; the graph must be biconnected and simple.
// O(V + E). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<SplitComponents> FindSplitComponents(int vertices,
                                                    const std::vector<std::pair<int, int>>& edges,
                                                    StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_SPLIT_COMPONENTS_H_

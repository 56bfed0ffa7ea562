// A depth-first search of a biconnected graph, in the order that the search for split components
// needs (Hopcroft & Tarjan 1973, as corrected by Gutwenger & Mutzel 2000, steps 1 and 2).
//
// Vertices are renumbered 1..n so that a subtree is an interval and, of two arcs out of a vertex,
// the one that reaches further up comes first. Every edge becomes an arc: tree arcs lead down,
// fronds lead up. Recursion is on an explicit stack: depth may be the number of vertices.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_PALM_TREE_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_PALM_TREE_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/solver.h"

namespace stowage {

struct PalmArc {
  int from;  // numbers, not vertices
  int to;
  bool tree;
  bool starts_path;
};

// Indexed by number; entry 0 is unused.
struct PalmTree {
  std::vector<int> vertex;       // that has the number
  std::vector<int> father;       // 0 for the root
  std::vector<int> low;          // the smallest number that the subtree reaches by one frond
  std::vector<int> second_low;   // the smallest but that one; or the number itself
  std::vector<int> descendants;  // the subtree's size, itself included
  std::vector<PalmArc> arcs;     // of edge e at [e]
  // Edges out of number v, in the order to take them: order[first[v]] .. order[first[v + 1] - 1].
  std::vector<int> order;
  std::vector<size_t> first;
  std::vector<int> fronds;  // in the order in which the search meets them
};

// `edges` join vertices 0..vertices-1; the graph must be biconnected and simple. The root is vertex
// 0. O(V + E). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<PalmTree> GrowPalmTree(int vertices, const std::vector<std::pair<int, int>>& edges,
                                      StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_PALM_TREE_H_

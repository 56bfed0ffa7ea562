// The triconnected components of a biconnected graph: what all ways to split it at separation pairs
// have in common (Tutte 1966). They form a tree, in which two that share a virtual edge are
// neighbours.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_TRICONNECTED_COMPONENTS_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_TRICONNECTED_COMPONENTS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "solvers/solver.h"

namespace stowage {

// A depth-first search of a biconnected graph, in the order that the search for split components
// needs (Hopcroft & Tarjan 1973, as corrected by Gutwenger & Mutzel 2000, steps 1 and 2).
//
// Vertices are renumbered 1..n so that a subtree is an interval and, of two arcs out of a vertex,
// the one that reaches further up comes first. Every edge becomes an arc: tree arcs lead down,
// fronds lead up. Recursion is on an explicit stack: depth may be the number of vertices.
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

enum class ComponentKind {
  kCycle,  // in no particular order
  kBond,   // parallel edges
  kRigid   // simple, and no pair of vertices separates it
};

struct TriconnectedComponents {
  static constexpr int kNone = -1;

  std::vector<std::pair<int, int>> edges;  // the given ones, then virtual ones
  std::vector<ComponentKind> kinds;        // of each component
  // Edges of component c: members[first[c]] .. members[first[c + 1] - 1].
  std::vector<int> members;
  std::vector<size_t> first;
  // The components that an edge is in. A given edge is in one, a virtual one in two or, where it
  // joined what belongs together, in none.
  std::vector<std::pair<int, int>> components_of;

  int size() const { return static_cast<int>(kinds.size()); }
  absl::Span<const int> edges_of(int c) const {
    const size_t begin = first[static_cast<size_t>(c)];
    return {members.data() + begin, first[static_cast<size_t>(c) + 1] - begin};
  }
};

// `edges` join vertices 0..vertices-1, at least 3; the graph must be biconnected and simple.
// O(V + E). CANCELLED or DEADLINE_EXCEEDED by `poll`.
absl::StatusOr<TriconnectedComponents> FindTriconnectedComponents(
    int vertices, const std::vector<std::pair<int, int>>& edges, StopPoll* poll);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_TRICONNECTED_COMPONENTS_H_

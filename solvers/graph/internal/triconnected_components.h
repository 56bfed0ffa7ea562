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

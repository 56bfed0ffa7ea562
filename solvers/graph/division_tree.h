// The division tree of a graph (Feng & Huang 2018, definitions 1 to 6, algorithms 2 to 5).
//
// An independent segment lies between two vertices, its ends: no vertex inside it has an edge to
// one outside. The tree divides the segment from source to target:
//   Linear  a chain of segments, between the vertices that every path passes (splitting vertices);
//   Branch  two or more segments side by side, a direct edge being one;
//   Rigid   neither ("complicate" in the paper); its children are the largest segments within it;
//   Edge    a direct edge, with nothing inside. A graph of one vertex is an Edge from it to itself.
// A Linear node has no Linear child and a Branch node no Branch child. The tree is unique: with an
// edge added from source to target it is what Tutte's triconnected components (1966) are of that
// graph, cycles being Linear, bonds Branch and the others Rigid, hung up at that edge. For an
// independent segment is one side of a separation pair that is not the source's and target's, and
// in an acyclic graph each such side is one.
//
// Immutable; safe to share between threads.
#ifndef STOWAGE_SOLVERS_GRAPH_DIVISION_TREE_H_
#define STOWAGE_SOLVERS_GRAPH_DIVISION_TREE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/model/units.h"
#include "solvers/solver.h"

namespace stowage {

enum class DivisionKind { kEdge, kLinear, kBranch, kRigid };

// "edge", "linear", "branch", "rigid".
const char* ToString(DivisionKind kind);

struct DivisionNode {
  DivisionKind kind = DivisionKind::kEdge;
  int start = 0;  // the ends, vertices of the graph
  int end = 0;
  int parent = -1;      // a node; -1 at the root
  int first_child = 0;  // children are numbered one after another
  int child_count = 0;
  Bytes bytes;  // of all vertices inside, the ends not included
};

class DivisionTree {
 public:
  // O((V + E) log V), and no recursion: the tree may be as deep as the graph has vertices.
  // CANCELLED or DEADLINE_EXCEEDED by `poll`.
  static absl::StatusOr<DivisionTree> Build(const CheckpointGraph& graph, StopPoll* poll);

  static constexpr int kRoot = 0;

  // Nodes are numbered by levels from the root, so a node comes before its children. Children are
  // in the order of their start, then end, then first vertex inside (none comes first); those of a
  // Linear node are thus a chain from its start to its end.
  int size() const { return static_cast<int>(nodes_.size()); }
  const DivisionNode& node(int n) const { return nodes_[static_cast<size_t>(n)]; }

  // Vertices that the children of a node meet in, apart from the node's own ends, rising: the
  // splitting vertices of a Linear node, none of a Branch.
  absl::Span<const int> connecting(int n) const {
    return Inside(spans_[static_cast<size_t>(n)].begin, spans_[static_cast<size_t>(n)].own_end);
  }
  // All vertices inside a node: its connecting ones, then those inside its children.
  absl::Span<const int> interior(int n) const {
    return Inside(spans_[static_cast<size_t>(n)].begin, spans_[static_cast<size_t>(n)].end);
  }
  int interior_size(int n) const {
    return spans_[static_cast<size_t>(n)].end - spans_[static_cast<size_t>(n)].begin;
  }
  // Levels below the root; 0 for a root alone.
  int depth() const;

 private:
  friend class DivisionTreeBuilder;
  struct InteriorSpan {
    int begin = 0;
    int own_end = 0;
    int end = 0;
  };
  DivisionTree() = default;
  absl::Span<const int> Inside(int begin, int end) const {
    return {inside_.data() + begin, static_cast<size_t>(end - begin)};
  }

  std::vector<DivisionNode> nodes_;
  std::vector<InteriorSpan> spans_;
  std::vector<int> inside_;  // vertices inside the root, each once
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_DIVISION_TREE_H_

// The problem of Feng & Huang 2018 without times: a DAG of tensors with sizes, of which some are
// kept as checkpoints and the rest is recomputed segment by segment.
//
// Vertices are numbered in topological order. Vertex 0, the source, is the only one without inputs
// and the last, the target, the only one without readers, so every vertex lies on a path between
// them. Immutable after Create, hence safe to share between threads.
#ifndef STOWAGE_SOLVERS_GRAPH_CHECKPOINT_GRAPH_H_
#define STOWAGE_SOLVERS_GRAPH_CHECKPOINT_GRAPH_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"

namespace stowage {

struct CheckpointGraphSpec {
  std::vector<Bytes> bytes;                // of each vertex, in topological order
  std::vector<std::pair<int, int>> edges;  // (read, reader); an edge given twice counts once
  // Empty: none. Else one entry per vertex.
  std::vector<bool> must_keep;     // is a checkpoint in every solution
  std::vector<bool> needs_inputs;  // the op's backward reads its inputs (mul, matmul)
};

class CheckpointGraph {
 public:
  // INVALID_ARGUMENT made by FieldError, naming the vertex: no vertices, sizes negative or summing
  // beyond kMaxTotal, an edge that leaves the graph, a self loop, an edge backwards (a cycle, or no
  // topological order), a second source or target, flags for another number of vertices.
  // O(V + E log E).
  static absl::StatusOr<CheckpointGraph> Create(CheckpointGraphSpec spec);

  int size() const { return static_cast<int>(bytes_.size()); }
  int source() const { return 0; }
  int target() const { return size() - 1; }
  Bytes bytes(int v) const { return bytes_[static_cast<size_t>(v)]; }
  // What v reads, and what reads v: rising, each once.
  absl::Span<const int> inputs(int v) const { return inputs_.Of(v); }
  absl::Span<const int> readers(int v) const { return readers_.Of(v); }
  size_t edge_count() const { return inputs_.ends.size(); }
  bool must_keep(int v) const { return must_keep_[static_cast<size_t>(v)]; }
  // The op has several inputs and its backward reads them.
  bool needs_inputs(int v) const { return needs_inputs_[static_cast<size_t>(v)]; }
  Bytes total() const { return total_; }

 private:
  // The edges of all vertices in one array.
  struct Adjacency {
    std::vector<size_t> first;  // of vertex v at [v], the end at [v + 1]
    std::vector<int> ends;
    absl::Span<const int> Of(int v) const {
      const size_t begin = first[static_cast<size_t>(v)];
      return {ends.data() + begin, first[static_cast<size_t>(v) + 1] - begin};
    }
  };
  CheckpointGraph() = default;
  static Adjacency MakeAdjacency(size_t vertices, const std::vector<std::pair<int, int>>& edges);
  absl::Status CheckEnds() const;

  std::vector<Bytes> bytes_;
  Adjacency inputs_;
  Adjacency readers_;
  std::vector<bool> must_keep_;
  std::vector<bool> needs_inputs_;
  Bytes total_;
};

// A profile's graph or chain as this problem.
struct CheckpointProblem {
  CheckpointGraph graph;
  // Of a graph, positions in program order of the vertices behind each vertex; none for an added one.
  // Of a chain, the stage: 0 is its input, L+1 the loss.
  std::vector<std::vector<int>> members;
  // What ops save for their backwards beside these tensors (masks, statistics; of a chain whatever a stage
  // saves beside its output): in no sum here.
  Bytes saved_beside;
};

// Aliases are folded into what they alias (fold.h); a graph with several inputs or outputs gets a
// source or target of no bytes; what must not be recomputed (collectives, must_keep, inputs of the
// graph) must be kept. O(V log V + E). Fails where FoldAliases does.
absl::StatusOr<CheckpointProblem> MakeCheckpointProblem(const Graph& graph);

// A path: the input, the outputs of the stages, that of the loss. Stages that must not be recomputed
// must be kept. O(L). Fails where CheckpointGraph::Create does.
absl::StatusOr<CheckpointProblem> MakeCheckpointProblem(const Chain& chain);

// Vertices that every path from the source to the target passes: no edge jumps over one.

// Rising; the source and the target are among them. Any subset that holds these two is a set of
// checkpoints with two end points per segment. O(V + E).
std::vector<int> SplittingVertices(const CheckpointGraph& graph);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_CHECKPOINT_GRAPH_H_

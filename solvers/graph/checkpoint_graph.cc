#include "solvers/graph/checkpoint_graph.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "solvers/graph/fold.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

std::string VertexField(size_t v) { return absl::StrCat("vertices[", v, "]"); }

absl::Status CheckSizes(const std::vector<Bytes>& bytes) {
  if (bytes.empty()) return FieldError("vertices", "[]", "must have at least one vertex");
  if (bytes.size() > Graph::kMaxVertices) {
    return FieldError("vertices", static_cast<int64_t>(bytes.size()),
                      absl::StrCat("must have at most ", Graph::kMaxVertices, " vertices"));
  }
  int64_t total = 0;
  for (size_t v = 0; v < bytes.size(); ++v) {
    const int64_t value = bytes[v].value();
    const std::string rule =
        value < 0 ? "must be >= 0"
        : value >= kMaxTotal - total
            ? absl::StrCat("makes the sum of all sizes reach or exceed ", kMaxTotal)
            : std::string();
    if (!rule.empty()) return FieldError(VertexField(v) + ".bytes", value, rule);
    total += value;
  }
  return absl::OkStatus();
}

absl::Status CheckEdges(const CheckpointGraphSpec& spec) {
  const int size = static_cast<int>(spec.bytes.size());
  for (size_t e = 0; e < spec.edges.size(); ++e) {
    const auto& [from, to] = spec.edges[e];
    const char* rule = nullptr;
    if (from < 0 || from >= size || to < 0 || to >= size) {
      rule = "must join vertices of the graph";
    } else if (from == to) {
      rule = "must not join a vertex to itself";
    } else if (from > to) {
      rule = "must lead to a later vertex (a cycle, or no topological order)";
    }
    if (rule == nullptr) continue;
    return FieldError(absl::StrCat("edges[", e, "]"), absl::StrCat(from, " -> ", to), rule);
  }
  return absl::OkStatus();
}

absl::Status CheckFlags(const char* field, size_t vertices, std::vector<bool>* flags) {
  if (flags->empty()) flags->resize(vertices, false);
  if (flags->size() == vertices) return absl::OkStatus();
  return FieldError(field, absl::StrCat(flags->size(), " entries"),
                    absl::StrCat("must be empty or have one entry per vertex (", vertices, ")"));
}

}  // namespace

CheckpointGraph::Adjacency CheckpointGraph::MakeAdjacency(
    size_t vertices, const std::vector<std::pair<int, int>>& edges) {
  Adjacency adjacency;
  adjacency.first.resize(vertices + 1, 0);
  adjacency.ends.reserve(edges.size());
  for (const auto& [v, end] : edges) {
    ++adjacency.first[static_cast<size_t>(v) + 1];
    adjacency.ends.push_back(end);
  }
  for (size_t v = 0; v < vertices; ++v) adjacency.first[v + 1] += adjacency.first[v];
  return adjacency;
}

absl::Status CheckpointGraph::CheckEnds() const {
  for (int v = 0; v < size(); ++v) {
    if (v != source() && inputs(v).empty()) {
      return FieldError(VertexField(static_cast<size_t>(v)), "no inputs",
                        "must lie on a path from vertex 0, the source");
    }
    if (v != target() && readers(v).empty()) {
      return FieldError(VertexField(static_cast<size_t>(v)), "no readers",
                        "must lie on a path to the last vertex, the target");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointGraph> CheckpointGraph::Create(CheckpointGraphSpec spec) {
  absl::Status status = CheckSizes(spec.bytes);
  if (status.ok()) status = CheckEdges(spec);
  const size_t vertices = spec.bytes.size();
  if (status.ok()) status = CheckFlags("must_keep", vertices, &spec.must_keep);
  if (status.ok()) status = CheckFlags("needs_inputs", vertices, &spec.needs_inputs);
  if (!status.ok()) return status;

  CheckpointGraph graph;
  std::vector<std::pair<int, int>>& edges = spec.edges;
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  graph.readers_ = MakeAdjacency(vertices, edges);
  for (auto& [from, to] : edges) std::swap(from, to);
  std::sort(edges.begin(), edges.end());
  graph.inputs_ = MakeAdjacency(vertices, edges);
  graph.bytes_ = std::move(spec.bytes);
  graph.must_keep_ = std::move(spec.must_keep);
  graph.needs_inputs_ = std::move(spec.needs_inputs);
  for (int v = 0; v < graph.size(); ++v) {
    graph.total_ += graph.bytes(v);
    if (graph.inputs(v).size() < 2) graph.needs_inputs_[static_cast<size_t>(v)] = false;
  }
  status = graph.CheckEnds();
  if (!status.ok()) return status;
  return graph;
}

absl::StatusOr<CheckpointProblem> MakeCheckpointProblem(const Graph& graph) {
  if (!graph.has_backwards()) {
    return FieldError("profile.dag", "set",
                      "must be a graph: of a compute DAG it is not known what its backwards are");
  }
  absl::StatusOr<FoldedGraph> folded = FoldAliases(graph);
  if (!folded.ok()) return folded.status();
  const Graph& ops = folded->graph;
  std::vector<int> sources, targets;
  std::vector<bool> read(static_cast<size_t>(ops.size()), false);
  for (int p = 0; p < ops.size(); ++p) {
    if (ops.vertex(p).inputs.empty()) sources.push_back(p);
    for (const GraphInput& input : ops.vertex(p).inputs) {
      read[static_cast<size_t>(input.vertex)] = true;
    }
  }
  for (int p = 0; p < ops.size(); ++p) {
    if (!read[static_cast<size_t>(p)]) targets.push_back(p);
  }
  const int shift = sources.size() > 1 ? 1 : 0;
  CheckpointGraphSpec spec;
  std::vector<std::vector<int>> members;
  const auto add = [&](Bytes bytes, bool must_keep, bool needs_inputs, std::vector<int> of) {
    spec.bytes.push_back(bytes);
    spec.must_keep.push_back(must_keep);
    spec.needs_inputs.push_back(needs_inputs);
    members.push_back(std::move(of));
  };
  if (shift == 1) {
    add(Bytes(0), false, false, {});
    for (const int p : sources) spec.edges.push_back({0, p + shift});
  }
  for (int p = 0; p < ops.size(); ++p) {
    const Vertex& v = ops.vertex(p);
    bool needs_inputs = false;
    for (const GraphInput& input : v.inputs) {
      needs_inputs |= input.backward_needs;
      spec.edges.push_back({static_cast<int>(input.vertex) + shift, p + shift});
    }
    const bool keep = v.must_keep || v.collective || v.inputs.empty();
    add(v.output, keep, needs_inputs && !v.linear_multi_input,
        std::move(folded->members[static_cast<size_t>(p)]));
  }
  if (targets.size() > 1) {
    for (const int p : targets) spec.edges.push_back({p + shift, ops.size() + shift});
    add(Bytes(0), false, false, {});
  }
  absl::StatusOr<CheckpointGraph> made = CheckpointGraph::Create(std::move(spec));
  if (!made.ok()) return made.status();
  Bytes saved_beside;
  for (int p = 0; p < graph.size(); ++p) saved_beside += graph.vertex(p).extra_saved;
  return CheckpointProblem{*std::move(made), std::move(members), saved_beside};
}

absl::StatusOr<CheckpointProblem> MakeCheckpointProblem(const Chain& chain) {
  CheckpointGraphSpec spec;
  std::vector<std::vector<int>> members;
  Bytes saved_beside;
  for (int l = 0; l <= chain.length() + 1; ++l) {
    spec.bytes.push_back(l == 0 ? chain.activation(0) : chain.stage(l).output);
    spec.must_keep.push_back(l > 0 && !chain.stage(l).recomputable());
    members.push_back({l});
    if (l == 0) continue;
    spec.edges.push_back({l - 1, l});
    saved_beside += chain.stage(l).saved - chain.stage(l).output;
  }
  absl::StatusOr<CheckpointGraph> made = CheckpointGraph::Create(std::move(spec));
  if (!made.ok()) return made.status();
  return CheckpointProblem{*std::move(made), std::move(members), saved_beside};
}

std::vector<int> SplittingVertices(const CheckpointGraph& graph) {
  std::vector<int> splitting;
  int furthest = graph.source();  // that any vertex so far is read by
  for (int v = 0; v < graph.size(); ++v) {
    if (furthest <= v) splitting.push_back(v);
    if (!graph.readers(v).empty()) furthest = std::max(furthest, graph.readers(v).back());
  }
  return splitting;
}

}  // namespace stowage

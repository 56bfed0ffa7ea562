#include "solvers/model/graph.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Where a vertex of the sender's list went.
using Positions = std::unordered_map<int64_t, int>;

std::string VertexPrefix(size_t index) { return absl::StrCat("graph.vertices[", index, "]."); }

absl::Status CheckFields(const Vertex& v, size_t index, int64_t nanos_limit, int64_t* bytes,
                         int64_t* nanos) {
  FieldChecks checks(VertexPrefix(index));
  checks.NonNegative("id", v.id);
  checks.NonNegative("program_order", v.program_order);
  checks.MaxLength("name", v.name);
  checks.MaxLength("op_kind", v.op_kind);
  const std::pair<const char*, Bytes> sizes[] = {
      {"output_bytes", v.output},
      {"output_gradient_bytes", v.output_gradient},
      {"extra_saved_bytes", v.extra_saved},
      {"forward_saving_overhead_bytes", v.forward_saving_overhead},
      {"forward_overhead_bytes", v.forward_overhead},
      {"backward_overhead_bytes", v.backward_overhead},
      {"transient_parameter_bytes", v.transient_parameters},
  };
  for (const auto& [field, size] : sizes) {
    checks.NonNegative(field, size.value());
    checks.Total(field, size.value(), kMaxTotal, "the sum of all sizes", bytes);
  }
  const std::pair<const char*, Nanos> times[] = {{"forward_time_ns", v.forward_time},
                                                 {"backward_time_ns", v.backward_time}};
  for (const auto& [field, time] : times) {
    checks.NonNegative(field, time.value());
    checks.Total(field, time.value(), nanos_limit, "the sum of all times times (vertices + 2)",
                 nanos);
  }
  return checks.status();
}

absl::Status CheckVertexFields(const GraphSpec& spec) {
  const size_t count = spec.vertices.size();
  if (count == 0) return FieldError("graph.vertices", "[]", "must have at least one vertex");
  if (count > Graph::kMaxVertices) {
    return FieldError("graph.vertices", static_cast<int64_t>(count),
                      absl::StrCat("must have at most ", Graph::kMaxVertices, " vertices"));
  }
  const int64_t nanos_limit = kMaxTimeTotal / static_cast<int64_t>(count + 2);
  int64_t bytes = 0;
  int64_t nanos = 0;
  for (size_t i = 0; i < count; ++i) {
    absl::Status status = CheckFields(spec.vertices[i], i, nanos_limit, &bytes, &nanos);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Indices of the sender's list in program order.
std::vector<size_t> ProgramOrder(const GraphSpec& spec) {
  std::vector<size_t> order(spec.vertices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return spec.vertices[a].program_order < spec.vertices[b].program_order;
  });
  return order;
}

absl::Status Locate(const GraphSpec& spec, const std::vector<size_t>& order, Positions* positions) {
  for (size_t p = 0; p < order.size(); ++p) {
    const Vertex& v = spec.vertices[order[p]];
    if (p > 0 && spec.vertices[order[p - 1]].program_order == v.program_order) {
      return FieldError(VertexPrefix(order[p]) + "program_order", v.program_order,
                        "must be unique in the graph");
    }
    if (!positions->emplace(v.id, static_cast<int>(p)).second) {
      return FieldError(VertexPrefix(order[p]) + "id", v.id, "must be unique in the graph");
    }
  }
  return absl::OkStatus();
}

// Replaces the sender's ids by positions. Reading only what ran earlier is what makes the graph
// acyclic.
absl::Status ResolveInputs(size_t index, int position, const Positions& positions, Vertex* v) {
  for (size_t k = 0; k < v->inputs.size(); ++k) {
    GraphInput& input = v->inputs[k];
    const std::string field = absl::StrCat(VertexPrefix(index), "inputs[", k, "].vertex_id");
    const auto found = positions.find(input.vertex);
    if (found == positions.end()) {
      return FieldError(field, input.vertex, "must be the id of a vertex of the graph");
    }
    if (found->second == position) {
      return FieldError(field, input.vertex, "must not be the vertex itself");
    }
    if (found->second > position) {
      return FieldError(
          field, input.vertex,
          "must come earlier in program_order than its reader (a cycle, or a wrong order)");
    }
    input.vertex = found->second;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> Graph::Create(GraphSpec spec) {
  absl::Status status = CheckVertexFields(spec);
  if (!status.ok()) return status;
  const std::vector<size_t> order = ProgramOrder(spec);
  Positions positions;
  status = Locate(spec, order, &positions);
  if (!status.ok()) return status;

  Graph graph;
  graph.name_ = std::move(spec.name);
  graph.vertices_.reserve(order.size());
  for (size_t p = 0; p < order.size(); ++p) {
    Vertex v = std::move(spec.vertices[order[p]]);
    const int position = static_cast<int>(p);
    status = ResolveInputs(order[p], position, positions, &v);
    if (!status.ok()) return status;
    if (v.alias != AliasKind::kNone && v.inputs.empty()) {
      return FieldError(VertexPrefix(order[p]) + "alias", "set",
                        "needs an input that the vertex is an alias of");
    }
    graph.storage_.push_back(v.alias == AliasKind::kNone
                                 ? position
                                 : graph.storage_[static_cast<size_t>(v.inputs[0].vertex)]);
    graph.ideal_time_ += v.forward_time + v.backward_time;
    graph.vertices_.push_back(std::move(v));
  }
  return graph;
}

Bytes Graph::bytes(int position) const {
  return storage(position) == position ? vertex(position).output : Bytes(0);
}

}  // namespace stowage

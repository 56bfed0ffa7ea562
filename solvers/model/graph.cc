#include "solvers/model/graph.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Where a vertex of the sender's list went: ids in rising order. Not hashed, so that no ids are worse than others.
using Positions = std::vector<std::pair<int64_t, int>>;

// How the contract spells a field of a vertex.
std::string VertexPrefix(const GraphSpec& spec, size_t index) {
  return absl::StrCat(spec.has_backwards ? "graph.vertices[" : "dag.nodes[", index, "].");
}

struct NamedBytes {
  const char* field;
  Bytes value;
};

std::vector<NamedBytes> SizesOf(const Vertex& v, bool has_backwards) {
  if (!has_backwards) {
    return {{"output_bytes", v.output},
            {"workspace_bytes", v.forward_overhead},
            {"transient_parameter_bytes", v.transient_parameters}};
  }
  return {{"output_bytes", v.output},
          {"output_gradient_bytes", v.output_gradient},
          {"extra_saved_bytes", v.extra_saved},
          {"forward_saving_overhead_bytes", v.forward_saving_overhead},
          {"forward_overhead_bytes", v.forward_overhead},
          {"backward_overhead_bytes", v.backward_overhead},
          {"transient_parameter_bytes", v.transient_parameters}};
}

struct NamedNanos {
  const char* field;
  Nanos value;
};

std::vector<NamedNanos> TimesOf(const Vertex& v, bool has_backwards) {
  if (!has_backwards) return {{"time_ns", v.forward_time}};
  return {{"forward_time_ns", v.forward_time}, {"backward_time_ns", v.backward_time}};
}

absl::Status CheckFields(const Vertex& v, const std::string& prefix, bool has_backwards,
                         int64_t nanos_limit, int64_t* bytes, int64_t* nanos) {
  FieldChecks checks(prefix);
  checks.NonNegative("id", v.id);
  checks.NonNegative("program_order", v.program_order);
  checks.MaxLength("name", v.name);
  checks.MaxLength("op_kind", v.op_kind);
  for (const auto& [field, size] : SizesOf(v, has_backwards)) {
    checks.NonNegative(field, size.value());
    checks.Total(field, size.value(), kMaxTotal, "the sum of all sizes", bytes);
  }
  for (const auto& [field, time] : TimesOf(v, has_backwards)) {
    checks.NonNegative(field, time.value());
    checks.Total(field, time.value(), nanos_limit, "the sum of all times times (vertices + 2)",
                 nanos);
  }
  CheckStoppedRecompute(v, &checks);
  if (v.stops() && v.alias != AliasKind::kNone) {
    checks.Fail("recompute_saving_time_ns", v.recompute_saving_time->value(),
                "must be absent from a view and from what is written in place");
  }
  return checks.status();
}

// What a vertex of this kind cannot have. The contract has no field for it: a program made it.
absl::Status CheckKind(const Vertex& v, const std::string& prefix, bool has_backwards) {
  if (has_backwards) {
    if (!v.result) return absl::OkStatus();
    return FieldError(prefix + "result", "set", "is for the nodes of a compute DAG");
  }
  const bool needed = std::any_of(v.inputs.begin(), v.inputs.end(),
                                  [](const GraphInput& input) { return input.backward_needs; });
  if (needed || v.backward_needs_output || v.linear_multi_input || v.output_gradient != Bytes(0) ||
      v.extra_saved != Bytes(0) || v.backward_overhead != Bytes(0) ||
      (v.forward_saving_overhead != Bytes(0) && v.forward_saving_overhead != v.forward_overhead) ||
      v.backward_time != Nanos(0) || v.stops()) {
    return FieldError(prefix + "backward", "set",
                      "must be absent from a compute DAG: its backwards are nodes");
  }
  return absl::OkStatus();
}

absl::Status CheckVertexFields(const GraphSpec& spec) {
  const size_t count = spec.vertices.size();
  const char* const list = spec.has_backwards ? "graph.vertices" : "dag.nodes";
  if (count == 0) {
    return FieldError(
        list, "[]",
        absl::StrCat("must have at least one ", spec.has_backwards ? "vertex" : "node"));
  }
  if (count > Graph::kMaxVertices) {
    return FieldError(list, static_cast<int64_t>(count),
                      absl::StrCat("must have at most ", Graph::kMaxVertices,
                                   spec.has_backwards ? " vertices" : " nodes"));
  }
  const int64_t nanos_limit = kMaxTimeTotal / static_cast<int64_t>(count + 2);
  int64_t bytes = 0;
  int64_t nanos = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string prefix = VertexPrefix(spec, i);
    const Vertex& v = spec.vertices[i];
    absl::Status status = CheckFields(v, prefix, spec.has_backwards, nanos_limit, &bytes, &nanos);
    if (status.ok()) status = CheckKind(v, prefix, spec.has_backwards);
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
    positions->emplace_back(spec.vertices[order[p]].id, static_cast<int>(p));
  }
  std::sort(positions->begin(), positions->end());
  size_t again = order.size();  // the first position whose id another one has before it
  for (size_t i = 1; i < positions->size(); ++i) {
    if ((*positions)[i - 1].first != (*positions)[i].first) continue;
    again = std::min(again, static_cast<size_t>((*positions)[i].second));
  }
  for (size_t p = 0; p < order.size(); ++p) {
    const Vertex& v = spec.vertices[order[p]];
    if (p > 0 && spec.vertices[order[p - 1]].program_order == v.program_order) {
      return FieldError(VertexPrefix(spec, order[p]) + "program_order", v.program_order,
                        "must be unique in the graph");
    }
    if (p == again) {
      return FieldError(VertexPrefix(spec, order[p]) + "id", v.id, "must be unique in the graph");
    }
  }
  return absl::OkStatus();
}

// Replaces the sender's ids by positions. Reading only what ran earlier is what makes the graph
// acyclic.
absl::Status ResolveInputs(const std::string& prefix, bool has_backwards, int position,
                           const Positions& positions, Vertex* v) {
  for (size_t k = 0; k < v->inputs.size(); ++k) {
    GraphInput& input = v->inputs[k];
    const std::string field =
        absl::StrCat(prefix, "inputs[", k, has_backwards ? "].vertex_id" : "]");
    const auto found = std::lower_bound(positions.begin(), positions.end(),
                                        std::pair<int64_t, int>(input.vertex, 0));
    if (found == positions.end() || found->first != input.vertex) {
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
  graph.has_backwards_ = spec.has_backwards;
  graph.vertices_.reserve(order.size());
  for (size_t p = 0; p < order.size(); ++p) {
    Vertex v = std::move(spec.vertices[order[p]]);
    const int position = static_cast<int>(p);
    const std::string prefix = VertexPrefix(spec, order[p]);
    status = ResolveInputs(prefix, spec.has_backwards, position, positions, &v);
    if (!status.ok()) return status;
    if (v.alias != AliasKind::kNone && v.inputs.empty()) {
      return FieldError(prefix + "alias", "set", "needs an input that the vertex is an alias of");
    }
    graph.storage_.push_back(v.alias == AliasKind::kNone
                                 ? position
                                 : graph.storage_[static_cast<size_t>(v.inputs[0].vertex)]);
    // A node has one way to run.
    if (!spec.has_backwards) v.forward_saving_overhead = v.forward_overhead;
    graph.ideal_time_ += v.forward_time + v.backward_time;
    graph.stops_ = graph.stops_ || v.stops();
    graph.vertices_.push_back(std::move(v));
  }
  return graph;
}

GraphSpec Graph::spec() const {
  GraphSpec spec;
  spec.name = name_;
  spec.has_backwards = has_backwards_;
  spec.vertices = vertices_;
  for (Vertex& v : spec.vertices) {
    for (GraphInput& input : v.inputs)
      input.vertex = vertices_[static_cast<size_t>(input.vertex)].id;
  }
  return spec;
}

Bytes Graph::bytes(int position) const {
  return storage(position) == position ? vertex(position).output : Bytes(0);
}

}  // namespace stowage

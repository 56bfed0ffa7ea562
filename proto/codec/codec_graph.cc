#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec_problem.h"
#include "proto/codec/enum_map.h"

namespace stowage {
namespace {

constexpr EnumMap<v1::AliasKind, AliasKind, 3> kAliasKinds{{
    {v1::ALIAS_KIND_UNSPECIFIED, AliasKind::kNone},
    {v1::ALIAS_KIND_VIEW, AliasKind::kView},
    {v1::ALIAS_KIND_IN_PLACE, AliasKind::kInPlace},
}};

void WriteCosts(const Vertex& v, v1::Vertex* out) {
  out->set_output_bytes(v.output.value());
  out->set_output_gradient_bytes(v.output_gradient.value());
  out->set_extra_saved_bytes(v.extra_saved.value());
  out->set_forward_time_ns(v.forward_time.value());
  out->set_backward_time_ns(v.backward_time.value());
  out->set_forward_saving_overhead_bytes(v.forward_saving_overhead.value());
  out->set_forward_overhead_bytes(v.forward_overhead.value());
  out->set_backward_overhead_bytes(v.backward_overhead.value());
  out->set_transient_parameter_bytes(v.transient_parameters.value());
  WriteStoppedRecompute(v, out);
}

void ReadCosts(const v1::Vertex& message, Vertex* v) {
  v->output = Bytes(message.output_bytes());
  v->output_gradient = Bytes(message.output_gradient_bytes());
  v->extra_saved = Bytes(message.extra_saved_bytes());
  v->forward_time = Nanos(message.forward_time_ns());
  v->backward_time = Nanos(message.backward_time_ns());
  v->forward_saving_overhead = Bytes(message.forward_saving_overhead_bytes());
  v->forward_overhead = Bytes(message.forward_overhead_bytes());
  v->backward_overhead = Bytes(message.backward_overhead_bytes());
  v->transient_parameters = Bytes(message.transient_parameter_bytes());
  ReadStoppedRecompute(message, v);
}

void WriteFlags(const Vertex& v, v1::Vertex* out) {
  out->set_backward_needs_output(v.backward_needs_output);
  out->set_alias(ToWire(kAliasKinds, v.alias));
  out->set_linear_multi_input(v.linear_multi_input);
  out->set_random(v.random);
  out->set_stateful(v.stateful);
  out->set_collective(v.collective);
  out->set_must_keep(v.must_keep);
}

// All flags but the alias, which may hold a value that is not known.
void ReadFlags(const v1::Vertex& message, Vertex* v) {
  v->backward_needs_output = message.backward_needs_output();
  v->linear_multi_input = message.linear_multi_input();
  v->random = message.random();
  v->stateful = message.stateful();
  v->collective = message.collective();
  v->must_keep = message.must_keep();
}

Vertex ReadVertex(const v1::Vertex& message) {
  Vertex v;
  v.id = message.id();
  v.name = message.name();
  v.op_kind = message.op_kind();
  v.program_order = message.program_order();
  v.inputs.reserve(static_cast<size_t>(message.inputs_size()));
  for (const v1::Edge& edge : message.inputs()) {
    v.inputs.push_back({edge.vertex_id(), edge.backward_needs()});
  }
  ReadCosts(message, &v);
  ReadFlags(message, &v);
  return v;
}

// The alias of vertices[index] or nodes[index], whose list is called `list`.
template <class Message>
absl::Status ReadAlias(const std::string& list, size_t index, const Message& message, Vertex* v) {
  const std::optional<AliasKind> alias = FindNative(kAliasKinds, message.alias());
  if (!alias) return UnknownEnum(absl::StrCat(list, "[", index, "].alias"), message.alias());
  v->alias = *alias;
  return absl::OkStatus();
}

Vertex ReadNode(const v1::Node& message) {
  Vertex v;
  v.id = message.id();
  v.name = message.name();
  v.op_kind = message.op_kind();
  v.program_order = message.program_order();
  for (const int64_t input : message.inputs()) v.inputs.push_back({input, false});
  v.output = Bytes(message.output_bytes());
  v.forward_time = Nanos(message.time_ns());
  v.forward_overhead = Bytes(message.workspace_bytes());
  v.transient_parameters = Bytes(message.transient_parameter_bytes());
  v.result = message.result();
  v.random = message.random();
  v.stateful = message.stateful();
  v.collective = message.collective();
  v.must_keep = message.must_keep();
  return v;
}

}  // namespace

void WriteGraph(const Graph& graph, v1::Graph* out) {
  for (int position = 0; position < graph.size(); ++position) {
    const Vertex& v = graph.vertex(position);
    v1::Vertex* message = out->add_vertices();
    message->set_id(v.id);
    message->set_name(v.name);
    message->set_op_kind(v.op_kind);
    message->set_program_order(v.program_order);
    for (const GraphInput& input : v.inputs) {
      v1::Edge* edge = message->add_inputs();
      // In a Graph an input is a position; the contract speaks in the sender's ids.
      edge->set_vertex_id(graph.vertex(static_cast<int>(input.vertex)).id);
      edge->set_backward_needs(input.backward_needs);
    }
    WriteCosts(v, message);
    WriteFlags(v, message);
  }
}

absl::StatusOr<GraphSpec> ReadGraph(const v1::Graph& message, const std::string& name) {
  GraphSpec spec;
  spec.name = name;
  spec.vertices.reserve(static_cast<size_t>(message.vertices_size()));
  for (const v1::Vertex& vertex : message.vertices()) {
    Vertex v = ReadVertex(vertex);
    absl::Status status = ReadAlias("graph.vertices", spec.vertices.size(), vertex, &v);
    if (!status.ok()) return status;
    spec.vertices.push_back(std::move(v));
  }
  return spec;
}

void WriteDag(const Graph& dag, v1::ComputeDag* out) {
  for (const Vertex& v : dag.spec().vertices) {
    v1::Node* message = out->add_nodes();
    message->set_id(v.id);
    message->set_name(v.name);
    message->set_op_kind(v.op_kind);
    message->set_program_order(v.program_order);
    for (const GraphInput& input : v.inputs) message->add_inputs(input.vertex);
    message->set_output_bytes(v.output.value());
    message->set_time_ns(v.forward_time.value());
    message->set_workspace_bytes(v.forward_overhead.value());
    message->set_result(v.result);
    message->set_alias(ToWire(kAliasKinds, v.alias));
    message->set_random(v.random);
    message->set_stateful(v.stateful);
    message->set_collective(v.collective);
    message->set_must_keep(v.must_keep);
    message->set_transient_parameter_bytes(v.transient_parameters.value());
  }
}

absl::StatusOr<GraphSpec> ReadDag(const v1::ComputeDag& message, const std::string& name) {
  GraphSpec spec;
  spec.name = name;
  spec.has_backwards = false;
  spec.vertices.reserve(static_cast<size_t>(message.nodes_size()));
  for (const v1::Node& node : message.nodes()) {
    Vertex v = ReadNode(node);
    absl::Status status = ReadAlias("dag.nodes", spec.vertices.size(), node, &v);
    if (!status.ok()) return status;
    spec.vertices.push_back(std::move(v));
  }
  return spec;
}

}  // namespace stowage

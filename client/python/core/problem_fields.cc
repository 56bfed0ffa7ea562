#include "client/python/core/problem_fields.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/python/core/dict_fields.h"
#include "client/python/core/status_error.h"
#include "solvers/model/chain.h"
#include "solvers/model/device.h"
#include "solvers/model/field_error.h"
#include "solvers/model/graph.h"

namespace stowage {
namespace py = pybind11;

template <>
inline constexpr EnumName<Duplex> kEnumNames<Duplex>[] = {
    {Duplex::kUnspecified, "DUPLEX_UNSPECIFIED"},
    {Duplex::kHalf, "DUPLEX_HALF"},
    {Duplex::kFull, "DUPLEX_FULL"}};

template <>
inline constexpr EnumName<CostSource> kEnumNames<CostSource>[] = {
    {CostSource::kUnspecified, "COST_SOURCE_UNSPECIFIED"},
    {CostSource::kMeasured, "COST_SOURCE_MEASURED"},
    {CostSource::kModelled, "COST_SOURCE_MODELLED"},
    {CostSource::kBytesOnly, "COST_SOURCE_BYTES_ONLY"}};

template <>
inline constexpr EnumName<AliasKind> kEnumNames<AliasKind>[] = {
    {AliasKind::kNone, "ALIAS_KIND_UNSPECIFIED"},
    {AliasKind::kView, "ALIAS_KIND_VIEW"},
    {AliasKind::kInPlace, "ALIAS_KIND_IN_PLACE"}};

template <class Archive>
void Fields(Archive* fields, Device* device) {
  (*fields)("model", &device->model);
  (*fields)("framework", &device->framework);
  (*fields)("math_settings", &device->math_settings);
  (*fields)("allocation_granularity_bytes", &device->allocation_granularity);
  (*fields)("bandwidth_class", &device->bandwidth_class);
  (*fields)("duplex", &device->duplex);
  (*fields)("host_memory_bytes", &device->host_memory);
  (*fields)("to_host_bytes_per_second", &device->to_host_bytes_per_second);
  (*fields)("to_device_bytes_per_second", &device->to_device_bytes_per_second);
  (*fields)("to_host_latency_ns", &device->to_host_latency);
  (*fields)("to_device_latency_ns", &device->to_device_latency);
  (*fields)("memory_bytes", &device->memory);
}

// Stages, vertices and nodes.
template <class Archive, class Op>
void FlagFields(Archive* fields, Op* op) {
  (*fields)("random", &op->random);
  (*fields)("stateful", &op->stateful);
  (*fields)("collective", &op->collective);
  (*fields)("must_keep", &op->must_keep);
  (*fields)("transient_parameter_bytes", &op->transient_parameters);
}

// Stages and vertices.
template <class Archive, class Op>
void CostFields(Archive* fields, Op* op) {
  (*fields)("output_bytes", &op->output);
  (*fields)("output_gradient_bytes", &op->output_gradient);
  (*fields)("forward_time_ns", &op->forward_time);
  (*fields)("backward_time_ns", &op->backward_time);
  (*fields)("forward_saving_overhead_bytes", &op->forward_saving_overhead);
  (*fields)("forward_overhead_bytes", &op->forward_overhead);
  (*fields)("backward_overhead_bytes", &op->backward_overhead);
  (*fields)("recompute_saving_time_ns", &op->recompute_saving_time);
  (*fields)("recompute_saving_overhead_bytes", &op->recompute_saving_overhead);
}

template <class Archive>
void Fields(Archive* fields, Stage* stage) {
  (*fields)("name", &stage->name);
  (*fields)("op_kind", &stage->op_kind);
  CostFields(fields, stage);
  (*fields)("saved_bytes", &stage->saved);
  FlagFields(fields, stage);
  (*fields)("saved_tensor_bytes", &stage->saved_tensors);
}

template <class Archive>
void Fields(Archive* fields, ChainSpec* chain) {
  (*fields)("input_bytes", &chain->input);
  (*fields)("input_gradient_bytes", &chain->input_gradient);
  (*fields)("stages", &chain->stages);
  (*fields)("loss", &chain->loss);
}

template <class Archive>
void Fields(Archive* fields, GraphInput* input) {
  (*fields)("vertex_id", &input->vertex);
  (*fields)("backward_needs", &input->backward_needs);
}

template <class Archive, class Op>
void PlaceFields(Archive* fields, Op* op) {
  (*fields)("id", &op->id);
  (*fields)("name", &op->name);
  (*fields)("op_kind", &op->op_kind);
  (*fields)("program_order", &op->program_order);
  (*fields)("alias", &op->alias);
}

template <class Archive>
void Fields(Archive* fields, Vertex* vertex) {
  PlaceFields(fields, vertex);
  (*fields)("inputs", &vertex->inputs);
  CostFields(fields, vertex);
  (*fields)("extra_saved_bytes", &vertex->extra_saved);
  (*fields)("backward_needs_output", &vertex->backward_needs_output);
  (*fields)("linear_multi_input", &vertex->linear_multi_input);
  FlagFields(fields, vertex);
}

namespace {

// A vertex of a compute DAG, as the contract writes it.
struct DagNode {
  Vertex vertex;
  std::vector<int64_t> inputs;
};

struct GraphMessage {
  std::vector<Vertex> vertices;
};

struct DagMessage {
  std::vector<DagNode> nodes;
};

struct ProfileMessage {
  std::string name;
  Device device;
  CostSource cost_source = CostSource::kUnspecified;
  std::optional<ChainSpec> chain;
  std::optional<GraphMessage> graph;
  std::optional<DagMessage> dag;
};

template <class Archive>
void Fields(Archive* fields, DagNode* node) {
  PlaceFields(fields, &node->vertex);
  (*fields)("inputs", &node->inputs);
  (*fields)("output_bytes", &node->vertex.output);
  (*fields)("time_ns", &node->vertex.forward_time);
  (*fields)("workspace_bytes", &node->vertex.forward_overhead);
  (*fields)("result", &node->vertex.result);
  FlagFields(fields, &node->vertex);
}

template <class Archive>
void Fields(Archive* fields, GraphMessage* graph) {
  (*fields)("vertices", &graph->vertices);
}

template <class Archive>
void Fields(Archive* fields, DagMessage* dag) {
  (*fields)("nodes", &dag->nodes);
}

template <class Archive>
void Fields(Archive* fields, ProfileMessage* profile) {
  (*fields)("name", &profile->name);
  (*fields)("device", &profile->device);
  (*fields)("cost_source", &profile->cost_source);
  (*fields)("chain", &profile->chain);
  (*fields)("graph", &profile->graph);
  (*fields)("dag", &profile->dag);
}

Problem ProblemOf(ProfileMessage message) {
  const int given = message.chain.has_value() + message.graph.has_value() + message.dag.has_value();
  if (given != 1)
    Throw(FieldError("problem", given, "exactly one of chain, graph and dag must be set"));
  if (message.chain) {
    message.chain->name = message.name;
    return ValueOrThrow(Chain::Create(*std::move(message.chain)));
  }
  GraphSpec spec;
  spec.name = message.name;
  spec.has_backwards = message.graph.has_value();
  if (message.graph) {
    spec.vertices = std::move(message.graph->vertices);
  } else {
    for (DagNode& node : message.dag->nodes) {
      for (const int64_t input : node.inputs) node.vertex.inputs.push_back({input, false});
      spec.vertices.push_back(std::move(node.vertex));
    }
  }
  return ValueOrThrow(Graph::Create(std::move(spec)));
}

DagMessage DagOf(const Graph& graph) {
  DagMessage dag;
  for (Vertex& vertex : graph.spec().vertices) {
    DagNode node{std::move(vertex), {}};
    for (const GraphInput& input : node.vertex.inputs) node.inputs.push_back(input.vertex);
    dag.nodes.push_back(std::move(node));
  }
  return dag;
}

}  // namespace

Profile ProfileFromDict(const py::dict& dict) {
  ProfileMessage message;
  ReadMessage(dict, "", &message);
  if (message.device.allocation_granularity == Bytes(0)) {
    message.device.allocation_granularity = Bytes(1);  // as the contract reads it
  }
  ThrowUnlessOk(ValidateDevice(message.device));
  std::string name = message.name;
  Device device = message.device;
  const CostSource cost_source = message.cost_source;
  return {std::move(name), std::move(device), ProblemOf(std::move(message)), cost_source};
}

py::dict DictOf(const Profile& profile) {
  ProfileMessage message{profile.name, profile.device, profile.cost_source, {}, {}, {}};
  if (const Chain* chain = std::get_if<Chain>(&profile.problem)) {
    message.chain = chain->spec();
  } else {
    const Graph& graph = std::get<Graph>(profile.problem);
    if (graph.has_backwards()) {
      message.graph = GraphMessage{graph.spec().vertices};
    } else {
      message.dag = DagOf(graph);
    }
  }
  return WriteMessage(&message);
}

}  // namespace stowage

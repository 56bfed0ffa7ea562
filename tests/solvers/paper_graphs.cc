#include "tests/solvers/paper_graphs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/zoo/network_graph.h"

namespace stowage {
namespace {

constexpr int64_t kImage = 224;
constexpr int64_t kInceptionImage = 300;
constexpr int64_t kCifarImage = 32;
constexpr int64_t kCifarClasses = 10;
constexpr char kFullCatSuffix[] = "_full_cat";

PaperGraph Entry(const std::string& network, int64_t batch, int64_t image = kImage) {
  PaperGraph entry;
  entry.name = network;
  entry.network.name = network;
  entry.network.batch = batch;
  entry.network.image = image;
  return entry;
}

void AddAlexNets(std::vector<PaperGraph>* graphs) {
  graphs->push_back(Entry("alexnet", 1024));
  graphs->push_back(Entry("alexnet", 1024));
  graphs->back().name = "alexnet_folded_pool";
  graphs->back().rules.idle_pool_is_vertex = false;
}

void AddVggs(std::vector<PaperGraph>* graphs) {
  for (const char* name : {"vgg11", "vgg13", "vgg16", "vgg19"}) {
    graphs->push_back(Entry(name, 64));
    graphs->back().rules.idle_pool_is_vertex = false;
  }
}

void AddResNets(std::vector<PaperGraph>* graphs) {
  const std::pair<const char*, int64_t> batches[] = {
      {"resnet18", 256}, {"resnet34", 128}, {"resnet50", 64}, {"resnet101", 32}, {"resnet152", 16}};
  for (const auto& [name, batch] : batches) graphs->push_back(Entry(name, batch));
  graphs->push_back(Entry("resnet50", 64));
  graphs->back().name = "resnet50_jit";
  graphs->back().rules.flatten_is_vertex = true;
}

void AddDenseNets(std::vector<PaperGraph>* graphs) {
  const std::pair<const char*, int64_t> batches[] = {
      {"densenet121", 32}, {"densenet161", 16}, {"densenet169", 32}, {"densenet201", 16}};
  for (const auto& [name, batch] : batches) graphs->push_back(Entry(name, batch));
  for (const auto& [name, batch] : batches) {
    graphs->push_back(Entry(absl::StrCat(name, kFullCatSuffix), batch));
  }
}

void AddCellNetworks(std::vector<PaperGraph>* graphs) {
  for (const char* name : {"nasnet_a", "amoebanet_a", "darts_v2"}) {
    graphs->push_back(Entry(name, 64, kCifarImage));
    graphs->back().network.classes = kCifarClasses;
  }
}

// Whether the paper's graphs count the tensor of vertex i with its first input's.
bool IsFolded(const Network& network, size_t i, const FoldRules& rules) {
  const NetworkOp& op = network.ops[i];
  if (op.inputs.size() != 1) return false;
  switch (op.kind) {
    case OpKind::kDropout:
    case OpKind::kSlice:
      return true;
    case OpKind::kFlatten:
      return !rules.flatten_is_vertex;
    case OpKind::kAdaptiveAvgPool:
      return !rules.idle_pool_is_vertex && op.shape == network.ops[op.inputs.front()].shape;
    default:
      return op.in_place;
  }
}

void FoldInto(const Vertex& v, Vertex* into) {
  absl::StrAppend(&into->op_kind, "+", v.op_kind);
  into->forward_time += v.forward_time;
  into->backward_time += v.backward_time;
  into->random |= v.random;
  into->stateful |= v.stateful;
}

Vertex CountedVertex(const Vertex& v, const std::vector<size_t>& counted_as) {
  Vertex counted;
  counted.name = v.name;
  counted.op_kind = v.op_kind;
  counted.output = v.output;
  counted.forward_time = v.forward_time;
  counted.backward_time = v.backward_time;
  counted.linear_multi_input = v.linear_multi_input;
  counted.random = v.random;
  counted.stateful = v.stateful;
  for (const GraphInput& input : v.inputs) {
    const size_t read = counted_as[static_cast<size_t>(input.vertex)];
    counted.inputs.push_back({static_cast<int64_t>(read), input.backward_needs});
  }
  return counted;
}

}  // namespace

const std::vector<PaperGraph>& PaperGraphs() {
  static const auto* const kGraphs = [] {
    auto* graphs = new std::vector<PaperGraph>;
    AddAlexNets(graphs);
    AddVggs(graphs);
    AddResNets(graphs);
    AddDenseNets(graphs);
    graphs->push_back(Entry("inception_v3", 32, kInceptionImage));
    AddCellNetworks(graphs);
    return graphs;
  }();
  return *kGraphs;
}

absl::StatusOr<Graph> FoldedGraphOf(const Network& network, const FoldRules& rules,
                                    const DeviceModel& device) {
  const absl::StatusOr<Graph> graph = GraphOf(network, device);
  if (!graph.ok()) return graph.status();
  GraphSpec spec;
  spec.name = network.name;
  const size_t loss = network.stages.back().first_op;
  std::vector<size_t> counted_as;  // by op
  for (size_t i = 0; i < loss; ++i) {
    const Vertex& v = graph->vertex(static_cast<int>(i));
    if (IsFolded(network, i, rules)) {
      counted_as.push_back(counted_as[static_cast<size_t>(v.inputs.front().vertex)]);
      FoldInto(v, &spec.vertices[counted_as.back()]);
      continue;
    }
    Vertex counted = CountedVertex(v, counted_as);
    counted.id = counted.program_order = static_cast<int64_t>(spec.vertices.size());
    counted_as.push_back(spec.vertices.size());
    spec.vertices.push_back(std::move(counted));
  }
  return Graph::Create(std::move(spec));
}

absl::StatusOr<Graph> MakePaperGraph(const PaperGraph& paper_graph, const DeviceModel& device) {
  absl::StatusOr<Network> network = MakeNetwork(paper_graph.network);
  if (!network.ok()) return network.status();
  network->name = paper_graph.name;
  return FoldedGraphOf(*network, paper_graph.rules, device);
}

}  // namespace stowage

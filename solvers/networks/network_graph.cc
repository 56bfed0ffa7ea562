#include "solvers/networks/network_graph.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "solvers/networks/gradient_walk.h"
#include "solvers/networks/op_rules.h"

namespace stowage {
namespace {

AliasKind AliasOf(const NetworkOp& op) {
  if (op.in_place) return AliasKind::kInPlace;
  return op.is_view() ? AliasKind::kView : AliasKind::kNone;
}

// Vertices without times and backward overheads.
std::vector<Vertex> VerticesOf(const Network& network) {
  const std::vector<std::string> names = OpNames(network);
  std::vector<Vertex> vertices(network.ops.size());
  for (size_t i = 0; i < vertices.size(); ++i) {
    const NetworkOp& op = network.ops[i];
    const OpRules rules = RulesOf(op);
    Vertex& v = vertices[i];
    v.id = v.program_order = static_cast<int64_t>(i);
    v.name = names[i];
    v.op_kind = NameOf(op.kind);
    for (const size_t input : op.inputs) {
      v.inputs.push_back({static_cast<int64_t>(input), rules.saves_inputs});
    }
    v.output = op.bytes;
    v.output_gradient = i == 0 ? Bytes(0) : op.bytes;
    v.extra_saved = rules.extra;
    v.backward_needs_output = rules.saves_output;
    v.forward_saving_overhead = rules.forward_temporary;
    v.forward_overhead = rules.forward_temporary + rules.extra;
    v.alias = AliasOf(op);
    v.linear_multi_input = op.kind == OpKind::kAdd || op.kind == OpKind::kCat;
    v.random = op.kind == OpKind::kDropout;
    v.stateful = op.kind == OpKind::kBatchNorm;
  }
  return vertices;
}

// The gradients of a graph: one per storage, from the first backward that contributes to it to the
// end of the backward of the op that made the storage.
class GraphGradients {
 public:
  explicit GraphGradients(const Network& network) : ops_(network.ops) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      storage_.push_back(ops_[i].shares_input() ? storage_[ops_[i].inputs.front()] : i);
    }
    held_.resize(ops_.size(), false);
    Hold(ops_.size() - 1);
  }

  // With the gradients that the backward of op i makes.
  Bytes Begin(size_t i) {
    for (const size_t input : ops_[i].inputs) Hold(input);
    return live_;
  }
  void End(size_t i) {
    if (storage_[i] == i) live_ -= ops_[i].bytes;
  }

 private:
  void Hold(size_t op) {
    const size_t owner = storage_[op];
    if (held_[owner] || owner == 0) return;
    held_[owner] = true;
    live_ += ops_[owner].bytes;
  }

  const std::vector<NetworkOp>& ops_;
  std::vector<size_t> storage_;
  std::vector<bool> held_;
  Bytes live_;
};

void AddBackwardOverheads(const Network& network, std::vector<Vertex>* vertices) {
  Account account;
  Storages storages(&account);
  const size_t end = network.ops.size();
  GradientWalk autograd(network, /*first=*/1, end, &account, &storages);
  GraphGradients graph(network);
  for (size_t i = end; i-- > 1;) {
    account.RestartPeak();
    autograd.Compute(i);
    autograd.AddUp(i);
    const Bytes counted = graph.Begin(i);
    (*vertices)[i].backward_overhead = std::max(Bytes(0), account.peak() - counted);
    graph.End(i);
  }
}

}  // namespace

absl::StatusOr<Graph> GraphOf(const Network& network, const DeviceModel& device) {
  const absl::Status status = ValidateDeviceModel(device);
  if (!status.ok()) return status;
  GraphSpec spec;
  spec.name = network.name;
  spec.vertices = VerticesOf(network);
  AddBackwardOverheads(network, &spec.vertices);
  const std::vector<OpTimes> times = ModelledTimes(network, device);
  for (size_t i = 0; i < times.size(); ++i) {
    spec.vertices[i].forward_time = times[i].forward;
    spec.vertices[i].backward_time = times[i].backward;
  }
  return Graph::Create(std::move(spec));
}

}  // namespace stowage

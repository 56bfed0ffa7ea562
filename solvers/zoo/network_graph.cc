#include "solvers/zoo/network_graph.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "solvers/zoo/network_builder.h"

namespace stowage {

GradientWalk::GradientWalk(const Network& network, size_t first, size_t end, Account* account,
                           Storages* storages)
    : ops_(network.ops),
      first_(first),
      account_(account),
      storages_(storages),
      gradients_(end + 1 - first) {
  const size_t last = end - 1;
  const Bytes seed = ops_[last].bytes;
  const bool is_loss = end == ops_.size();
  gradient(last) = {true, is_loss ? storages_->New(seed) : storages_->Foreign(seed), false};
}

void GradientWalk::Compute(size_t i) {
  const NetworkOp& op = ops_[i];
  const OpRules rules = RulesOf(op);
  const Gradient of_output = gradient(i);
  const bool copies = of_output.slice && rules.wants_dense_gradient;
  Bytes temporary = rules.backward_temporary;
  if (copies) temporary += op.bytes;

  of_inputs_.clear();
  for (const size_t input : op.inputs) {
    of_inputs_.push_back(InputGradient(op, rules, input, of_output));
  }
  account_->Take(op.parameter_bytes());
  account_->Take(temporary);
  account_->Give(temporary);
  storages_->Release(of_output.storage);
}

void GradientWalk::AddUp(size_t i) {
  const NetworkOp& op = ops_[i];
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    if (of_inputs_[k].defined) Accumulate(op.inputs[k], of_inputs_[k]);
  }
  account_->Give(op.parameter_bytes());
}

GradientWalk::Gradient GradientWalk::InputGradient(const NetworkOp& op, const OpRules& rules,
                                                   size_t input, const Gradient& of_output) {
  if (input == 0) return {};
  if (!rules.passes_gradient) return {true, storages_->New(ops_[input].bytes), false};
  storages_->Hold(of_output.storage);
  // The channels of a single image lie side by side.
  const bool slices = op.kind == OpKind::kCat && op.shape.front() > 1;
  return {true, of_output.storage, of_output.slice || slices};
}

void GradientWalk::Accumulate(size_t op, const Gradient& more) {
  Gradient& sum = gradient(op);
  if (!sum.defined) {
    sum = more;
    return;
  }
  const size_t added = storages_->New(ops_[op].bytes);
  storages_->Release(sum.storage);
  storages_->Release(more.storage);
  sum = {true, added, false};
}

namespace {

// The backwards of all ops in reverse program order: which gradients are slices meanwhile.
class SliceWalk {
 public:
  explicit SliceWalk(const Network& network) : ops_(network.ops) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const bool hands_on = ops_[i].kind == OpKind::kIdentity;
      giver_.push_back(hands_on ? giver_[ops_[i].inputs.front()] : i);
      owner_.push_back(ops_[i].shares_input() ? owner_[ops_[i].inputs.front()] : i);
    }
    held_.resize(ops_.size(), Gradient::kNone);
    is_sliced_.resize(ops_.size(), false);
    for (size_t i = ops_.size(); i-- > 1;) {
      if (giver_[i] == i) Backward(i);
    }
  }

  // Whether the gradient of an op's output is ever one.
  const std::vector<bool>& is_sliced() const { return is_sliced_; }

 private:
  enum class Gradient { kNone, kWhole, kSlice };

  Gradient GivenBy(size_t i) const {
    const NetworkOp& op = ops_[i];
    // Slices of one image lie side by side.
    const bool cuts = op.kind == OpKind::kCat && op.shape.front() > 1 && op.inputs.size() > 1;
    const bool hands_on = op.kind == OpKind::kAdd && held_[i] == Gradient::kSlice;
    return cuts || hands_on ? Gradient::kSlice : Gradient::kWhole;
  }

  void Backward(size_t i) {
    const std::vector<size_t>& inputs = ops_[i].inputs;
    const Gradient given = GivenBy(i);
    for (const size_t input : inputs) {
      const size_t giver = giver_[input];
      const bool is_sum =
          held_[giver] != Gradient::kNone || std::count(inputs.begin(), inputs.end(), input) > 1;
      held_[giver] = is_sum ? Gradient::kWhole : given;
      if (held_[giver] != Gradient::kSlice) continue;
      for (const size_t of : {input, giver, owner_[input]}) is_sliced_[of] = true;
    }
  }

  const std::vector<NetworkOp>& ops_;
  std::vector<size_t> giver_;   // whose gradient it is: an identity hands on its input's
  std::vector<size_t> owner_;   // in whose memory it lives, whose profile counts its gradient, too
  std::vector<Gradient> held_;  // by giver
  std::vector<bool> is_sliced_;
};

}  // namespace

absl::StatusOr<Graph> ProfiledGraphOf(const Network& network, const DeviceModel& device) {
  const absl::StatusOr<Graph> described = GraphOf(network, device);
  if (!described.ok()) return described;
  const SliceWalk walk(network);
  GraphSpec spec;
  spec.name = described->name();
  for (int v = 0; v < described->size(); ++v) {
    Vertex vertex = described->vertex(v);
    vertex.linear_multi_input = false;
    const NetworkOp& op = network.ops[static_cast<size_t>(v)];
    if (v > 0 && walk.is_sliced()[static_cast<size_t>(v)]) {
      vertex.output_gradient = Bytes(op.bytes.value() / op.shape[1] * (op.shape[1] + 1));
    }
    spec.vertices.push_back(std::move(vertex));
  }
  return Graph::Create(std::move(spec));
}

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

#include "solvers/zoo/network_graph.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "solvers/zoo/network_builder.h"

namespace stowage {

namespace {

// Live bytes above the start, and the most there were.
class Account {
 public:
  void Take(Bytes bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  void Give(Bytes bytes) { live_ -= bytes; }
  void RestartPeak() { peak_ = live_; }
  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }

 private:
  Bytes live_;
  Bytes peak_;
};

// Memory that several may hold; it goes back to the account with the last of them.
struct Storage {
  Bytes bytes;
  int holders = 0;
  bool foreign = false;  // not of this account: the stage's input, the gradient of its output
};

class Storages {
 public:
  explicit Storages(Account* account) : account_(account) {}

  size_t New(Bytes bytes) {
    account_->Take(bytes);
    storages_.push_back({bytes, 1, false});
    return storages_.size() - 1;
  }
  size_t Foreign(Bytes bytes) {
    storages_.push_back({bytes, 1, true});
    return storages_.size() - 1;
  }
  const Storage& at(size_t storage) const { return storages_[storage]; }
  void Hold(size_t storage) { ++storages_[storage].holders; }
  void Release(size_t storage) {
    Storage& released = storages_[storage];
    if (--released.holders == 0 && !released.foreign) account_->Give(released.bytes);
  }

 private:
  Account* account_;
  std::vector<Storage> storages_;
};

// The gradient of an op's output goes when the backward of the op is done, unless others hold the same
// memory: additions hand it on as it is, concatenations in slices. Gradients of a tensor with several
// readers are added up into new memory. Gradients of parameters live until they are added to those
// that exist already.
//
// Backward through ops first..end-1 of a network: a stage, or all but the input. Op 0 needs no
// gradient, the last op of the network starts its own.
class GradientWalk {
 public:
  // Starts with the gradient of the last op. Of a stage it is its owner's memory and not the
  // account's.
  GradientWalk(const Network& network, size_t first, size_t end, Account* account,
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
  // The last op's gradient stays when its backward is done.
  void KeepFirstGradient() { storages_->Hold(gradients_.back().storage); }

  // The backward of op i up to where it has read what it saved. Ops come in reverse order, each
  // once.
  void Compute(size_t i) {
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
  // The rest of it: gradients of inputs are added to those of later readers.
  void AddUp(size_t i) {
    const NetworkOp& op = ops_[i];
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (of_inputs_[k].defined) Accumulate(op.inputs[k], of_inputs_[k]);
    }
    account_->Give(op.parameter_bytes());
  }

 private:
  // The gradient of one op's output as far as it is known.
  struct Gradient {
    bool defined = false;
    size_t storage = 0;
    bool slice = false;  // pieces of a larger tensor, not side by side
  };

  Gradient& gradient(size_t op) { return gradients_[op + 1 - first_]; }

  Gradient InputGradient(const NetworkOp& op, const OpRules& rules, size_t input,
                         const Gradient& of_output) {
    if (input == 0) return {};
    if (!rules.passes_gradient) return {true, storages_->New(ops_[input].bytes), false};
    storages_->Hold(of_output.storage);
    // The channels of a single image lie side by side.
    const bool slices = op.kind == OpKind::kCat && op.shape.front() > 1;
    return {true, of_output.storage, of_output.slice || slices};
  }

  void Accumulate(size_t op, const Gradient& more) {
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

  const std::vector<NetworkOp>& ops_;
  size_t first_;
  Account* account_;
  Storages* storages_;
  std::vector<Gradient> gradients_;  // by op, the input of the first one first
  std::vector<Gradient> of_inputs_;  // of the op between Compute and AddUp
};

class StageWalk {
 public:
  StageWalk(const Network& network, size_t stage)
      : network_(network),
        ops_(network.ops),
        stage_(network.stages[stage]),
        storages_(&account_),
        storage_(stage_.end_op - input_op()) {
    storage(input_op()) = storages_.Foreign(ops_[input_op()].bytes);
  }

  // Leaves the account with what the stage keeps.
  void Forward(bool saving) {
    for (size_t i = stage_.first_op; i < stage_.end_op; ++i) RunForward(i, saving);
  }

  // What a saving forward saved beside the output and what is not the stage's own, in that order.
  std::vector<Bytes> SavedTensors() const {
    std::vector<Bytes> sizes;
    std::vector<size_t> seen = {storage_.back()};
    const auto add = [&](size_t storage) {
      if (std::count(seen.begin(), seen.end(), storage) > 0) return;
      seen.push_back(storage);
      if (!storages_.at(storage).foreign) sizes.push_back(storages_.at(storage).bytes);
    };
    for (size_t i = stage_.first_op; i < stage_.end_op; ++i) {
      ForEachSaved(i, add);
      const OpRules rules = RulesOf(ops_[i]);
      if (rules.extra == Bytes(0)) continue;
      const Bytes each(rules.extra.value() / rules.extra_tensors);
      sizes.insert(sizes.end(), static_cast<size_t>(rules.extra_tensors), each);
    }
    return sizes;
  }

  Bytes live() const { return account_.live(); }
  Bytes peak() const { return account_.peak(); }

  // After a saving forward. Returns the most memory above that at the start.
  Bytes Backward() {
    account_ = Account();
    GradientWalk gradients(network_, stage_.first_op, stage_.end_op, &account_, &storages_);
    gradients.KeepFirstGradient();
    for (size_t i = stage_.end_op; i-- > stage_.first_op;) {
      gradients.Compute(i);
      ReleaseSaved(i);
      gradients.AddUp(i);
    }
    return account_.peak();
  }

 private:
  size_t input_op() const { return stage_.first_op - 1; }
  size_t& storage(size_t op) { return storage_[op - input_op()]; }
  size_t storage(size_t op) const { return storage_[op - input_op()]; }

  bool IsLastReader(size_t reader, size_t input) const {
    for (size_t i = reader + 1; i < stage_.end_op; ++i) {
      const std::vector<size_t>& inputs = ops_[i].inputs;
      if (std::count(inputs.begin(), inputs.end(), input) > 0) return false;
    }
    return true;
  }

  void RunForward(size_t i, bool saving) {
    const NetworkOp& op = ops_[i];
    const OpRules rules = RulesOf(op);
    if (op.shares_input()) {
      storage(i) = storage(op.inputs.front());
      storages_.Hold(storage(i));
    } else {
      storage(i) = storages_.New(op.bytes);
    }
    account_.Take(rules.extra + rules.forward_temporary);
    account_.Give(rules.forward_temporary);
    if (!saving) account_.Give(rules.extra);
    if (saving) ForEachSaved(i, [this](size_t saved) { storages_.Hold(saved); });
    std::vector<size_t> inputs = op.inputs;
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const size_t input : inputs) {
      if (IsLastReader(i, input)) storages_.Release(storage(input));
    }
  }

  // Calls `visit` with the storages of those of its inputs and its output that op i saves.
  template <class Visit>
  void ForEachSaved(size_t i, const Visit& visit) const {
    const OpRules rules = RulesOf(ops_[i]);
    if (rules.saves_output) visit(storage(i));
    if (!rules.saves_inputs) return;
    for (const size_t input : ops_[i].inputs) visit(storage(input));
  }

  void ReleaseSaved(size_t i) {
    account_.Give(RulesOf(ops_[i]).extra);
    ForEachSaved(i, [this](size_t saved) { storages_.Release(saved); });
  }

  const Network& network_;
  const std::vector<NetworkOp>& ops_;
  const NetworkStage& stage_;
  Account account_;
  Storages storages_;
  std::vector<size_t> storage_;  // by op, the stage's input first
};

}  // namespace

StageMemory MemoryOfStage(const Network& network, size_t stage) {
  StageMemory memory;
  StageWalk plain(network, stage);
  plain.Forward(/*saving=*/false);
  memory.output = plain.live();
  memory.forward_overhead = plain.peak() - plain.live();

  StageWalk saving(network, stage);
  saving.Forward(/*saving=*/true);
  memory.saved = saving.live();
  memory.saved_tensors = saving.SavedTensors();
  memory.forward_saving_overhead = saving.peak() - saving.live();
  memory.backward_overhead = saving.Backward();
  const size_t input = network.stages[stage].first_op - 1;
  memory.input_gradient = stage > 0 ? network.ops[input].bytes : Bytes(0);
  return memory;
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

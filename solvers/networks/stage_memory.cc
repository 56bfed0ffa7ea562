#include "solvers/networks/stage_memory.h"

#include <algorithm>
#include <vector>

#include "solvers/networks/op_rules.h"

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
  void Hold(size_t storage) { ++storages_[storage].holders; }
  void Release(size_t storage) {
    Storage& released = storages_[storage];
    if (--released.holders == 0 && !released.foreign) account_->Give(released.bytes);
  }

 private:
  Account* account_;
  std::vector<Storage> storages_;
};

// The gradient of one op's output as far as it is known.
struct Gradient {
  bool defined = false;
  size_t storage = 0;
  bool slice = false;  // pieces of a larger tensor, not side by side
};

class StageWalk {
 public:
  StageWalk(const Network& network, size_t stage)
      : ops_(network.ops),
        stage_(network.stages[stage]),
        has_trained_before_(stage > 0),
        is_loss_(stage + 1 == network.stages.size()),
        storages_(&account_),
        storage_(stage_.end_op - input_op()),
        gradients_(storage_.size()) {
    // Inputs of a network need no gradient, and every network trains its first op.
    storage(input_op()) = storages_.Foreign(ops_[input_op()].bytes);
  }

  // Leaves the account with what the stage keeps.
  void Forward(bool saving) {
    for (size_t i = stage_.first_op; i < stage_.end_op; ++i) RunForward(i, saving);
  }

  Bytes live() const { return account_.live(); }
  Bytes peak() const { return account_.peak(); }

  // After a saving forward. Returns the most memory above that at the start.
  Bytes Backward() {
    account_ = Account();
    const size_t last = stage_.end_op - 1;
    const Bytes seed = ops_[last].bytes;
    gradient(last) = {true, is_loss_ ? storages_.New(seed) : storages_.Foreign(seed), false};
    storages_.Hold(gradient(last).storage);  // its owner's
    for (size_t i = last; i >= stage_.first_op; --i) RunBackward(i);
    return account_.peak();
  }

 private:
  size_t input_op() const { return stage_.first_op - 1; }
  size_t& storage(size_t op) { return storage_[op - input_op()]; }
  Gradient& gradient(size_t op) { return gradients_[op - input_op()]; }
  bool NeedsGradient(size_t op) const { return op >= stage_.first_op || has_trained_before_; }

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
    if (saving) HoldSaved(i, rules);
    std::vector<size_t> inputs = op.inputs;
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const size_t input : inputs) {
      if (IsLastReader(i, input)) storages_.Release(storage(input));
    }
  }

  void HoldSaved(size_t i, const OpRules& rules) {
    if (rules.saves_output) storages_.Hold(storage(i));
    if (!rules.saves_inputs) return;
    for (const size_t input : ops_[i].inputs) storages_.Hold(storage(input));
  }

  void ReleaseSaved(size_t i, const OpRules& rules) {
    account_.Give(rules.extra);
    if (rules.saves_output) storages_.Release(storage(i));
    if (!rules.saves_inputs) return;
    for (const size_t input : ops_[i].inputs) storages_.Release(storage(input));
  }

  void RunBackward(size_t i) {
    const NetworkOp& op = ops_[i];
    const OpRules rules = RulesOf(op);
    const Gradient of_output = gradient(i);
    const bool copies = of_output.slice && rules.wants_dense_gradient;
    Bytes temporary = rules.backward_temporary;
    if (copies) temporary += op.bytes;

    std::vector<Gradient> of_inputs;
    for (const size_t input : op.inputs)
      of_inputs.push_back(InputGradient(op, rules, input, of_output));
    account_.Take(op.parameter_bytes());
    account_.Take(temporary);
    account_.Give(temporary);
    storages_.Release(of_output.storage);
    ReleaseSaved(i, rules);
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (of_inputs[k].defined) Accumulate(op.inputs[k], of_inputs[k]);
    }
    account_.Give(op.parameter_bytes());
  }

  Gradient InputGradient(const NetworkOp& op, const OpRules& rules, size_t input,
                         const Gradient& of_output) {
    if (!NeedsGradient(input)) return {};
    if (!rules.passes_gradient) return {true, storages_.New(ops_[input].bytes), false};
    storages_.Hold(of_output.storage);
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
    const size_t added = storages_.New(ops_[op].bytes);
    storages_.Release(sum.storage);
    storages_.Release(more.storage);
    sum = {true, added, false};
  }

  const std::vector<NetworkOp>& ops_;
  const NetworkStage& stage_;
  const bool has_trained_before_;
  const bool is_loss_;
  Account account_;
  Storages storages_;
  std::vector<size_t> storage_;      // by op, the stage's input first
  std::vector<Gradient> gradients_;  // likewise
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
  memory.forward_saving_overhead = saving.peak() - saving.live();
  memory.backward_overhead = saving.Backward();
  const size_t input = network.stages[stage].first_op - 1;
  memory.input_gradient = stage > 0 ? network.ops[input].bytes : Bytes(0);
  return memory;
}

}  // namespace stowage

#include "solvers/networks/stage_memory.h"

#include <algorithm>
#include <vector>

#include "solvers/networks/gradient_walk.h"
#include "solvers/networks/op_rules.h"

namespace stowage {
namespace {

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

}  // namespace stowage

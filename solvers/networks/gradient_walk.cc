#include "solvers/networks/gradient_walk.h"

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

}  // namespace stowage

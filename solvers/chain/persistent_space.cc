#include "solvers/chain/persistent_space.h"

#include <algorithm>
#include <numeric>

namespace stowage {

PersistentSpace::PersistentSpace(const Chain& chain, int64_t unit, Rounding rounding)
    : last_(chain.length() + 1) {
  const auto slots = [unit, rounding](Bytes size) {
    const int64_t rest = size.value() % unit;
    const bool up = rounding == Rounding::kUp ? rest != 0 : rest >= unit - rest;
    return size.value() / unit + (up ? 1 : 0);
  };
  const size_t count = static_cast<size_t>(last_) + 1;
  for (std::vector<int64_t>* v :
       {&activation_, &saved_, &gradient_, &saving_overhead_, &plain_overhead_, &backward_overhead_,
        &forward_prefix_, &kept_prefix_}) {
    v->resize(count);
  }
  activation_[0] = slots(chain.activation(0));
  gradient_[0] = slots(chain.gradient(0));
  for (int l = 1; l <= last_; ++l) {
    const Stage& stage = chain.stage(l);
    const size_t i = static_cast<size_t>(l);
    activation_[i] = slots(stage.output);
    saved_[i] = slots(stage.saved);
    gradient_[i] = slots(stage.output_gradient);
    saving_overhead_[i] = slots(stage.forward_saving_overhead);
    plain_overhead_[i] = slots(stage.forward_overhead);
    backward_overhead_[i] = slots(stage.backward_overhead);
    forward_prefix_[i] = forward_prefix_[i - 1] + stage.forward_time.value();
    kept_prefix_[i] = kept_prefix_[i - 1] + (stage.recomputable() ? 0 : 1);
  }
}

std::array<int64_t, 8> PersistentSpace::StageKey(int s) const {
  return {ForwardTime(s, s),
          Recomputable(s, s) ? 1 : 0,
          activation(s),
          saved(s),
          gradient(s),
          at(saving_overhead_, s),
          at(plain_overhead_, s),
          at(backward_overhead_, s)};
}

int64_t PersistentSpace::FirstRunNeed(int s) const {
  return activation(s) + at(plain_overhead_, s);
}

int64_t PersistentSpace::ExtendRunNeed(int64_t need, int stage) const {
  return std::max(need, activation(stage - 1) + activation(stage) + at(plain_overhead_, stage));
}

int64_t CommonUnit(const Chain& chain) {
  int64_t unit = std::gcd(chain.activation(0).value(), chain.gradient(0).value());
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    for (const Bytes size : {s.output, s.saved, s.output_gradient, s.forward_saving_overhead,
                             s.forward_overhead, s.backward_overhead}) {
      unit = std::gcd(unit, size.value());
    }
  }
  return std::max<int64_t>(unit, 1);
}

int64_t LeastBudgetOf(const PersistentSpace& space, const LeastMemory& least) {
  // Beside the recurrence: delta^0 alone is left at the end.
  return std::max(space.activation(0) + least.table(1, space.last()).memory,
                  space.input_gradient());
}

}  // namespace stowage

#include "solvers/chain/persistent_space.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// Some seconds of one core.
constexpr double kMaxLeastMemorySteps = 5e9;

LeastMemory::Entry LeastOf(const PersistentSpace& space,
                           const IntervalTable<LeastMemory::Entry>& table, int s, int t) {
  LeastMemory::Entry best;
  best.memory = space.KeepAllNeed(s, t);
  if (s == t) return best;
  best.memory = std::max(best.memory, space.saved(s) + table(s + 1, t).memory);
  int64_t run_need = space.FirstRunNeed(s);
  for (int split = s + 1; split <= t && space.Recomputable(s, split - 1); ++split) {
    if (split > s + 1) run_need = space.ExtendRunNeed(run_need, split - 1);
    const int64_t inner = space.activation(split - 1) + table(split, t).memory;
    const int64_t need =
        std::max({space.gradient(t) + run_need, inner, table(s, split - 1).memory});
    if (need < best.memory) best = {need, split};
  }
  return best;
}

}  // namespace

PersistentSpace::PersistentSpace(const Chain& chain, int64_t unit) : last_(chain.length() + 1) {
  const auto slots = [unit](Bytes size) {
    return size.value() / unit + (size.value() % unit != 0 ? 1 : 0);
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

int64_t PersistentSpace::KeepAllNeed(int s, int t) const {
  return std::max(gradient(t) + saved(s) + at(saving_overhead_, s),
                  gradient(s) + saved(s) + at(backward_overhead_, s));
}

int64_t PersistentSpace::FirstRunNeed(int s) const {
  return activation(s) + at(plain_overhead_, s);
}

int64_t PersistentSpace::ExtendRunNeed(int64_t need, int stage) const {
  return std::max(need, activation(stage - 1) + activation(stage) + at(plain_overhead_, stage));
}

absl::StatusOr<LeastMemory> ComputeLeastMemory(const PersistentSpace& space,
                                               const SolveOptions& options) {
  const int last = space.last();
  const int64_t bytes = IntervalTable<LeastMemory::Entry>::SizeBytes(last);
  const double steps = static_cast<double>(last) * last * last / 6.0;
  if (bytes > options.table_limit.value() || steps > kMaxLeastMemorySteps) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the least memory of ", last, " stages takes ", bytes, " bytes of ",
        options.table_limit.value(), " and ", steps, " steps of ", kMaxLeastMemorySteps));
  }
  LeastMemory least{IntervalTable<LeastMemory::Entry>(last)};
  StopPoll poll(options.stop);
  for (int length = 0; length < last; ++length) {
    for (int s = 1; s + length <= last; ++s) {
      // Tables of long chains miss the caches: a step there is worth some of the poll's.
      absl::Status status = poll.Spend(int64_t{8} * (length + 1));
      if (!status.ok()) return status;
      least.table(s, s + length) = LeastOf(space, least.table, s, s + length);
    }
  }
  return least;
}

int64_t LeastBudgetOf(const PersistentSpace& space, const LeastMemory& least) {
  // Beside the recurrence: delta^0 alone is left at the end.
  return std::max(space.activation(0) + least.table(1, space.last()).memory,
                  space.input_gradient());
}

}  // namespace stowage

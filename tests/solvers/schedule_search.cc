#include "tests/solvers/schedule_search.h"

#include <vector>

#include "tests/solvers/state_search.h"

namespace stowage::testing {
namespace {

constexpr int kBits = 12;  // stages with a^0 and the loss

// What is held, as bit sets over stages, which stages that must be kept have run, and the gradient.
struct HeldInChain {
  uint32_t plain = 1;  // a^0
  uint32_t saved = 0;
  uint32_t ran = 0;
  int gradient = 0;
  bool stopped = false;  // saved `gradient` is there without the output: its backward comes next

  uint64_t Key() const {
    return plain | uint64_t{saved} << kBits | uint64_t{ran} << (2 * kBits) |
           static_cast<uint64_t>(gradient) << (3 * kBits) | uint64_t{stopped} << 60;
  }
};

bool Has(uint32_t set, int l) { return (set >> l & 1u) != 0; }
uint32_t Bit(int l) { return 1u << l; }

class ChainRules {
 public:
  using State = HeldInChain;
  using Step = SearchStep<State>;

  explicit ChainRules(const Chain& chain) : chain_(chain), loss_(chain.length() + 1) {}

  State Start() const {
    State start;
    start.gradient = loss_;
    return start;
  }

  bool Done(const State& s) const { return s.gradient == 0; }

  int64_t Memory(const State& s) const {
    int64_t sum = chain_.gradient(s.gradient).value();
    for (int l = 0; l <= loss_; ++l) {
      if (Has(s.plain, l)) sum += chain_.activation(l).value();
      if (l > 0 && Has(s.saved, l)) sum += chain_.stage(l).saved.value();
    }
    if (s.stopped) sum -= chain_.activation(s.gradient).value();
    return sum;
  }

  std::vector<Step> Steps(const State& s) const {
    std::vector<Step> steps;
    if (s.stopped) {
      AddBackward(s, &steps);
      return steps;
    }
    for (int l = 0; l <= loss_; ++l) AddDrops(s, l, &steps);
    // What is made above the next backward nothing can use.
    for (int l = 1; l <= s.gradient; ++l) {
      if (Has(s.plain, l - 1) || Has(s.saved, l - 1)) AddRuns(s, l, &steps);
    }
    return steps;
  }

 private:
  void AddDrops(const State& s, int l, std::vector<Step>* steps) const {
    if (Has(s.plain, l)) {
      State next = s;
      next.plain &= ~Bit(l);
      steps->push_back({next, Discard(TensorKind::kActivation, l), 0, Memory(s)});
    }
    if (!Has(s.saved, l)) return;
    State next = s;
    next.saved &= ~Bit(l);
    steps->push_back({next, Discard(TensorKind::kSaved, l), 0, Memory(s)});
    if (Has(s.plain, l)) return;
    next.plain |= Bit(l);
    steps->push_back({next, DropSavedKeepOutput(l), 0, Memory(s)});
  }

  void AddBackward(const State& s, std::vector<Step>* steps) const {
    const int l = s.gradient;
    const Stage& stage = chain_.stage(l);
    State next = s;
    next.saved &= ~Bit(l);
    next.plain &= ~Bit(l - 1);
    next.gradient = l - 1;
    next.stopped = false;
    steps->push_back({next, Backward(l), stage.backward_time.value(),
                      Memory(s) + stage.backward_overhead.value()});
  }

  // Of the stage whose backward is next, which has run before.
  void AddStopped(const State& s, std::vector<Step>* steps) const {
    const int l = s.gradient;
    const Stage& stage = chain_.stage(l);
    if (!stage.recompute_saving_time || !stage.recomputable()) return;
    State next = s;
    next.saved |= Bit(l);
    next.stopped = true;
    const Bytes as_others = stage.output + stage.forward_saving_overhead;
    steps->push_back({next, ForwardSave(l), stage.recompute_saving_time->value(),
                      Memory(next) + stage.recompute_saving_overhead.value_or(as_others).value()});
  }

  // Forwards and the backward of stage l, whose input is held. A forward that drops its input is
  // one that keeps it and a discard.
  void AddRuns(const State& s, int l, std::vector<Step>* steps) const {
    const Stage& stage = chain_.stage(l);
    const int64_t held = Memory(s);
    if (s.gradient == l && Has(s.saved, l)) AddBackward(s, steps);
    if (s.gradient == l && !Has(s.saved, l)) AddStopped(s, steps);
    if (!stage.recomputable() && Has(s.ran, l)) return;
    State next = s;
    if (!stage.recomputable()) next.ran |= Bit(l);
    if (!Has(s.plain, l)) {
      State keep = next;
      keep.plain |= Bit(l);
      steps->push_back({keep, ForwardNoSave(l), stage.forward_time.value(),
                        held + stage.output.value() + stage.forward_overhead.value()});
    }
    if (Has(s.saved, l)) return;
    next.saved |= Bit(l);
    steps->push_back({next, ForwardSave(l), stage.forward_time.value(),
                      held + stage.saved.value() + stage.forward_saving_overhead.value()});
  }

  const Chain& chain_;
  const int loss_;
};

}  // namespace

std::optional<FoundSchedule> SearchSchedules(const Chain& chain, int64_t budget) {
  const ChainRules rules(chain);
  return StateSearch<ChainRules>(rules, budget).Run();
}

std::map<int64_t, int64_t> ScheduleFrontier(const Chain& chain) {
  const ChainRules rules(chain);
  return SearchFrontier(rules, rules.Memory(rules.Start()), chain.ideal_time().value());
}

}  // namespace stowage::testing

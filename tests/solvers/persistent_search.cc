#include "tests/solvers/persistent_search.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <vector>

namespace stowage::testing {
namespace {

// What is held, as bit sets over stages; `fresh` is the stage whose plain output the last operation
// made, or -1.
struct State {
  uint32_t plain = 1;  // a^0
  uint32_t saved = 0;
  uint32_t ran = 0;
  int gradient = 0;
  int fresh = -1;

  auto Key() const { return std::tie(plain, saved, ran, gradient, fresh); }
  friend bool operator<(const State& a, const State& b) { return a.Key() < b.Key(); }
};

struct Step {
  State next;
  int64_t time;
  int64_t running;  // memory while it runs
};

class Search {
 public:
  Search(const Chain& chain, Recompute recompute, Saving saving)
      : chain_(chain), loss_(chain.length() + 1), recompute_(recompute), saving_(saving) {}

  // Dijkstra's algorithm over what is held, with a label (time, peak) for every peak that a state
  // is reached with at less time than with any smaller one.
  std::map<int64_t, int64_t> Frontier() const {
    using Label = std::tuple<int64_t, int64_t, State>;  // time, peak, state
    std::priority_queue<Label, std::vector<Label>, std::greater<Label>> open;
    std::map<State, int64_t> least_peak;
    std::map<int64_t, int64_t> frontier;
    State start;
    start.gradient = loss_;
    open.push({0, Memory(start), start});
    while (!open.empty()) {
      const auto [time, peak, state] = open.top();
      open.pop();
      // Times come in order: a label is worth its while only if its peak is the least so far.
      const auto [known, is_new] = least_peak.insert({state, peak});
      if (!is_new && known->second <= peak) continue;
      known->second = peak;
      if (state.gradient == 0) {
        if (frontier.empty() || peak < frontier.begin()->first) frontier[peak] = time;
        continue;
      }
      for (const Step& step : Steps(state)) {
        const int64_t next_peak = std::max({peak, step.running, Memory(step.next)});
        const auto next = least_peak.find(step.next);
        if (next != least_peak.end() && next->second <= next_peak) continue;
        open.push({time + step.time, next_peak, step.next});
      }
    }
    return frontier;
  }

 private:
  static bool Has(uint32_t set, int l) { return (set >> l & 1u) != 0; }

  int64_t Memory(const State& s) const {
    int64_t sum = chain_.gradient(s.gradient).value();
    for (int l = 0; l <= loss_; ++l) {
      if (Has(s.plain, l)) sum += chain_.activation(l).value();
      if (l > 0 && Has(s.saved, l)) sum += chain_.stage(l).saved.value();
    }
    return sum;
  }

  std::vector<Step> Steps(const State& s) const {
    std::vector<Step> steps;
    for (int l = 1; l <= s.gradient; ++l) {
      if (!Has(s.plain, l - 1) && !Has(s.saved, l - 1)) continue;
      if (recompute_ == Recompute::kAnyTime || !HoldsBetween(s, l, s.gradient - 1))
        AddForwards(s, l, &steps);
      if (l == s.gradient && Has(s.saved, l)) steps.push_back(RunBackward(s, l));
    }
    return steps;
  }

  static bool HoldsBetween(const State& s, int first, int last) {
    for (int l = first; l <= last; ++l) {
      if (Has(s.plain, l) || Has(s.saved, l)) return true;
    }
    return false;
  }

  void AddForwards(const State& s, int l, std::vector<Step>* steps) const {
    const Stage& stage = chain_.stage(l);
    if (Has(s.ran, l) && !stage.recomputable()) return;
    State next = s;
    if (!stage.recomputable()) next.ran |= 1u << l;
    if (!Has(s.saved, l) && (saving_ == Saving::kAhead || l == s.gradient)) {
      State all = next;
      all.saved |= 1u << l;
      all.fresh = -1;
      if (l == s.gradient && stage.stops()) steps->push_back(StopAndRunBackward(s, all, l));
      steps->push_back({all, stage.forward_time.value(),
                        Memory(s) + stage.saved.value() + stage.forward_saving_overhead.value()});
    }
    if (Has(s.plain, l)) return;
    next.plain |= 1u << l;
    next.fresh = l;
    const int64_t running = Memory(s) + stage.output.value() + stage.forward_overhead.value();
    steps->push_back({next, stage.forward_time.value(), running});
    if (s.fresh == l - 1) {
      next.plain &= ~(1u << (l - 1));
      steps->push_back({next, stage.forward_time.value(), running});
    }
  }

  // A recompute that stops early, and the backward that it runs right before. `made`: the state after it, had it gone on.
  Step StopAndRunBackward(const State& s, const State& made, int l) const {
    const Stage& stage = chain_.stage(l);
    const int64_t saved = Memory(s) + (stage.saved - stage.output).value();
    const Bytes as_others = stage.output + stage.forward_saving_overhead;
    Step step = RunBackward(made, l);
    step.time += stage.recompute_saving_time->value();
    step.running = saved + std::max(stage.recompute_saving_overhead.value_or(as_others),
                                    stage.backward_overhead)
                               .value();
    return step;
  }

  Step RunBackward(const State& s, int l) const {
    State next = s;
    next.saved &= ~(1u << l);
    next.plain &= ~(1u << (l - 1));
    next.gradient = l - 1;
    next.fresh = -1;
    return {next, chain_.stage(l).backward_time.value(),
            Memory(s) + chain_.stage(l).backward_overhead.value()};
  }

  const Chain& chain_;
  const int loss_;
  const Recompute recompute_;
  const Saving saving_;
};

}  // namespace

std::map<int64_t, int64_t> PersistentFrontier(const Chain& chain, Recompute recompute,
                                              Saving saving) {
  return Search(chain, recompute, saving).Frontier();
}

}  // namespace stowage::testing

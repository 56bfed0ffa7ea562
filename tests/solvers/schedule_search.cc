#include "tests/solvers/schedule_search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stowage::testing {
namespace {

constexpr int kBits = 12;  // stages with a^0 and the loss

// What is held, as bit sets over stages, which stages that must be kept have run, and the gradient.
struct State {
  uint32_t plain = 1;  // a^0
  uint32_t saved = 0;
  uint32_t ran = 0;
  int gradient = 0;

  uint64_t Key() const {
    return plain | uint64_t{saved} << kBits | uint64_t{ran} << (2 * kBits) |
           static_cast<uint64_t>(gradient) << (3 * kBits);
  }
};

struct Step {
  State next;
  Instruction instruction;
  int64_t time;
  int64_t running;  // memory while it runs
};

bool Has(uint32_t set, int l) { return (set >> l & 1u) != 0; }
uint32_t Bit(int l) { return 1u << l; }

class Search {
 public:
  Search(const Chain& chain, int64_t budget)
      : chain_(chain), loss_(chain.length() + 1), budget_(budget) {}

  std::optional<FastestSchedule> Run() {
    State start;
    start.gradient = loss_;
    if (Memory(start) > budget_) return std::nullopt;
    Reach({start, {}, 0, 0}, 0, start.Key());
    while (!open_.empty()) {
      const auto [time, key] = open_.top();
      open_.pop();
      const Reached& reached = reached_.at(key);
      if (reached.time < time) continue;
      const State state = reached.step.next;
      if (state.gradient == 0) return FastestSchedule{time, Path(key)};
      for (const Step& step : Steps(state)) {
        if (step.running <= budget_ && Memory(step.next) <= budget_) {
          Reach(step, time + step.time, key);
        }
      }
    }
    return std::nullopt;
  }

  // The least memory above `budget` that any state or operation within reach takes.
  std::optional<int64_t> NextMemory() const {
    std::optional<int64_t> least;
    for (const auto& [key, reached] : reached_) {
      const State& state = reached.step.next;
      if (state.gradient == 0) continue;
      for (const Step& step : Steps(state)) {
        const int64_t memory = std::max(step.running, Memory(step.next));
        if (memory > budget_ && (!least || memory < *least)) least = memory;
      }
    }
    return least;
  }

 private:
  struct Reached {
    Step step;  // the last
    int64_t time;
    uint64_t before;
  };

  void Reach(const Step& step, int64_t time, uint64_t before) {
    const uint64_t key = step.next.Key();
    const auto [it, is_new] = reached_.try_emplace(key, Reached{step, time, before});
    if (!is_new) {
      if (it->second.time <= time) return;
      it->second = {step, time, before};
    }
    open_.push({time, key});
  }

  Schedule Path(uint64_t key) const {
    Schedule schedule;
    for (const Reached* r = &reached_.at(key); r->before != key; r = &reached_.at(key)) {
      schedule.push_back(r->step.instruction);
      key = r->before;
    }
    std::reverse(schedule.begin(), schedule.end());
    return schedule;
  }

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
    for (int l = 0; l <= loss_; ++l) AddDrops(s, l, &steps);
    // What is made above the next backward nothing can use.
    for (int l = 1; l <= s.gradient; ++l) {
      if (Has(s.plain, l - 1) || Has(s.saved, l - 1)) AddRuns(s, l, &steps);
    }
    return steps;
  }

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
    steps->push_back({next, Reduce(l), 0, Memory(s)});
  }

  // Forwards and the backward of stage l, whose input is held. A forward that drops its input is
  // one that keeps it and a discard.
  void AddRuns(const State& s, int l, std::vector<Step>* steps) const {
    const Stage& stage = chain_.stage(l);
    const int64_t held = Memory(s);
    if (s.gradient == l && Has(s.saved, l)) {
      State next = s;
      next.saved &= ~Bit(l);
      next.plain &= ~Bit(l - 1);
      next.gradient = l - 1;
      steps->push_back(
          {next, Backward(l), stage.backward_time.value(), held + stage.backward_overhead.value()});
    }
    if (!stage.recomputable() && Has(s.ran, l)) return;
    State next = s;
    if (!stage.recomputable()) next.ran |= Bit(l);
    if (!Has(s.plain, l)) {
      State keep = next;
      keep.plain |= Bit(l);
      steps->push_back({keep, ForwardKeepInput(l), stage.forward_time.value(),
                        held + stage.output.value() + stage.forward_overhead.value()});
    }
    if (Has(s.saved, l)) return;
    next.saved |= Bit(l);
    steps->push_back({next, ForwardKeepAll(l), stage.forward_time.value(),
                      held + stage.saved.value() + stage.forward_saving_overhead.value()});
  }

  using Item = std::pair<int64_t, uint64_t>;

  const Chain& chain_;
  const int loss_;
  const int64_t budget_;
  std::priority_queue<Item, std::vector<Item>, std::greater<Item>> open_;
  std::unordered_map<uint64_t, Reached> reached_;
};

}  // namespace

std::optional<FastestSchedule> SearchSchedules(const Chain& chain, int64_t budget) {
  return Search(chain, budget).Run();
}

std::map<int64_t, int64_t> ScheduleFrontier(const Chain& chain) {
  std::map<int64_t, int64_t> frontier;
  std::optional<int64_t> before;
  std::optional<int64_t> budget =
      chain.activation(0).value() + chain.gradient(chain.length() + 1).value();
  while (budget) {
    Search search(chain, *budget);
    const std::optional<FastestSchedule> fastest = search.Run();
    if (fastest && before != fastest->makespan) frontier[*budget] = fastest->makespan;
    if (fastest) before = fastest->makespan;
    if (before == chain.ideal_time().value()) break;
    budget = search.NextMemory();
  }
  return frontier;
}

}  // namespace stowage::testing

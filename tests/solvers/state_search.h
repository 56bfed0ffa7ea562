// Dijkstra's algorithm over the states of a replay: what is held and what is still to be done. The
// rules say what the states are and which instructions lead from one to the next; this knows nothing
// of chains or graphs.
//
// Rules has a type State with `uint64_t Key() const`, and
//   State Start() const;
//   bool Done(const State&) const;
//   int64_t Memory(const State&) const;                    // held
//   std::vector<SearchStep<State>> Steps(const State&) const;  // that are valid, at any budget
#ifndef STOWAGE_TESTS_SOLVERS_STATE_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_STATE_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "solvers/schedule/schedule.h"
#include "tests/solvers/schedule_search.h"

namespace stowage::testing {

template <class State>
struct SearchStep {
  State next;
  Instruction instruction;
  int64_t time;
  int64_t running;  // memory while it runs
};

template <class Rules>
class StateSearch {
 public:
  using State = typename Rules::State;
  using Step = SearchStep<State>;

  StateSearch(const Rules& rules, int64_t budget) : rules_(rules), budget_(budget) {}

  std::optional<FoundSchedule> Run() {
    const State start = rules_.Start();
    if (rules_.Memory(start) > budget_) return std::nullopt;
    Reach({start, {}, 0, 0}, 0, start.Key());
    while (!open_.empty()) {
      const auto [time, key] = open_.top();
      open_.pop();
      const Reached& reached = reached_.at(key);
      if (reached.time < time) continue;
      const State state = reached.step.next;
      if (rules_.Done(state)) return FoundSchedule{time, Path(key)};
      for (const Step& step : rules_.Steps(state)) {
        if (step.running <= budget_ && rules_.Memory(step.next) <= budget_) {
          Reach(step, time + step.time, key);
        }
      }
    }
    return std::nullopt;
  }

  // The least memory above the budget that any state or operation within reach takes.
  std::optional<int64_t> NextMemory() const {
    std::optional<int64_t> least;
    for (const auto& [key, reached] : reached_) {
      const State& state = reached.step.next;
      if (rules_.Done(state)) continue;
      for (const Step& step : rules_.Steps(state)) {
        const int64_t memory = std::max(step.running, rules_.Memory(step.next));
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

  using Item = std::pair<int64_t, uint64_t>;

  const Rules& rules_;
  const int64_t budget_;
  std::priority_queue<Item, std::vector<Item>, std::greater<Item>> open_;
  std::unordered_map<uint64_t, Reached> reached_;
};

// Peak -> least makespan with that peak or less, for every peak from `budget` on at which the
// makespan changes, down to the ideal time.
template <class Rules>
std::map<int64_t, int64_t> SearchFrontier(const Rules& rules, std::optional<int64_t> budget,
                                          int64_t ideal_time) {
  std::map<int64_t, int64_t> frontier;
  std::optional<int64_t> before;
  while (budget) {
    StateSearch<Rules> search(rules, *budget);
    const std::optional<FoundSchedule> fastest = search.Run();
    if (fastest && before != fastest->makespan) frontier[*budget] = fastest->makespan;
    if (fastest) before = fastest->makespan;
    if (before == ideal_time) break;
    budget = search.NextMemory();
  }
  return frontier;
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_STATE_SEARCH_H_

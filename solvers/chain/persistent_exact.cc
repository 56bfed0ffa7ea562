#include "solvers/chain/persistent_exact.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace stowage {
namespace {

// Depth of the recursion is at most the number of stages; longer chains are not for this solver.
constexpr int kMaxStages = 2000;

struct State {
  int s;
  int t;
  int64_t memory;

  friend bool operator==(const State& a, const State& b) {
    return a.s == b.s && a.t == b.t && a.memory == b.memory;
  }
  template <class H>
  friend H AbslHashValue(H state, const State& v) {
    return H::combine(std::move(state), v.s, v.t, v.memory);
  }
};

struct Choice {
  int64_t excess = kNever;  // time above the ideal
  int split = 0;
};

class ExactSolver {
 public:
  ExactSolver(const PersistentSpace& space, const LeastMemory& least, const ExactLimits& limits,
              const SolveOptions& options)
      : space_(space),
        least_(least),
        all_kept_(space.last()),
        limits_(limits),
        poll_(options.stop) {
    for (int t = 1; t <= space.last(); ++t) {
      all_kept_(t, t) = space.KeepAllNeed(t, t);
      for (int s = t - 1; s >= 1; --s) {
        all_kept_(s, t) = std::max(space.KeepAllNeed(s, t), space.saved(s) + all_kept_(s + 1, t));
      }
    }
  }

  // Least excess of the interval within `memory`. Meaningless once status() is not OK or
  // exhausted() is true.
  int64_t Solve(int s, int t, int64_t memory) {
    if (memory < least_.table(s, t).memory) return kNever;
    if (memory >= all_kept_(s, t)) return 0;
    const State state{s, t, memory};
    if (const auto found = choices_.find(state); found != choices_.end())
      return found->second.excess;
    if (++states_ > limits_.states) exhausted_ = true;
    if (Over()) return kNever;
    const Choice choice = Best(s, t, memory);
    if (Over()) return kNever;
    choices_[state] = choice;
    return choice.excess;
  }

  Schedule Backtrack(int64_t memory) const {
    return PersistentBacktrack::Run(space_, memory, [this](int s, int t, int64_t m) {
      if (m >= all_kept_(s, t)) return 0;
      return choices_.at(State{s, t, m}).split;
    });
  }

  bool exhausted() const { return exhausted_; }
  const absl::Status& status() const { return status_; }

 private:
  Choice Best(int s, int t, int64_t memory) {
    Choice best;
    if (memory >= space_.KeepAllNeed(s, t)) best.excess = Solve(s + 1, t, memory - space_.saved(s));
    int64_t run_need = space_.FirstRunNeed(s);
    for (int split = s + 1; split <= t && space_.Recomputable(s, split - 1); ++split) {
      if (split > s + 1) run_need = space_.ExtendRunNeed(run_need, split - 1);
      if (memory < space_.gradient(t) + run_need) break;  // the need grows with the split
      Step();
      if (Over()) break;
      const int64_t run = space_.ForwardTime(s, split - 1);
      if (run >= best.excess) break;  // so does the time
      const int64_t right = Solve(split, t, memory - space_.activation(split - 1));
      if (run + right >= best.excess) continue;
      const int64_t total = run + right + Solve(s, split - 1, memory);
      if (total < best.excess) best = {total, split};
    }
    return best;
  }

  void Step() {
    if (++steps_ > limits_.steps) exhausted_ = true;
    // A step with its look-up takes as long as some tens of the poll's.
    if (status_.ok()) status_ = poll_.Spend(32);
  }

  bool Over() const { return exhausted_ || !status_.ok(); }

  const PersistentSpace& space_;
  const LeastMemory& least_;
  IntervalTable<int64_t> all_kept_;
  const ExactLimits limits_;
  StopPoll poll_;
  absl::flat_hash_map<State, Choice> choices_;
  int64_t states_ = 0;
  int64_t steps_ = 0;
  bool exhausted_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::optional<Schedule>> SolvePersistentExactly(const PersistentSpace& space,
                                                               const LeastMemory& least,
                                                               int64_t memory,
                                                               const ExactLimits& limits,
                                                               const SolveOptions& options) {
  if (space.last() > kMaxStages) return std::optional<Schedule>();
  ExactSolver solver(space, least, limits, options);
  solver.Solve(1, space.last(), memory);
  if (!solver.status().ok()) return solver.status();
  if (solver.exhausted()) return std::optional<Schedule>();
  return std::optional<Schedule>(solver.Backtrack(memory));
}

}  // namespace stowage

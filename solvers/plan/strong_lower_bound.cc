#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "solvers/plan/bound_needs.h"
#include "solvers/plan/lower_bound.h"

namespace stowage {
namespace {

constexpr int kMaxStages = 1000;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Stages below l are decided.
struct State {
  int64_t memory = kNone;   // held of them at every later moment outside their last segment
  int64_t time = kNone;     // of repeated forwards
  int64_t segment = kNone;  // held of them at the moments of l if l goes on with their last segment
};

// States by memory: of those in one bucket, the least times are kept apart and the rest merged.
class StateSet {
 public:
  explicit StateSet(int64_t max_memory)
      : buckets_(static_cast<size_t>(std::min(max_memory + 1, kMaxBuckets))),
        per_byte_(static_cast<double>(buckets_.size()) / (static_cast<double>(max_memory) + 1.0)) {}

  void Add(State state) {
    const double position = static_cast<double>(state.memory) * per_byte_;
    Bucket& bucket = buckets_[std::min(static_cast<size_t>(position), buckets_.size() - 1)];
    for (State& held : bucket) {
      if (held.time == kNone || held.time == state.time || &held == &bucket.back()) {
        Merge(state, &held);
        return;
      }
      if (state.time < held.time) std::swap(state, held);
    }
  }

  // Calls `use` for the states; leaves out those that are no better in anything than the fastest or
  // the one with the least segment before.
  template <class Use>
  void ForEach(Use use) const {
    State fastest, leanest;
    for (const Bucket& bucket : buckets_) {
      for (const State& state : bucket) {
        if (state.time == kNone) break;
        if (NoWorse(fastest, state) || NoWorse(leanest, state)) continue;
        use(state);
        if (state.time < fastest.time) fastest = state;
        if (state.segment < leanest.segment) leanest = state;
      }
    }
  }

 private:
  static constexpr int64_t kMaxBuckets = 1024;
  using Bucket = std::array<State, 4>;  // times rise; those that are not used come last

  static bool NoWorse(const State& a, const State& b) {
    return a.memory <= b.memory && a.time <= b.time && a.segment <= b.segment;
  }

  static void Merge(const State& state, State* into) {
    into->memory = std::min(into->memory, state.memory);
    into->time = std::min(into->time, state.time);
    into->segment = std::min(into->segment, state.segment);
  }

  std::vector<Bucket> buckets_;
  double per_byte_;
};

// What was decided of stage l-1.
enum Way : size_t { kKept, kTwice, kMore };

class Search {
 public:
  Search(const Chain& chain, int64_t budget)
      : chain_(chain), budget_(budget), needs_(MomentNeeds(chain)) {
    for (int l = 1; l <= chain.length() + 1; ++l) {
      max_memory_ += Saved(l);
      if (chain.stage(l).recomputable()) max_time_ += 2 * Time(l);
    }
  }

  // The least time of repeated forwards.
  int64_t Run() {
    States states = None();
    states[kKept].Add({0, 0, kNone});
    for (int l = 1; l <= chain_.length() + 1; ++l) {
      States next = None();
      for (const Way way : {kKept, kTwice, kMore}) {
        states[way].ForEach([&](const State& state) { Extend(l, way, state, &next); });
      }
      states = std::move(next);
    }
    int64_t least = max_time_;
    for (const StateSet& set : states) {
      set.ForEach([&least](const State& state) { least = std::min(least, state.time); });
    }
    return least;
  }

 private:
  using States = std::array<StateSet, 3>;

  States None() const {
    return {StateSet(max_memory_), StateSet(max_memory_), StateSet(max_memory_)};
  }
  int64_t Saved(int l) const { return chain_.stage(l).saved.value(); }
  int64_t Time(int l) const { return chain_.stage(l).forward_time.value(); }
  int64_t Activation(int l) const { return chain_.activation(l).value(); }

  void Extend(int l, Way before, const State& state, States* next) const {
    const int64_t need = needs_[static_cast<size_t>(l)];
    const bool may_repeat = chain_.stage(l).recomputable();
    if (before == kTwice && may_repeat && state.segment + need <= budget_) {
      (*next)[kTwice].Add({state.memory, state.time + Time(l), state.segment + Saved(l)});
    }
    if (state.memory + need + Input(l, before) > budget_) return;
    (*next)[kKept].Add({state.memory + Saved(l), state.time, kNone});
    if (!may_repeat) return;
    const int64_t link = before == kTwice ? Link(l - 1) : 0;
    (*next)[kTwice].Add({state.memory + link, state.time + Time(l), state.memory + Saved(l)});
    (*next)[kMore].Add({state.memory, state.time + 2 * Time(l), kNone});
  }

  // What is held between the segments that end with i and start with i+1 until backward i+1.
  int64_t Link(int i) const { return std::min(Activation(i), Saved(i + 1)); }

  // What the input of stage l adds to what is counted, where it does not go on with a segment.
  int64_t Input(int l, Way before) const {
    if (l == 1 || before == kKept) return 0;
    if (before == kMore) return Activation(l - 1);
    // It may be the saved tensors that the link below l-1 stands for.
    const int64_t counted = l == 2 ? 0 : Link(l - 2);
    return std::min(Activation(l - 1), Saved(l - 1) - counted);
  }

  const Chain& chain_;
  const int64_t budget_;
  const std::vector<int64_t> needs_;
  int64_t max_memory_ = 0;
  int64_t max_time_ = 0;
};

}  // namespace

Nanos StrongMakespanLowerBound(const Chain& chain, Bytes budget) {
  const Nanos bound = MakespanLowerBound(chain, budget);
  if (chain.length() > kMaxStages) return bound;
  return std::max(bound, chain.ideal_time() + Nanos(Search(chain, budget.value()).Run()));
}

}  // namespace stowage

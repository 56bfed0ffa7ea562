#include "solvers/schedule/lower_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <variant>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/model/index.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/internal/recompute_curve.h"
#include "solvers/schedule/internal/time_step_needs.h"

namespace stowage {
namespace {

constexpr int kFractionBits = 60;

// Items are held from when they are added on, and given up, in fractions and for good, where a requirement leaves no
// memory for all of them (algorithms.md: nested constraints).
class BoundKnapsack {
 public:
  // Bytes that are held and cannot be given up.
  void Hold(int64_t bytes) { held_ += bytes; }
  // 0 < `bytes` <= `whole`, of the results of an op: repeating it takes `time` and brings back all
  // of them, so that each byte costs time / whole.
  void Add(int64_t bytes, int64_t time, int64_t whole) {
    held_ += bytes;
    items_.push({bytes, time, whole});
  }

  // Gives up what is held over `capacity`, or all there is; the time per byte of the dearest item that
  // it gave of, 0 without one. O(log items) for each item given up.
  double Require(int64_t capacity) {
    double price = 0;
    while (held_ > capacity && !items_.empty()) {
      Item item = items_.top();
      items_.pop();
      const int64_t given_up = std::min(held_ - capacity, item.bytes);
      held_ -= given_up;
      price = static_cast<double>(item.time) / static_cast<double>(item.whole);
      item.bytes -= given_up;
      const absl::int128 cost = absl::int128(item.time) * given_up;
      time_ +=
          (cost / item.whole << kFractionBits) + (cost % item.whole << kFractionBits) / item.whole;
      if (item.bytes > 0) items_.push(item);
    }
    return price;
  }

  // The time of all that has been given up; makespans are whole.
  int64_t RoundedUp() const {
    const absl::int128 one = absl::int128(1) << kFractionBits;
    return static_cast<int64_t>((time_ + one - 1) / one);
  }

 private:
  struct Item {
    int64_t bytes;  // that are still held
    int64_t time;
    int64_t whole;
  };
  // Whether a's time per byte is larger: the queue's top costs least.
  struct CostsMore {
    bool operator()(const Item& a, const Item& b) const {
      return absl::int128(a.time) * b.whole > absl::int128(b.time) * a.whole;
    }
  };

  std::priority_queue<Item, std::vector<Item>, CostsMore> items_;
  int64_t held_ = 0;
  absl::int128 time_ = 0;  // of what has been given up, in fractions rounded down
};

// Calls `visit` with the owner of each storage that the backward of the vertex needs.
template <class Visit>
void ForEachNeed(const Graph& graph, int p, const Visit& visit) {
  const Vertex& v = graph.vertex(p);
  for (const GraphInput& input : v.inputs) {
    if (input.backward_needs) visit(graph.storage(static_cast<int>(input.vertex)));
  }
  if (v.backward_needs_output) visit(graph.storage(p));
}

class LongestPathBound {
 public:
  LongestPathBound(const Graph& graph, Bytes budget)
      : graph_(graph),
        budget_(budget.value()),
        whole_(Index(graph.size()), 0),
        below_(whole_.size(), false),
        held_(whole_.size(), false),
        seen_(whole_.size(), -1) {
    std::vector<bool> needed(whole_.size(), false);
    for (int p = 0; p < graph.size(); ++p) {
      whole_[Index(p)] += graph.vertex(p).extra_saved.value();
      ForEachNeed(graph, p, [&](int storage) {
        if (!needed[Index(storage)]) whole_[Index(storage)] += graph.bytes(storage).value();
        needed[Index(storage)] = true;
      });
    }
  }

  Nanos Run() {
    for (const int p : LongestPath(graph_)) {
      AddAncestors(p);
      knapsack_.Require(budget_ - std::max(ForwardNeed(p), BackwardNeed(p)));
    }
    return graph_.ideal_time() + Nanos(knapsack_.RoundedUp());
  }

 private:
  // What the backwards of p's ancestors need is held from here on, or made again.
  void AddAncestors(int p) {
    ForEachNewAncestor(graph_, p, &below_, [this](int from) {
      Keep(from, graph_.vertex(from).extra_saved);
      ForEachNeed(graph_, from, [this](int storage) {
        if (!held_[Index(storage)]) Keep(storage, graph_.bytes(storage));
        held_[Index(storage)] = true;
      });
    });
  }

  // `bytes` that the forward of `maker` makes.
  void Keep(int maker, Bytes bytes) {
    if (bytes == Bytes(0)) return;
    const Vertex& v = graph_.vertex(maker);
    if (Recomputable(v)) {
      knapsack_.Add(bytes.value(), v.stopped_time().value(), whole_[Index(maker)]);
    } else {
      knapsack_.Hold(bytes.value());
    }
  }

  // Bytes of the storage if this time step counts it neither as kept nor already.
  Bytes Beside(int storage, int time_step) {
    if (held_[Index(storage)] || seen_[Index(storage)] == time_step) return Bytes(0);
    seen_[Index(storage)] = time_step;
    return graph_.bytes(storage);
  }

  int64_t ForwardNeed(int p) {
    const Vertex& v = graph_.vertex(p);
    const Bytes saving = v.extra_saved + v.forward_saving_overhead;
    Bytes need = v.extra_saved > Bytes(0) ? saving : std::min(saving, v.forward_overhead);
    const int time_step = 2 * p;
    Bytes inputs;
    for (const GraphInput& input : v.inputs) {
      inputs += Beside(graph_.storage(static_cast<int>(input.vertex)), time_step);
    }
    need += Beside(graph_.storage(p), time_step);
    // The last one may be a recompute that stops before the output.
    if (v.stops() && Recomputable(v)) need = std::min(need, v.extra_saved + v.stopped_overhead());
    return (inputs + need).value();
  }

  int64_t BackwardNeed(int p) {
    const Vertex& v = graph_.vertex(p);
    Bytes need = v.extra_saved + v.backward_overhead;
    const int time_step = 2 * p + 1;
    ForEachNeed(graph_, p, [&](int storage) { need += Beside(storage, time_step); });
    return (need + Gradients(p)).value();
  }

  // Of p's storage and of those of its inputs, each once.
  Bytes Gradients(int p) const {
    std::vector<int> storages = {graph_.storage(p)};
    for (const GraphInput& input : graph_.vertex(p).inputs) {
      storages.push_back(graph_.storage(static_cast<int>(input.vertex)));
    }
    std::sort(storages.begin(), storages.end());
    storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
    Bytes sum;
    for (const int storage : storages) sum += graph_.vertex(storage).output_gradient;
    return sum;
  }

  const Graph& graph_;
  const int64_t budget_;
  std::vector<int64_t> whole_;  // bytes that each op makes and some backward needs
  std::vector<bool> below_;     // is an ancestor of where the path has come
  std::vector<bool> held_;      // the storage is needed later by a backward
  std::vector<int> seen_;       // the last time step that counted the storage
  BoundKnapsack knapsack_;
};

// Of a compute DAG what follows from each node running once.
Nanos BoundWithoutLink(const Graph& graph, Bytes budget) {
  return graph.has_backwards() ? LongestPathBound(graph, budget).Run() : graph.ideal_time();
}

// need_l for l in 1..L+1 (index 0 is not used), in bytes: the larger of what the forward that last
// saves stage l and its backward take, beside what is held of stages below l. Of stages that are `kept` from their
// first forward on, else of what may stop early. O(L).
std::vector<int64_t> MomentNeeds(const Chain& chain, bool kept) {
  const int last = chain.length() + 1;
  std::vector<int64_t> needs(static_cast<size_t>(last) + 1);
  // Whichever gradient is held when the forward runs, it is one of stage l or above.
  Bytes least_gradient = chain.gradient(last);
  for (int l = last; l >= 1; --l) {
    const Stage& s = chain.stage(l);
    least_gradient = std::min(least_gradient, s.output_gradient);
    const Bytes forward = least_gradient + s.forward_saving_overhead;
    const Bytes backward = s.output_gradient + s.backward_overhead;
    Bytes need = s.saved + std::max(forward, backward);
    if (!kept && s.stops() && s.recomputable()) {
      need = std::min(need, s.stopped_saved() + s.output_gradient +
                                std::max(s.stopped_overhead(), s.backward_overhead));
    }
    needs[static_cast<size_t>(l)] = (chain.activation(0) + need).value();
  }
  return needs;
}

struct RelaxedLowerBound {
  Nanos repeated;              // the least time of repeated forwards
  std::vector<double> prices;  // ns for a byte, by stage 0..L+1; they fall to 0
};

// With what the optimum says of the chain. O(L log L).
RelaxedLowerBound RelaxLowerBound(const Chain& chain, Bytes budget,
                                  const std::vector<int64_t>& needs) {
  const size_t last = static_cast<size_t>(chain.length()) + 1;
  RelaxedLowerBound bound;
  bound.prices.resize(last + 1);
  BoundKnapsack knapsack;
  for (size_t l = 1; l <= last; ++l) {
    bound.prices[l - 1] = knapsack.Require(budget.value() - needs[l]);
    const Stage& s = chain.stage(static_cast<int>(l));
    if (s.saved == Bytes(0)) continue;
    if (s.recomputable()) {
      knapsack.Add(s.saved.value(), s.stopped_time().value(), s.saved.value());
    } else {
      knapsack.Hold(s.saved.value());
    }
  }
  for (size_t i = last; i >= 1; --i) {
    bound.prices[i - 1] = std::max(bound.prices[i - 1], bound.prices[i]);
  }
  bound.repeated = Nanos(knapsack.RoundedUp());
  return bound;
}

Nanos BoundWithoutLink(const Chain& chain, Bytes budget) {
  return chain.ideal_time() + RelaxLowerBound(chain, budget, MomentNeeds(chain, false)).repeated;
}

// The strongest bound of chains: a search over the stages that leaves out what cannot end within a limit, with
// limits that rise until something does. What a state has to repeat at least is known from the prices of the relaxed
// bound, which is close: few states are left, and a limit under which there are none is a bound itself.

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Stages below l are decided.
struct State {
  int64_t memory = kNone;  // held of them at every later time step outside their last segment
  int64_t time = kNone;    // of repeated forwards
  int64_t segment =
      kNone;  // held of them at the time steps of l if l goes on with their last segment
};

// States by memory: of those in one bucket, the least times are kept apart and the rest merged.
class StateSet {
 public:
  explicit StateSet(int64_t max_memory)
      : buckets_(static_cast<size_t>(std::min(max_memory + 1, kMaxBuckets))),
        per_byte_(static_cast<double>(buckets_.size()) / (static_cast<double>(max_memory) + 1.0)) {}

  void Clear() { used_.fill(0); }

  void Add(State state) {
    const double position = static_cast<double>(state.memory) * per_byte_;
    const size_t index = std::min(static_cast<size_t>(position), buckets_.size() - 1);
    Bucket& bucket = buckets_[index];
    uint64_t& used = used_[index / kWordBits];
    const uint64_t bit = uint64_t{1} << index % kWordBits;
    if ((used & bit) == 0) {
      used |= bit;
      bucket.fill(State());
    }
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
    State fastest, least_segment;
    for (size_t word = 0; word < used_.size(); ++word) {
      for (uint64_t bits = used_[word]; bits != 0; bits &= bits - 1) {
        for (const State& state : buckets_[word * kWordBits + LowestBit(bits)]) {
          if (state.time == kNone) break;
          if (NoWorse(fastest, state) || NoWorse(least_segment, state)) continue;
          use(state);
          if (state.time < fastest.time) fastest = state;
          if (state.segment < least_segment.segment) least_segment = state;
        }
      }
    }
  }

 private:
  static constexpr int64_t kMaxBuckets = 1024;
  static constexpr size_t kWordBits = 64;
  using Bucket = std::array<State, 4>;  // times rise; those that are not used come last

  static size_t LowestBit(uint64_t bits) { return static_cast<size_t>(__builtin_ctzll(bits)); }

  static bool NoWorse(const State& a, const State& b) {
    return a.memory <= b.memory && a.time <= b.time && a.segment <= b.segment;
  }

  static void Merge(const State& state, State* into) {
    into->memory = std::min(into->memory, state.memory);
    into->time = std::min(into->time, state.time);
    into->segment = std::min(into->segment, state.segment);
  }

  std::vector<Bucket> buckets_;
  std::array<uint64_t, kMaxBuckets / kWordBits> used_ = {};  // a bit for each bucket
  double per_byte_;
};

// What was decided of stage l-1.
enum Way : size_t { kKept, kTwice, kMore };

class Search {
 public:
  Search(const Chain& chain, int64_t budget)
      : chain_(chain),
        budget_(budget),
        needs_(MomentNeeds(chain, false)),
        kept_needs_(MomentNeeds(chain, true)),
        relaxed_(RelaxLowerBound(chain, Bytes(budget), needs_)) {
    int64_t max_memory = 0;
    for (int l = 1; l <= chain.length() + 1; ++l) {
      max_memory += Saved(l);
      if (chain.stage(l).recomputable()) max_time_ += 2 * Time(l);
    }
    max_memory = std::min(max_memory, std::max<int64_t>(budget, 0));  // no state holds more
    states_.assign(2, States{StateSet(max_memory), StateSet(max_memory), StateSet(max_memory)});
    FillRest();
  }

  // The least time of repeated forwards, or what is proven of it when the work is used up.
  int64_t Run() {
    int64_t proven = relaxed_.repeated.value();
    int64_t step = std::max<int64_t>(max_time_ / (kFirstStep * chain_.length()), 1);
    while (proven < max_time_) {
      limit_ = std::min(max_time_ - 1, proven + step);
      const std::optional<int64_t> least = LeastWithinLimit();
      if (work_ >= kMaxWork) return proven;
      if (least) return std::max(proven, *least);
      if (!over_limit_) return max_time_;
      proven = limit_ + 1;
      step *= kStepGrowth;
    }
    return max_time_;
  }

 private:
  using States = std::array<StateSet, 3>;

  // The first limit is above the relaxed bound by this share of a stage's mean time, twice.
  static constexpr int64_t kFirstStep = 4;
  static constexpr int64_t kStepGrowth = 2;
  // States looked at: some 40 ns each.
  static constexpr int64_t kMaxWork = 500000;
  // What sums of doubles may be wrong by, many times over.
  static constexpr double kRounding = 1e-9;

  int64_t Saved(int l) const { return chain_.stage(l).saved.value(); }
  int64_t Time(int l) const { return chain_.stage(l).forward_time.value(); }
  // Of the repeated forward before the backward.
  int64_t LastTime(int l) const { return chain_.stage(l).stopped_time().value(); }
  int64_t Activation(int l) const { return chain_.activation(l).value(); }
  double Price(int l) const { return relaxed_.prices[static_cast<size_t>(l)]; }

  // The dual of the relaxed bound for the stages from l on, where m bytes are held of those below:
  // Price(l-1) * m + rest_[l].
  void FillRest() {
    const int last = chain_.length() + 1;
    rest_.resize(static_cast<size_t>(last) + 2);
    double sum = 0, magnitude = 0;
    for (int l = last; l >= 1; --l) {
      const double kept = Price(l) * static_cast<double>(Saved(l));
      const double at_step =
          (Price(l - 1) - Price(l)) * static_cast<double>(needs_[static_cast<size_t>(l)] - budget_);
      const double cost =
          chain_.stage(l).recomputable() ? std::min(kept, static_cast<double>(LastTime(l))) : kept;
      sum += cost + at_step;
      magnitude += kept + std::abs(at_step) + static_cast<double>(Time(l));
      rest_[static_cast<size_t>(l)] = sum - kRounding * magnitude;
    }
  }

  std::optional<int64_t> LeastWithinLimit() {
    States* states = &states_[0];
    States* next = &states_[1];
    for (StateSet& set : *states) set.Clear();
    over_limit_ = false;
    (*states)[kKept].Add({0, 0, kNone});
    for (int l = 1; l <= chain_.length() + 1 && work_ < kMaxWork; ++l) {
      ++work_;
      for (StateSet& set : *next) set.Clear();
      for (const Way way : {kKept, kTwice, kMore}) {
        (*states)[way].ForEach([&](const State& state) { Extend(l, way, state, next); });
      }
      std::swap(states, next);
    }
    int64_t least = kNone;
    for (const StateSet& set : *states) {
      set.ForEach([&least](const State& state) { least = std::min(least, state.time); });
    }
    return least == kNone ? std::nullopt : std::optional(least);
  }

  // Adds a state before stage l, if it can end within the limit.
  void Add(int l, const State& state, StateSet* set) {
    const double rest = Price(l - 1) * static_cast<double>(state.memory) * (1 - kRounding) +
                        rest_[static_cast<size_t>(l)];
    if (static_cast<double>(state.time) * (1 - kRounding) + std::max(rest, 0.0) >
        static_cast<double>(limit_)) {
      over_limit_ = true;
      return;
    }
    set->Add(state);
  }

  void Extend(int l, Way before, const State& state, States* next) {
    ++work_;
    const int64_t need = needs_[static_cast<size_t>(l)];
    const bool may_repeat = chain_.stage(l).recomputable();
    if (before == kTwice && may_repeat && state.segment + need <= budget_) {
      // The second forward of stage l-1 has a reader: it does not stop early.
      const int64_t time = LastTime(l) + Time(l - 1) - LastTime(l - 1);
      Add(l + 1, {state.memory, state.time + time, state.segment + Saved(l)}, &(*next)[kTwice]);
    }
    const int64_t input = Input(l, before);
    if (state.memory + need + input > budget_) return;
    if (state.memory + kept_needs_[static_cast<size_t>(l)] + input <= budget_) {
      Add(l + 1, {state.memory + Saved(l), state.time, kNone}, &(*next)[kKept]);
    }
    if (!may_repeat) return;
    const int64_t link = before == kTwice ? Link(l - 1) : 0;
    Add(l + 1, {state.memory + link, state.time + LastTime(l), state.memory + Saved(l)},
        &(*next)[kTwice]);
    Add(l + 1, {state.memory, state.time + Time(l) + LastTime(l), kNone}, &(*next)[kMore]);
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
  const std::vector<int64_t> needs_, kept_needs_;
  const RelaxedLowerBound relaxed_;
  std::vector<double> rest_;  // by stage
  int64_t max_time_ = 0;
  int64_t limit_ = 0;
  bool over_limit_ = false;  // a state was left out for it
  int64_t work_ = 0;
  std::vector<States> states_;  // of this stage and the next one
};

// All tensors together, or more.
Bytes SizeOfAll(const Chain& chain) {
  Bytes sum = chain.activation(0);
  for (int l = 1; l <= chain.length() + 1; ++l) sum += chain.stage(l).output + chain.stage(l).saved;
  return sum;
}

Bytes SizeOfAll(const Graph& graph) {
  Bytes sum;
  for (int p = 0; p < graph.size(); ++p) sum += graph.bytes(p) + graph.vertex(p).extra_saved;
  return sum;
}

Nanos ThereAndBack(const TransferModel& link, Bytes bytes) {
  if (bytes == Bytes(0)) return Nanos(0);
  const Nanos there = CopyTime(link.to_host, bytes);
  return there + std::min(CopyTime(link.to_device, bytes), Nanos(kMaxTotal) - there);
}

// `without_link`: the bound for a budget without transfers.
template <class Bound>
Nanos BoundWithLink(Bytes size_of_all, const TransferModel& link, Bytes budget,
                    const Bound& without_link) {
  const auto within = [&without_link, budget](Bytes on_host) {
    return without_link(std::min(budget, Bytes(kMaxTotal)) + on_host);
  };
  // The least x such that one byte more than x takes no less than any schedule within x.
  Bytes low;
  Bytes high = std::min(size_of_all, link.host_memory);
  while (low < high) {
    const Bytes middle((low.value() + high.value()) / 2);
    if (ThereAndBack(link, middle + Bytes(1)) >= within(middle)) {
      high = middle;
    } else {
      low = middle + Bytes(1);
    }
  }
  // For low itself, and for one byte less.
  return std::max(within(low), ThereAndBack(link, low));
}

// With the instance's link, if it has one.
template <class Bound>
Nanos BoundWithin(const Instance& instance, Bytes budget, const Bound& without_link) {
  if (!instance.link()) return without_link(budget);
  const Bytes all =
      std::visit([](const auto& kind) { return SizeOfAll(kind); }, instance.problem());
  return BoundWithLink(all, *instance.link(), budget, without_link);
}

}  // namespace

Nanos MakespanLowerBound(const Instance& instance, Bytes budget) {
  return instance.Bound(BoundKind::kFast, budget, [&] {
    return BoundWithin(instance, budget, [&instance](Bytes memory) {
      return std::visit([memory](const auto& kind) { return BoundWithoutLink(kind, memory); },
                        instance.problem());
    });
  });
}

Nanos StrongestMakespanLowerBound(const Instance& instance, Bytes budget) {
  return instance.Bound(BoundKind::kStrongest, budget, [&] {
    if (!instance.is_graph() && !instance.link()) {
      return instance.ideal_time() + Nanos(Search(instance.chain(), budget.value()).Run());
    }
    const std::shared_ptr<const RecomputeCurve> curve = instance.Curve();
    const Nanos bound = instance.link() ? curve->MakespanWithin(budget, *instance.link())
                                        : instance.ideal_time() + curve->RepeatedWithin(budget);
    return std::max(MakespanLowerBound(instance, budget), bound);
  });
}

}  // namespace stowage

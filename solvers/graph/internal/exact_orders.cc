#include "solvers/graph/internal/order_search.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "solvers/model/index.h"

namespace stowage {
namespace {

using Set = uint32_t;  // of vertices
constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

Set Bit(int v) { return Set{1} << v; }
bool Has(Set set, int v) { return (set >> v & 1u) != 0; }
bool Within(Set part, Set set) { return (part & ~set) == 0; }

// What the computes of an order from some point on are and wait for.
struct State {
  Set tensors = 0;
  Set extras = 0;
  Set backwards = 0;   // that come later
  Set first_runs = 0;  // that come later
  int stops = -1;      // the vertex whose backward comes next, if a repeat before it stops early

  friend bool operator==(const State& a, const State& b) {
    return a.tensors == b.tensors && a.extras == b.extras && a.backwards == b.backwards &&
           a.first_runs == b.first_runs && a.stops == b.stops;
  }
  template <class H>
  friend H AbslHashValue(H hash, const State& s) {
    return H::combine(std::move(hash), s.tensors, s.extras, s.backwards, s.first_runs, s.stops);
  }
};

struct Label {
  State state;
  int64_t time = 0;  // of repeats
  int64_t peak = 0;
  int32_t after = -1;  // the label of what comes after the compute
  Compute compute = {-1, false};
};

class Search {
 public:
  Search(const OpGraph& graph, const OrderPool& known, int64_t peak_lower_bound, int64_t max_labels,
         const StopToken* stop)
      : graph_(graph), max_labels_(max_labels), poll_(stop), queue_(Later{&labels_}) {
    const int size = graph.size();
    all_ = Bit(size) - 1;
    int64_t once = 0;
    for (int v = 0; v < size; ++v) {
      Sets sets;
      for (const OpGraph::Input& input : graph.inputs(v)) {
        sets.inputs |= Bit(input.vertex);
        if (input.backward_needs) sets.needed |= Bit(input.vertex);
      }
      for (const int reader : graph.readers(v)) sets.readers |= Bit(reader);
      for (const int later : graph.sums().After(v)) sets.later_sums |= Bit(later);
      if (graph.costs(v).backward_needs_output) sets.needed |= Bit(v);
      if (graph.costs(v).ordered) ordered_ |= Bit(v);
      sets_.push_back(sets);
      once += graph.costs(v).forward_time;
    }
    for (const OrderPool::Entry& entry : known.entries()) {
      bounds_.push_back({entry.peak, entry.forward_time - once});
    }
    labels_.emplace_back();
    labels_.back().peak = peak_lower_bound;
    State& end = labels_.back().state;
    if (!graph.has_backwards()) end.backwards = all_;
    for (int v = 0; v < size; ++v) {
      if (graph.costs(v).result) end.tensors |= Bit(v);
    }
    queue_.push(0);
  }

  absl::StatusOr<ExactOrders> Run() {
    ExactOrders result;
    while (!queue_.empty()) {
      absl::Status status = poll_.Spend(kStepsPerLabel);
      if (!status.ok()) return status;
      const int32_t at = queue_.top();
      queue_.pop();
      const Label label = labels_[Index(at)];
      if (label.time >= KnownTime(label.peak)) continue;
      Reached& reached = reached_[label.state];
      if (reached.peak <= label.peak) continue;
      reached.peak = label.peak;
      if (label.state.first_runs == all_) {
        bounds_.push_back({label.peak, label.time});
        result.orders.push_back(OrderOf(at));
        continue;
      }
      // An expansion makes at most three labels per vertex.
      if (static_cast<int64_t>(labels_.size()) + 3 * graph_.size() > max_labels_) {
        result.labels = static_cast<int64_t>(labels_.size());
        return result;
      }
      Expand(label, at);
    }
    result.complete = true;
    result.labels = static_cast<int64_t>(labels_.size());
    return result;
  }

 private:
  static constexpr int64_t kStepsPerLabel = 512;

  struct Sets {
    Set inputs = 0;
    Set readers = 0;
    Set needed = 0;      // tensors that the backward needs
    Set later_sums = 0;  // whose backwards come later, for the sake of sums
  };
  struct Bound {
    int64_t peak;
    int64_t time;
  };
  // Of the labels of a state.
  struct Reached {
    int64_t peak = kInfinity;          // the lowest of those that have been expanded
    int64_t waiting_time = kInfinity;  // one that waits
    int64_t waiting_peak = kInfinity;
  };
  struct Later {
    const std::vector<Label>* labels;
    bool operator()(int32_t a, int32_t b) const {
      const Label& x = (*labels)[Index(a)];
      const Label& y = (*labels)[Index(b)];
      return std::tie(x.time, x.peak, a) > std::tie(y.time, y.peak, b);
    }
  };

  int64_t KnownTime(int64_t peak) const {
    int64_t time = kInfinity;
    for (const Bound& bound : bounds_) {
      if (bound.peak <= peak) time = std::min(time, bound.time);
    }
    return time;
  }

  // Memory between the computes so far and those before them.
  int64_t Held(const State& s) const {
    int64_t held = 0;
    for (int v = 0; v < graph_.size(); ++v) {
      const OpGraph::Costs& costs = graph_.costs(v);
      if (Has(s.tensors, v)) held += costs.output;
      if (Has(s.extras, v)) held += costs.extra;
      if (!Has(s.backwards, v)) continue;
      // Some backward that contributes has run; what nobody reads has its gradient from the first
      // backward on.
      const Set from = sets_[Index(v)].readers == 0 ? all_ : sets_[Index(v)].readers;
      if (!Within(from, s.backwards)) held += costs.gradient;
    }
    return held;
  }

  void Push(const State& state, int64_t time, int64_t peak, int32_t after, Compute compute) {
    if (time >= KnownTime(peak)) return;
    Reached& reached = reached_[state];
    if (reached.peak <= peak) return;
    if (reached.waiting_time <= time && reached.waiting_peak <= peak) return;
    reached.waiting_time = time;
    reached.waiting_peak = peak;
    labels_.push_back({state, time, peak, after, compute});
    queue_.push(static_cast<int32_t>(labels_.size()) - 1);
  }

  bool MayBeFirst(const State& s, int v) const {
    if (!Has(s.backwards, v) || Has(s.first_runs, v)) return false;
    if (!Within(sets_[Index(v)].readers, s.first_runs)) return false;
    const Set before = Bit(v) - 1;
    return !Has(ordered_, v) || Within(ordered_ & ~(before | Bit(v)), s.first_runs);
  }

  int64_t RunningForward(const State& s, int v, int64_t held) const {
    const OpGraph::Costs& costs = graph_.costs(v);
    State after = s;
    int64_t running = held;
    if (!Has(s.tensors, v)) running += costs.output;
    for (const OpGraph::Input& input : graph_.inputs(v)) {
      if (Has(after.tensors, input.vertex)) continue;
      after.tensors |= Bit(input.vertex);
      running += graph_.costs(input.vertex).output;
    }
    return running + (Has(s.extras, v) ? costs.saving_overhead : costs.unsaved_overhead);
  }

  void PushForward(const Label& label, int32_t at, Compute forward, bool first, int64_t running) {
    PushForward(label, at, forward, first, running,
                first ? 0 : graph_.costs(forward.vertex).forward_time);
  }

  void PushForward(const Label& label, int32_t at, Compute forward, bool first, int64_t running,
                   int64_t time) {
    const int v = forward.vertex;
    State next = label.state;
    next.tensors = (next.tensors & ~Bit(v)) | sets_[Index(v)].inputs;
    if (!forward.extras_stay) next.extras &= ~Bit(v);
    if (first) next.first_runs |= Bit(v);
    next.stops = -1;
    Push(next, label.time + time, std::max(label.peak, running), at, forward);
  }

  // All forwards of v that take away something that is waited for, and its first.
  void PushForwards(const Label& label, int32_t at, int v, int64_t held) {
    const OpGraph::Costs& costs = graph_.costs(v);
    const bool tensor = Has(label.state.tensors, v), extras = Has(label.state.extras, v);
    const bool first = MayBeFirst(label.state, v);
    const bool repeat = (tensor || extras) && costs.recomputable;
    if (!first && !repeat) return;
    const int64_t running = RunningForward(label.state, v, held);
    if (label.state.stops == v && !tensor) {
      // As a repeat, whose output is not made; the extras are among what is held.
      const int64_t stopped =
          running - costs.output - costs.saving_overhead + graph_.stopped(v).overhead;
      PushForward(label, at, {v, false}, false, stopped, graph_.stopped(v).time);
      if (!first) return;
    }
    PushForward(label, at, {v, false}, first, running);
    const int64_t less = costs.saving_overhead - costs.staying_overhead;
    if (!repeat || !tensor || !extras || less <= 0) return;
    PushForward(label, at, {v, false, true}, false, running - less);
  }

  void PushBackward(const Label& label, int32_t at, int v) {
    const OpGraph::Costs& costs = graph_.costs(v);
    State next = label.state;
    next.tensors |= sets_[Index(v)].needed;
    // Its gradient is there before, as are those that are new; its extras, too.
    const int64_t running = Held(next) + costs.extra + costs.gradient + costs.backward_overhead;
    if (costs.extra > 0) next.extras |= Bit(v);
    next.backwards |= Bit(v);
    next.stops = costs.stops ? v : -1;
    Push(next, label.time, std::max(label.peak, running), at, {v, true});
  }

  void Expand(const Label& label, int32_t at) {
    const State& s = label.state;
    const int64_t held = Held(s);
    // A first run whose inputs are waited for anyway only takes away: nothing else need be tried
    // where it fits.
    for (int v = 0; v < graph_.size(); ++v) {
      if (!MayBeFirst(s, v) || !Within(sets_[Index(v)].inputs, s.tensors)) continue;
      // Nor may it come between a repeat that stops early and its backward.
      if (s.stops >= 0 && s.stops != v) continue;
      const int64_t running = RunningForward(s, v, held);
      if (running <= label.peak) return PushForward(label, at, {v, false}, true, running);
    }
    for (int v = 0; v < graph_.size(); ++v) {
      const Sets& sets = sets_[Index(v)];
      if (!Has(s.backwards, v) && Within(sets.inputs | sets.later_sums, s.backwards)) {
        PushBackward(label, at, v);
      }
      PushForwards(label, at, v, held);
    }
  }

  ComputeOrder OrderOf(int32_t at) const {
    ComputeOrder order;
    for (; at > 0; at = labels_[Index(at)].after) order.push_back(labels_[Index(at)].compute);
    return order;
  }

  const OpGraph& graph_;
  const int64_t max_labels_;
  StopPoll poll_;
  Set all_ = 0;
  Set ordered_ = 0;
  std::vector<Sets> sets_;
  std::vector<Bound> bounds_;
  std::vector<Label> labels_;
  std::priority_queue<int32_t, std::vector<int32_t>, Later> queue_;
  absl::flat_hash_map<State, Reached> reached_;
};

}  // namespace

absl::StatusOr<ExactOrders> SearchAllOrders(const OpGraph& graph, const OrderPool& known,
                                            int64_t peak_lower_bound, int64_t max_labels,
                                            const StopToken* stop) {
  return Search(graph, known, peak_lower_bound, max_labels, stop).Run();
}

}  // namespace stowage

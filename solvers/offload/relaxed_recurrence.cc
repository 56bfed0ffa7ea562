#include "solvers/offload/relaxed_recurrence.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stowage {
namespace {

template <class Number>
Number Positive(Number value) {
  return std::max(value, Number(0));
}

}  // namespace

template <class Number>
RelaxedRecurrence<Number>::RelaxedRecurrence(const Instance& instance) : instance_(instance) {
  prefix_.push_back(Number(0));
  for (const Number size : instance.activations) prefix_.push_back(prefix_.back() + size);
  forward_before_.push_back(Number(0));
  backward_before_.push_back(Number(0));
  for (const auto& op : instance.ops) {
    forward_before_.push_back(forward_before_.back() + op.forward_time);
    backward_before_.push_back(backward_before_.back() + op.backward_time);
  }
  const size_t n = instance.ops.size();
  nothing_read_ = -(prefix_[n] * instance.prefetch_time);
  host_limited_ = instance.host_memory < prefix_[n];
  most_memory_.resize(n);
  forward_rush_.resize(n);
  backward_rush_.resize(n);
  for (size_t i = n; i-- > 0;) {
    const auto& op = instance.ops[i];
    const Number forward = prefix_[i + 2] + op.forward_need - instance.memory;
    const Number backward = prefix_[i + 2] + op.backward_need - instance.memory;
    most_memory_[i] = std::max(forward, backward);
    forward_rush_[i] = forward * instance.offload_time - forward_before_[i];
    backward_rush_[i] = backward * instance.prefetch_time - backward_before_[i];
    if (i + 1 == n) continue;
    most_memory_[i] = std::max(most_memory_[i], most_memory_[i + 1]);
    forward_rush_[i] = std::max(forward_rush_[i], forward_rush_[i + 1]);
    backward_rush_[i] = std::max(backward_rush_[i], backward_rush_[i + 1]);
  }
}

template <class Number>
typename RelaxedRecurrence<Number>::State RelaxedRecurrence<Number>::Initial() const {
  State state;
  state.kept = instance_.activations[0];
  state.reading = nothing_read_;
  return state;
}

template <class Number>
bool RelaxedRecurrence<Number>::HostHasRoom(int i, const State& state) const {
  const size_t at = static_cast<size_t>(i);
  // All before activation i that is not kept, and activation i.
  return prefix_[at + 1] - (state.kept - instance_.activations[at]) <= instance_.host_memory;
}

template <class Number>
std::optional<typename RelaxedRecurrence<Number>::State> RelaxedRecurrence<Number>::Next(
    int i, const State& state, bool offload) const {
  const size_t at = static_cast<size_t>(i);
  const auto& op = instance_.ops[at];
  const Number size = instance_.activations[at];
  const Number made = instance_.activations[at + 1];
  const Number over_f = state.kept + op.forward_need + made - instance_.memory;
  const Number over_b = state.kept + op.backward_need + made - instance_.memory;
  if (over_f > Number(0) || over_b > Number(0)) return std::nullopt;
  if (offload && !HostHasRoom(i, state)) return std::nullopt;
  const Number queue_f = Positive(state.backlog_f);
  const Number queue_b = Positive(state.backlog_b);
  // Equations 1 and 6: wait until what is left in the queue and over the memory is gone.
  const Number wait_f = Positive<Number>(queue_f + over_f * instance_.offload_time);
  const Number wait_b = Positive<Number>(queue_b + over_b * instance_.prefetch_time);
  State next;
  next.idle = state.idle + wait_f + wait_b;
  const Number pass_f = wait_f + op.forward_time;
  const Number pass_b = wait_b + op.backward_time;
  if (offload) {
    // Equations 2, 3 and 7: the forward's input leaves while it is read, and comes back before.
    next.backlog_f = queue_f + size * instance_.offload_time - pass_f;
    next.backlog_b = size * instance_.prefetch_time + Positive<Number>(state.backlog_b - pass_b);
    next.kept = state.kept - size + made;
    next.reading = nothing_read_;
    if (next.backlog_f < Number(0)) {
      next.reading = std::max<Number>(next.reading,
                                      over_f * instance_.prefetch_time + forward_before_[at + 1]);
    }
  } else {
    next.backlog_f = state.backlog_f - pass_f;
    next.backlog_b = state.backlog_b - pass_b;
    next.kept = state.kept + made;
    next.reading = state.reading;
  }
  next.offloaded = offload;
  return next;
}

// Equations 9 and 10.
template <class Number>
Number RelaxedRecurrence<Number>::EndIdle(const State& state) const {
  const Number zero(0);
  const bool left_f = state.backlog_f > zero;
  const bool left_b = state.backlog_b > zero;
  if (!left_f && !left_b) return zero;
  if (left_f && left_b) return state.backlog_f + state.backlog_b;
  const size_t n = instance_.ops.size();
  const Number queue = left_f ? state.backlog_f : state.backlog_b;
  const Number pause = left_f ? -state.backlog_b : -state.backlog_f;
  const Number unit = left_f ? instance_.offload_time : instance_.prefetch_time;
  const std::vector<Number>& before = left_f ? backward_before_ : forward_before_;
  Number idle = Positive<Number>(queue - pause);
  if (left_b) idle = std::max<Number>(idle, queue + state.reading - forward_before_[n]);
  for (size_t j = n; j-- > 0;) {
    // Ops of the other half in which the link has a pause, for the queue of this one.
    const Number passed = before[n] - before[j + 1];
    if (passed >= pause) break;
    const auto& op = instance_.ops[j];
    const Number need = left_f ? op.backward_need : op.forward_need;
    const Number over = state.kept + need - (prefix_[n + 1] - prefix_[j + 2]) - instance_.memory;
    idle = std::max<Number>(idle, queue + over * unit - passed);
  }
  return idle;
}

template <class Number>
Number RelaxedRecurrence<Number>::Bound(int i, const State& state) const {
  const size_t at = static_cast<size_t>(i);
  const size_t n = instance_.ops.size();
  if (at == n) return state.idle + EndIdle(state);
  const Number queue_f = Positive(state.backlog_f);
  const Number queue_b = Positive(state.backlog_b);
  const Number before = state.kept - prefix_[at + 1];  // less what has been offloaded
  // Room that later ops need must be made by the link until they start.
  const Number rush_f =
      queue_f + before * instance_.offload_time + forward_rush_[at] + forward_before_[at];
  const Number rush_b =
      queue_b + before * instance_.prefetch_time + backward_rush_[at] + backward_before_[at];
  // All that is left to move, beside all ops that are left. If that is no more than the queues, one
  // of them may reach into a pause of the link that the other half has had already.
  const Number more = Positive<Number>(before + most_memory_[at]);
  const Number ops =
      forward_before_[n] - forward_before_[at] + backward_before_[n] - backward_before_[at];
  const Number queues = more > Number(0) ? queue_f + queue_b : state.backlog_f + state.backlog_b;
  const Number link = queues + more * (instance_.offload_time + instance_.prefetch_time) - ops;
  return state.idle + std::max<Number>(Positive(rush_f) + Positive(rush_b), Positive(link));
}

template <class Number>
std::optional<Number> RelaxedRecurrence<Number>::IdleOf(const OffloadSet& set) const {
  std::optional<State> state = Initial();
  size_t next = 0;
  for (int i = 0; i < size() && state; ++i) {
    const bool offload = next < set.size() && set[next] == i;
    if (offload) ++next;
    state = Next(i, *state, offload);
  }
  if (!state) return std::nullopt;
  return state->idle + EndIdle(*state);
}

template <class Number>
bool RelaxedRecurrence<Number>::Dominates(const State& a, const State& b) const {
  if (host_limited_ ? a.kept != b.kept : a.kept > b.kept) return false;
  return a.idle + Positive<Number>(a.backlog_f - b.backlog_f) +
             Positive<Number>(a.backlog_b - b.backlog_b) +
             Positive<Number>(a.reading - b.reading) <=
         b.idle;
}

// Of equals the first stays: it keeps where the other offloads.
template <class Number>
absl::Status RelaxedRecurrence<Number>::Prune(std::vector<State>* candidates,
                                              std::vector<State>* kept, int64_t* comparisons,
                                              StopPoll* poll) const {
  const auto key = [](const State& s) {
    return std::make_tuple(s.kept, s.idle, s.backlog_f, s.backlog_b, s.reading, s.offloaded,
                           s.parent);
  };
  std::sort(candidates->begin(), candidates->end(),
            [&key](const State& a, const State& b) { return key(a) < key(b); });
  kept->clear();
  // What dominated once does so again more often than not: it is asked first.
  std::vector<uint32_t> order;
  for (const State& candidate : *candidates) {
    size_t at = 0;
    while (at < order.size() && !Dominates((*kept)[order[at]], candidate)) ++at;
    *comparisons += static_cast<int64_t>(at) + 1;
    absl::Status status = poll->Spend(static_cast<int64_t>(at) + 1);
    if (!status.ok()) return status;
    if (at < order.size()) {
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(at),
                  order.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      continue;
    }
    order.push_back(static_cast<uint32_t>(kept->size()));
    kept->push_back(candidate);
  }
  return absl::OkStatus();
}

template <class Number>
OffloadSet RelaxedRecurrence<Number>::Backtrack(const std::vector<std::vector<State>>& states,
                                                int32_t last) {
  OffloadSet set;
  for (size_t i = states.size() - 1; i > 0; --i) {
    const State& state = states[i][static_cast<size_t>(last)];
    if (state.offloaded) set.push_back(static_cast<int>(i) - 1);
    last = state.parent;
  }
  std::reverse(set.begin(), set.end());
  return set;
}

template <class Number>
absl::Status RelaxedRecurrence<Number>::AddSets(Number idle, const RelaxedLimits& limits,
                                                StopPoll* poll,
                                                std::vector<OffloadSet>* sets) const {
  struct Frame {
    State state;
    int op;
    bool offloads;  // the activation of the op before
  };
  const size_t own = sets->size();
  std::vector<Frame> stack = {{Initial(), 0, false}};
  OffloadSet path;
  for (int64_t node = 0; !stack.empty() && node < limits.nodes; ++node) {
    const Frame frame = stack.back();
    stack.pop_back();
    absl::Status status = poll->Spend(16);
    if (!status.ok()) return status;
    while (!path.empty() && path.back() >= frame.op - 1) path.pop_back();
    if (frame.offloads) path.push_back(frame.op - 1);
    if (frame.op == size()) {
      const auto end = sets->begin() + static_cast<std::ptrdiff_t>(own);
      if (std::find(sets->begin(), end, path) == end) sets->push_back(path);
      if (sets->size() >= limits.sets) break;
      continue;
    }
    for (const bool offload : {true, false}) {
      if (offload && instance_.activations[static_cast<size_t>(frame.op)] == Number(0)) continue;
      const std::optional<State> next = Next(frame.op, frame.state, offload);
      if (next && Bound(frame.op + 1, *next) <= idle)
        stack.push_back({*next, frame.op + 1, offload});
    }
  }
  return absl::OkStatus();
}

// The least idle time at the end, and the sets that have it.
template <class Number>
absl::Status RelaxedRecurrence<Number>::Finish(const std::vector<std::vector<State>>& states,
                                               const RelaxedLimits& limits, StopPoll* poll,
                                               RelaxedSolution<Number>* solution) const {
  const std::vector<State>& last = states.back();
  for (const State& state : last) {
    const Number idle = Bound(size(), state);
    if (!solution->idle || idle < *solution->idle) solution->idle = idle;
  }
  for (size_t s = 0; s < last.size() && solution->sets.size() < limits.sets; ++s) {
    if (Bound(size(), last[s]) > *solution->idle) continue;
    solution->sets.push_back(Backtrack(states, static_cast<int32_t>(s)));
  }
  if (!solution->idle || solution->sets.size() >= limits.sets) return absl::OkStatus();
  return AddSets(*solution->idle, limits, poll, &solution->sets);
}

template <class Number>
absl::StatusOr<RelaxedSolution<Number>> RelaxedRecurrence<Number>::Solve(
    const std::vector<OffloadSet>& start, const RelaxedLimits& limits,
    const SolveOptions& options) const {
  StopPoll poll(options.stop);
  RelaxedSolution<Number> solution;
  solution.complete = true;
  std::optional<Number> known;
  for (const OffloadSet& set : start) {
    const std::optional<Number> idle = IdleOf(set);
    if (idle && (!known || *idle < *known)) known = idle;
  }
  std::vector<std::vector<State>> states(instance_.ops.size() + 1);
  states[0].push_back(Initial());
  std::vector<State> candidates, to;
  for (int i = 0; i < size(); ++i) {
    const std::vector<State>& from = states[static_cast<size_t>(i)];
    candidates.clear();
    for (size_t s = 0; s < from.size(); ++s) {
      for (const bool offload : {false, true}) {
        if (offload && instance_.activations[static_cast<size_t>(i)] == Number(0)) continue;
        std::optional<State> next = Next(i, from[s], offload);
        if (!next || (known && Bound(i + 1, *next) > *known)) continue;
        next->parent = static_cast<int32_t>(s);
        candidates.push_back(*next);
      }
    }
    absl::Status status = Prune(&candidates, &to, &solution.comparisons, &poll);
    if (!status.ok()) return status;
    solution.most_states = std::max(solution.most_states, to.size());
    if (to.size() > limits.states || solution.comparisons > limits.comparisons) {
      solution.complete = false;
      if (!limits.beam) return solution;
      std::stable_sort(to.begin(), to.end(), [this, i](const State& a, const State& b) {
        return Bound(i + 1, a) < Bound(i + 1, b);
      });
      to.resize(std::min(to.size(), limits.states));
    }
    states[static_cast<size_t>(i) + 1].assign(to.begin(), to.end());
    if (options.progress) options.progress(static_cast<double>(i + 1) / size());
  }
  absl::Status status = Finish(states, limits, &poll, &solution);
  if (!status.ok()) return status;
  return solution;
}

template class RelaxedRecurrence<int64_t>;
template class RelaxedRecurrence<absl::int128>;

}  // namespace stowage

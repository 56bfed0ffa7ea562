#include "solvers/transfer/internal/relaxed_optimum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/transfer/strategies.h"

namespace stowage {
namespace {

using absl::int128;

// Least idle time when copies can be interrupted: the dynamic program of Beaumont et al. 2020 (section 5, Algorithm 1),
// on states that none other dominates (algorithms.md: states, corrections, dominance).
//
// Memory is counted in any unit (bytes, slots), time in one in which both directions of the link take a whole number
// for a unit of memory.

template <class Number>
struct RelaxedInstance {
  struct Op {
    Number forward_time{}, backward_time{};
    Number forward_need{}, backward_need{};
  };
  std::vector<Op> ops;              // 0..n-1
  std::vector<Number> activations;  // 0..n
  Number memory{};
  Number host_memory{};
  Number offload_time{};   // of a unit of memory
  Number prefetch_time{};  // the same
};

struct RelaxedLimits {
  size_t states = 0;  // of one op
  bool beam = false;  // beyond them the most promising are kept; else it is given up
  int64_t comparisons = std::numeric_limits<int64_t>::max();  // beyond them it is given up
};

template <class Number>
struct RelaxedSolution {
  bool complete = false;         // no state was left out for want of space
  std::optional<Number> idle;    // nothing: no set fits (if complete)
  std::vector<OffloadSet> sets;  // of that idle time; the recurrence's own first
  int64_t comparisons = 0;       // of states, for dominance
};

template <class Number>
Number Positive(Number value) {
  return std::max(value, Number(0));
}

// For Number = int64_t or absl::int128.
template <class Number>
class RelaxedRecurrence {
 public:
  using Instance = RelaxedInstance<Number>;

  struct State {
    Number kept{}, backlog_f{}, backlog_b{}, reading{}, idle{};
    int32_t parent = -1;
    bool offloaded = false;  // the activation of the op before
  };

  // `instance` must outlive it. No sum of sizes, times and sizes as times may overflow.
  explicit RelaxedRecurrence(const Instance& instance) : instance_(instance) {
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

  // CANCELLED, DEADLINE_EXCEEDED. Deterministic. `start` are sets to begin with.
  absl::StatusOr<RelaxedSolution<Number>> Solve(const std::vector<OffloadSet>& start,
                                                const RelaxedLimits& limits,
                                                const SolveContext& context) const {
    StopPoll poll(context.stop());
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
      if (to.size() > limits.states || solution.comparisons > limits.comparisons) {
        solution.complete = false;
        if (!limits.beam) return solution;
        std::stable_sort(to.begin(), to.end(), [this, i](const State& a, const State& b) {
          return Bound(i + 1, a) < Bound(i + 1, b);
        });
        to.resize(std::min(to.size(), limits.states));
      }
      states[static_cast<size_t>(i) + 1].assign(to.begin(), to.end());
      context.Report(static_cast<double>(i + 1) / size());
    }
    absl::Status status = Finish(states, &poll, &solution);
    if (!status.ok()) return status;
    return solution;
  }

  // Idle time of one set; nothing if it does not fit. O(n).
  std::optional<Number> IdleOf(const OffloadSet& set) const {
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

 private:
  int size() const { return static_cast<int>(instance_.ops.size()); }
  State Initial() const {
    State state;
    state.kept = instance_.activations[0];
    state.reading = nothing_read_;
    return state;
  }

  // The state after op i, or nothing if op i never fits.
  std::optional<State> Next(int i, const State& state, bool offload) const {
    const size_t at = static_cast<size_t>(i);
    const auto& op = instance_.ops[at];
    const Number size = instance_.activations[at];
    const Number made = instance_.activations[at + 1];
    const Number over_f = state.kept + op.forward_need + made - instance_.memory;
    const Number over_b = state.kept + op.backward_need + made - instance_.memory;
    if (over_f > Number(0) || over_b > Number(0)) return std::nullopt;
    if (offload && !FitsHost(i, state)) return std::nullopt;
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

  bool FitsHost(int i, const State& state) const {
    const size_t at = static_cast<size_t>(i);
    // All before activation i that is not kept, and activation i.
    return prefix_[at + 1] - (state.kept - instance_.activations[at]) <= instance_.host_memory;
  }

  // Equations 9 and 10.
  Number EndIdle(const State& state) const {
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

  // No schedule that goes through the state before op i has less idle time.
  Number Bound(int i, const State& state) const {
    const size_t at = static_cast<size_t>(i);
    const size_t n = instance_.ops.size();
    if (at == n) return state.idle + EndIdle(state);
    const Number queue_f = Positive(state.backlog_f);
    const Number queue_b = Positive(state.backlog_b);
    const Number before = state.kept - prefix_[at + 1];  // less what has been offloaded
    // Memory that later ops need must be made by the link until they start.
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

  bool Dominates(const State& a, const State& b) const {
    if (host_limited_ ? a.kept != b.kept : a.kept > b.kept) return false;
    return a.idle + Positive<Number>(a.backlog_f - b.backlog_f) +
               Positive<Number>(a.backlog_b - b.backlog_b) +
               Positive<Number>(a.reading - b.reading) <=
           b.idle;
  }

  // Of equals the first stays: it keeps where the other offloads.
  absl::Status Prune(std::vector<State>* candidates, std::vector<State>* kept, int64_t* comparisons,
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

  static OffloadSet Backtrack(const std::vector<std::vector<State>>& states, int32_t last) {
    OffloadSet set;
    for (size_t i = states.size() - 1; i > 0; --i) {
      const State& state = states[i][static_cast<size_t>(last)];
      if (state.offloaded) set.push_back(static_cast<int>(i) - 1);
      last = state.parent;
    }
    std::reverse(set.begin(), set.end());
    return set;
  }

  // Adds sets of idle time `idle`, by depth-first search with Bound.
  absl::Status AddSets(Number idle, StopPoll* poll, std::vector<OffloadSet>* sets) const {
    constexpr int64_t kNodes = 100000;
    struct Frame {
      State state;
      int op;
      bool offloads;  // the activation of the op before
    };
    const size_t own = sets->size();
    std::vector<Frame> stack = {{Initial(), 0, false}};
    OffloadSet path;
    for (int64_t node = 0; !stack.empty() && node < kNodes; ++node) {
      const Frame frame = stack.back();
      stack.pop_back();
      absl::Status status = poll->Spend(16);
      if (!status.ok()) return status;
      while (!path.empty() && path.back() >= frame.op - 1) path.pop_back();
      if (frame.offloads) path.push_back(frame.op - 1);
      if (frame.op == size()) {
        const auto end = sets->begin() + static_cast<std::ptrdiff_t>(own);
        if (std::find(sets->begin(), end, path) == end) sets->push_back(path);
        if (sets->size() >= kMaxRelaxedSets) break;
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
  absl::Status Finish(const std::vector<std::vector<State>>& states, StopPoll* poll,
                      RelaxedSolution<Number>* solution) const {
    const std::vector<State>& last = states.back();
    for (const State& state : last) {
      const Number idle = Bound(size(), state);
      if (!solution->idle || idle < *solution->idle) solution->idle = idle;
    }
    for (size_t s = 0; s < last.size() && solution->sets.size() < kMaxRelaxedSets; ++s) {
      if (Bound(size(), last[s]) > *solution->idle) continue;
      solution->sets.push_back(Backtrack(states, static_cast<int32_t>(s)));
    }
    if (!solution->idle || solution->sets.size() >= kMaxRelaxedSets) return absl::OkStatus();
    return AddSets(*solution->idle, poll, &solution->sets);
  }

  const Instance& instance_;
  Number nothing_read_{};  // `reading` that asks for nothing
  bool host_limited_ = false;
  std::vector<Number> prefix_;          // of activations
  std::vector<Number> forward_before_;  // time of forwards 0..i-1
  std::vector<Number> backward_before_;
  // Suffix maxima over ops j >= i that Bound needs.
  std::vector<Number> most_memory_;
  std::vector<Number> forward_rush_;
  std::vector<Number> backward_rush_;
};

// Some thousand states for an op, fewer where the options' tables would get too large. A beam is
// narrower the more ops there are, so that no problem takes more than some 2^28 comparisons; what
// is to be complete may take four times as many before it is given up.
RelaxedLimits RelaxedLimitsOf(const OffloadProblem& problem, const SolveContext& context,
                              size_t state_bytes, bool beam) {
  constexpr size_t kStates = 4096;
  // States not yet compared, their copies when vectors grow, and scratch of sorting.
  constexpr size_t kRowsBeside = 12;
  constexpr double kBeamPairs = 1 << 27;  // states of an op, squared, of all ops
  const auto table = static_cast<size_t>(std::max<int64_t>(context.memory().value(), 0));
  RelaxedLimits limits;
  limits.states = std::clamp<size_t>(
      table / (state_bytes * (static_cast<size_t>(problem.size() + 1) + kRowsBeside)), 1, kStates);
  if (beam) {
    const auto width = static_cast<size_t>(std::sqrt(kBeamPairs / problem.size()));
    limits.states = std::clamp<size_t>(width, 1, limits.states);
  }

  limits.beam = beam;
  limits.comparisons = beam ? std::numeric_limits<int64_t>::max() : int64_t{1} << 30;
  return limits;
}

// A unit of time, 1/per_nano ns, in which a byte takes a whole number each way.
struct ExactUnit {
  int128 per_nano;
  int128 offload_byte;
  int128 prefetch_byte;
};

ExactUnit ExactUnitOf(const TransferModel& link) {
  // A byte takes p/q ns.
  const int64_t out = std::gcd(link.to_host.bytes_per_second, kNanosPerSecond);
  const int64_t in = std::gcd(link.to_device.bytes_per_second, kNanosPerSecond);
  const int64_t out_q = link.to_host.bytes_per_second / out;
  const int64_t in_q = link.to_device.bytes_per_second / in;
  const int64_t common = std::gcd(out_q, in_q);
  return {int128(out_q) * (in_q / common), int128(kNanosPerSecond / out) * (in_q / common),
          int128(kNanosPerSecond / in) * (out_q / common)};
}

// More than any sum the recurrence makes, in doubles.
double LargestSum(const OffloadProblem& problem, const ExactUnit& unit) {
  double bytes = static_cast<double>(problem.prefix(problem.size() + 1).value()) +
                 static_cast<double>(problem.peak().value()) +
                 static_cast<double>(problem.memory().value());
  bytes *= static_cast<double>(unit.offload_byte) + static_cast<double>(unit.prefetch_byte);
  const double times =
      static_cast<double>(problem.ideal_time().value()) * static_cast<double>(unit.per_nano);
  return 8 * (bytes + times);
}

template <class Number>
RelaxedInstance<Number> ExactInstance(const OffloadProblem& problem, const ExactUnit& unit) {
  RelaxedInstance<Number> instance;
  const auto per_nano = static_cast<Number>(unit.per_nano);
  for (int i = 0; i < problem.size(); ++i) {
    const OffloadOp& op = problem.op(i);
    instance.ops.push_back({Number(op.forward_time.value()) * per_nano,
                            Number(op.backward_time.value()) * per_nano,
                            Number(op.forward_need.value()), Number(op.backward_need.value())});
  }

  for (int i = 0; i <= problem.size(); ++i) {
    instance.activations.push_back(Number(problem.activation(i).value()));
  }

  instance.memory = Number(problem.memory().value());
  instance.host_memory = Number(problem.link().host_memory.value());
  instance.offload_time = static_cast<Number>(unit.offload_byte);
  instance.prefetch_time = static_cast<Number>(unit.prefetch_byte);
  return instance;
}

Nanos MakespanOf(const OffloadProblem& problem, const ExactUnit& unit, int128 idle) {
  return problem.ideal_time() +
         Nanos(static_cast<int64_t>((idle + unit.per_nano - 1) / unit.per_nano));
}

template <class Number>
std::optional<Nanos> ExactMakespan(const OffloadProblem& problem, const ExactUnit& unit,
                                   const OffloadSet& set) {
  const RelaxedInstance<Number> instance = ExactInstance<Number>(problem, unit);
  const std::optional<Number> idle = RelaxedRecurrence<Number>(instance).IdleOf(set);
  if (!idle) return std::nullopt;
  return MakespanOf(problem, unit, *idle);
}

template <class Number>
absl::StatusOr<std::optional<RelaxedOptimum>> SolveExactly(const OffloadProblem& problem,
                                                           const ExactUnit& unit,
                                                           const SolveContext& context) {
  const RelaxedInstance<Number> instance = ExactInstance<Number>(problem, unit);
  using Recurrence = RelaxedRecurrence<Number>;
  const RelaxedLimits limits =
      RelaxedLimitsOf(problem, context, sizeof(typename Recurrence::State), /*beam=*/false);
  absl::StatusOr<RelaxedSolution<Number>> solution =
      Recurrence(instance).Solve({EagerSet(problem)}, limits, context);
  if (!solution.ok()) return solution.status();
  if (!solution->complete) return std::optional<RelaxedOptimum>();
  RelaxedOptimum optimum;
  optimum.sets = std::move(solution->sets);
  if (solution->idle) optimum.makespan = MakespanOf(problem, unit, *solution->idle);
  return std::optional<RelaxedOptimum>(std::move(optimum));
}

constexpr double kNarrow = 4.6e18;  // 2^62
constexpr double kWide = 8.5e37;    // 2^126

}  // namespace

std::optional<Nanos> ExactRelaxedMakespan(const OffloadProblem& problem, const OffloadSet& set) {
  const ExactUnit unit = ExactUnitOf(problem.link());
  const double largest = LargestSum(problem, unit);
  if (largest < kNarrow) return ExactMakespan<int64_t>(problem, unit, set);
  if (largest < kWide) return ExactMakespan<int128>(problem, unit, set);
  return std::nullopt;
}

absl::StatusOr<std::optional<RelaxedOptimum>> ExactRelaxedOptimum(const OffloadProblem& problem,
                                                                  const SolveContext& context) {
  const ExactUnit unit = ExactUnitOf(problem.link());
  const double largest = LargestSum(problem, unit);
  if (largest < kNarrow) return SolveExactly<int64_t>(problem, unit, context);
  if (largest < kWide) return SolveExactly<int128>(problem, unit, context);
  return std::optional<RelaxedOptimum>();
}

absl::StatusOr<PartialOffload> OffloadParts(const OffloadProblem& problem,
                                            const std::vector<Bytes>& on_host) {
  OffloadSpec spec;
  spec.link = problem.link();
  spec.memory = problem.memory();
  OffloadSet set;
  // The part that stays is an activation of its own: an op that takes nothing reads it after the
  // one that reads both. What such an op makes is there while the one before it runs.
  for (int i = 0; i < problem.size(); ++i) {
    const Bytes part = on_host[static_cast<size_t>(i)];
    const Bytes rest = problem.activation(i) - part;
    if (part > Bytes(0)) set.push_back(static_cast<int>(spec.ops.size()));
    if (part == Bytes(0) || rest == Bytes(0)) {
      spec.activations.push_back(problem.activation(i));
      spec.ops.push_back(problem.op(i));
      continue;
    }
    if (!spec.ops.empty()) {
      spec.ops.back().forward_need += rest;
      spec.ops.back().backward_need += rest;
    }
    spec.activations.push_back(part);
    spec.activations.push_back(rest);
    OffloadOp op = problem.op(i);
    op.forward_need += problem.activation(i + 1);
    op.backward_need += problem.activation(i + 1);
    spec.ops.push_back(op);
    spec.ops.emplace_back();
  }

  spec.activations.push_back(problem.activation(problem.size()));
  absl::StatusOr<OffloadProblem> parts = OffloadProblem::Create(std::move(spec));
  if (!parts.ok()) return parts.status();
  return PartialOffload{*std::move(parts), std::move(set)};
}

std::optional<Nanos> FractionalOptimum(const OffloadProblem& problem) {
  std::vector<Bytes> on_host(static_cast<size_t>(problem.size()));
  Bytes left = problem.overflow_bytes();
  for (size_t i = 0; i < on_host.size(); ++i) {
    on_host[i] = std::min(left, problem.activation(static_cast<int>(i)));
    left -= on_host[i];
  }

  if (left > Bytes(0)) return std::nullopt;
  const absl::StatusOr<PartialOffload> parts = OffloadParts(problem, on_host);
  if (!parts.ok()) return std::nullopt;
  return ExactRelaxedMakespan(parts->problem, parts->set);
}

namespace {

// No more than there is to say: of slots smaller than a byte there may be more.
int64_t FloorOf(int128 value, int128 divisor) {
  const int128 quotient = value / divisor - (value % divisor < 0 ? 1 : 0);
  constexpr int128 kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp<int128>(quotient, -kMost, kMost));
}

int64_t CeilOf(int128 value, int128 divisor) { return -FloorOf(-value, divisor); }

// The instance in slots, as it is rounded now.
class Slots {
 public:
  Slots(const OffloadProblem& problem, int64_t slots)
      : problem_(problem), slots_(slots), memory_(problem.memory().value()) {
    RoundActivations();
    SetTimeUnits();
    instance_.memory = slots;
    instance_.host_memory = FloorOf(int128(problem.link().host_memory.value()) * slots, memory_);
    int128 out = 0, in = 0;  // what the link moves during the ops so far: bytes times 10^9
    int64_t out_slots = 0, in_slots = 0;
    for (int i = 0; i < problem.size(); ++i) {
      const OffloadOp& op = problem.op(i);
      out += int128(op.forward_time.value()) * problem.link().to_host.bytes_per_second;
      in += int128(op.backward_time.value()) * problem.link().to_device.bytes_per_second;
      instance_.ops.push_back({Moved(out, &out_slots) * instance_.offload_time,
                               Moved(in, &in_slots) * instance_.prefetch_time,
                               CeilOf(Scaled(op.forward_need), memory_),
                               CeilOf(Scaled(op.backward_need), memory_)});
    }
  }

  const RelaxedInstance<int64_t>& instance() const { return instance_; }

  // Rounds up the `count` activations that lack most, the first of equals; whether one lacked any.
  bool Raise(size_t count) {
    std::vector<std::pair<int128, size_t>> lacks;  // negative, hence what lacks most is least
    for (int i = 0; i <= problem_.size(); ++i) {
      const size_t at = static_cast<size_t>(i);
      const int128 spare =
          int128(instance_.activations[at]) * memory_ - Scaled(problem_.activation(i));
      if (spare < 0) lacks.emplace_back(spare, at);
    }
    count = std::min(count, lacks.size());
    std::partial_sort(lacks.begin(), lacks.begin() + static_cast<std::ptrdiff_t>(count),
                      lacks.end());
    for (size_t k = 0; k < count; ++k) ++instance_.activations[lacks[k].second];
    return count > 0;
  }

  // Idle time of the instance in nanoseconds, rounded up.
  Nanos TimeOf(int64_t idle) const {
    const int128 bytes = int128(idle) * memory_ / (int128(slots_) * instance_.offload_time);
    const int128 rate = problem_.link().to_host.bytes_per_second;
    return Nanos(static_cast<int64_t>(
        std::min<int128>(CeilOf(bytes * kNanosPerSecond, rate), kMaxTimeTotal)));
  }

 private:
  int128 Scaled(Bytes bytes) const { return int128(bytes.value()) * slots_; }

  void RoundActivations() {
    int64_t before = 0;
    for (int i = 0; i <= problem_.size(); ++i) {
      const int64_t after = CeilOf(Scaled(problem_.prefix(i + 1)), memory_);
      instance_.activations.push_back(after - before);
      before = after;
    }
    all_ = before + problem_.size() + 1;  // every one may be raised
  }

  // Slots that the link moves during one op: the partial sum rounded down, less those before. More
  // than there is to move makes no difference.
  int64_t Moved(int128 bytes, int64_t* before) const {
    // Sums of nearly 126 bits leave no bits for the slots; those of that size need no rounding.
    constexpr int kSlotBits = 20;
    const bool large = (bytes >> (126 - kSlotBits)) != 0;
    const int128 after = large ? bytes / kNanosPerSecond * slots_ / memory_
                               : bytes * slots_ / (int128(memory_) * kNanosPerSecond);
    const int64_t capped =
        static_cast<int64_t>(std::min<int128>(after, std::numeric_limits<int64_t>::max() / 2));
    const int64_t moved = std::min(capped - *before, all_);
    *before = capped;
    return moved;
  }

  // A slot takes time in inverse proportion to the bandwidths, which are cut to what sums allow.
  void SetTimeUnits() {
    int64_t out = problem_.link().to_device.bytes_per_second;
    int64_t in = problem_.link().to_host.bytes_per_second;
    if (out == in) out = in = 1;
    const int64_t largest_sum = 8 * all_ * (2 * int64_t{problem_.size()} + 4);
    const int64_t most = std::max<int64_t>(kMaxTotal / largest_sum, 1);
    while (std::max(out, in) > std::min<int64_t>(most, 1 << 20)) {
      out >>= 1;
      in >>= 1;
    }
    instance_.offload_time = std::max<int64_t>(out, 1);
    instance_.prefetch_time = std::max<int64_t>(in, 1);
  }

  const OffloadProblem& problem_;
  const int64_t slots_;
  const int64_t memory_;
  int64_t all_ = 0;
  RelaxedInstance<int64_t> instance_;
};

}  // namespace

absl::StatusOr<RelaxedOptimum> SlottedRelaxedOptimum(const OffloadProblem& problem, int64_t slots,
                                                     const SolveContext& context) {
  using Recurrence = RelaxedRecurrence<int64_t>;
  RelaxedLimits limits =
      RelaxedLimitsOf(problem, context, sizeof(Recurrence::State), /*beam=*/true);
  RelaxedOptimum optimum;
  optimum.slots = slots;
  if (problem.memory() < problem.least_memory() || problem.memory() == Bytes(0)) return optimum;
  Slots rounded(problem, slots);
  size_t raised = 1;
  do {
    ++optimum.passes;
    const Recurrence recurrence(rounded.instance());
    absl::StatusOr<RelaxedSolution<int64_t>> solution =
        recurrence.Solve({EagerSet(problem)}, limits, context);
    if (!solution.ok()) return solution.status();
    optimum.comparisons += solution->comparisons;
    for (OffloadSet& set : solution->sets) {
      if (problem.Admits(set)) optimum.sets.push_back(std::move(set));
    }
    if (!optimum.sets.empty()) {
      optimum.makespan = problem.ideal_time() + rounded.TimeOf(*solution->idle);
      return optimum;
    }
    // Sixteen passes with a quarter of the states cost as much as the first.
    if (optimum.passes == 1) limits.states = std::max<size_t>(limits.states / 4, 1);
    if (optimum.passes > MostSingleRaises(problem.size())) raised *= 2;
  } while (rounded.Raise(raised));
  return optimum;
}

}  // namespace stowage

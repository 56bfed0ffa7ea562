// The optimum when copies can be interrupted but activations move as a whole (Problem 2 of Beaumont
// et al. 2020), and the sets that have it: exactly, or in slots of memory. Latencies are left to
// the replay.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_RELAXED_OPTIMUM_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_RELAXED_OPTIMUM_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "solvers/solver.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

struct RelaxedOptimum {
  std::vector<OffloadSet>
      sets;                 // of the least idle time, at most kMaxRelaxedSets; none: nothing fits
  Nanos makespan;           // rounded up
  int64_t slots = 0;        // 0: exact
  int passes = 0;           // of slots: solutions of the recurrence
  int64_t comparisons = 0;  // of states, in all passes
};

inline constexpr size_t kMaxRelaxedSets = 64;

// In bytes and fractions of nanoseconds. Nothing where an op needs more than some thousand states,
// or all ops more than 2^30 comparisons of states, or where bandwidths and sizes are too odd and
// large for 127-bit integers; otherwise complete: no sets means that none exists. On a half-duplex
// link the makespan is a lower bound of all schedules that recompute nothing and copy these tensors
// whole. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::optional<RelaxedOptimum>> ExactRelaxedOptimum(const OffloadProblem& problem,
                                                                  const SolveContext& context);

// The makespan of one set, rounded up, when copies can be interrupted. Nothing if it does not fit,
// or where bandwidths and sizes are too odd. O(n).
std::optional<Nanos> ExactRelaxedMakespan(const OffloadProblem& problem, const OffloadSet& set);

// With memory in `slots` slots: needs rounded up; what the link moves during ops, and activations,
// rounded as partial sums, down and up. Where no set found fits in bytes, the activation that is
// rounded down most is rounded up instead, and all is solved again (section 5.3.2 there); after
// MostSingleRaises(n) passes twice as many activations each time, which leaves O(log n) passes. Of
// an op the sqrt(2^27 / n) most promising states are kept, in all passes but the first a quarter of
// them: at most some 2^28 comparisons of states, and a sixteenth of that for each further pass. No
// sets: rounding leaves none. The makespan is that of the slots. Errors as above.
absl::StatusOr<RelaxedOptimum> SlottedRelaxedOptimum(const OffloadProblem& problem, int64_t slots,
                                                     const SolveContext& context);

// Passes of SlottedRelaxedOptimum that raise one activation, of n ops: all where n < 64.
constexpr int MostSingleRaises(int n) { return 4096 / std::max(n, 1); }

// The optimum when copies can be interrupted and any part of an activation may leave (Beaumont et
// al. 2020, Problem 3): by their Theorem 2, the first bytes, as many as the peak is beyond the
// memory. A lower bound for schedules of whole activations, stronger than what the link takes.

// The makespan, rounded up; latencies are left out. On a half-duplex link no schedule is faster that
// recomputes nothing and moves all that a stage saves at once. (Single tensors may leave before the
// next stage has read its input.) Nothing where nothing fits, or where bandwidths and sizes are too
// odd and large for 127-bit integers. O(n).
std::optional<Nanos> FractionalOptimum(const OffloadProblem& problem);

// The problem in which `on_host[i]` bytes of activation i may leave, for i in 0..n-1, and the rest
// stays; and the set of all these parts. Internal to the optimum and its test.
struct PartialOffload {
  OffloadProblem problem;
  OffloadSet set;
};
absl::StatusOr<PartialOffload> OffloadParts(const OffloadProblem& problem,
                                            const std::vector<Bytes>& on_host);

// Least idle time when copies can be interrupted: the dynamic program of Beaumont et al. 2020 (section 5, Algorithm 1),
// on states that none other dominates (algorithms.md: states, corrections, dominance). Internal to solvers/transfer.
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
  size_t sets = 0;                                            // optimal sets wanted
  int64_t nodes = 0;  // of the search for more than the recurrence itself has
};

template <class Number>
struct RelaxedSolution {
  bool complete = false;         // no state was left out for want of space
  std::optional<Number> idle;    // nothing: no set fits (if complete)
  std::vector<OffloadSet> sets;  // of that idle time; the recurrence's own first
  size_t most_states = 0;        // of one op
  int64_t comparisons = 0;       // of states, for dominance
};

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
  explicit RelaxedRecurrence(const Instance& instance);

  // CANCELLED, DEADLINE_EXCEEDED. Deterministic. `start` are sets to begin with.
  absl::StatusOr<RelaxedSolution<Number>> Solve(const std::vector<OffloadSet>& start,
                                                const RelaxedLimits& limits,
                                                const SolveContext& context) const;

  // Idle time of one set; nothing if it does not fit. O(n).
  std::optional<Number> IdleOf(const OffloadSet& set) const;

 private:
  int size() const { return static_cast<int>(instance_.ops.size()); }
  State Initial() const;
  // The state after op i, or nothing if op i never fits.
  std::optional<State> Next(int i, const State& state, bool offload) const;
  bool FitsHost(int i, const State& state) const;
  Number EndIdle(const State& state) const;
  // No schedule that goes through the state before op i has less idle time.
  Number Bound(int i, const State& state) const;
  bool Dominates(const State& a, const State& b) const;
  absl::Status Prune(std::vector<State>* candidates, std::vector<State>* kept, int64_t* comparisons,
                     StopPoll* poll) const;
  static OffloadSet Backtrack(const std::vector<std::vector<State>>& states, int32_t last);
  // Adds sets of idle time `idle`, by depth-first search with Bound.
  absl::Status AddSets(Number idle, const RelaxedLimits& limits, StopPoll* poll,
                       std::vector<OffloadSet>* sets) const;

  absl::Status Finish(const std::vector<std::vector<State>>& states, const RelaxedLimits& limits,
                      StopPoll* poll, RelaxedSolution<Number>* solution) const;

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

extern template class RelaxedRecurrence<int64_t>;
extern template class RelaxedRecurrence<absl::int128>;

// How much the relaxed recurrence may take. Internal to solvers/transfer.

// Some thousand states for an op, fewer where the options' tables would get too large. A beam is
// narrower the more ops there are, so that no problem takes more than some 2^28 comparisons; what
// is to be complete may take four times as many before it is given up.
inline RelaxedLimits RelaxedLimitsOf(const OffloadProblem& problem, const SolveContext& context,
                                     size_t state_bytes, bool beam) {
  constexpr size_t kStates = 4096;
  // States not yet compared, their copies when vectors grow, and scratch of sorting.
  constexpr size_t kRowsBeside = 12;
  constexpr int64_t kNodes = 100000;
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
  limits.sets = kMaxRelaxedSets;
  limits.nodes = kNodes;
  return limits;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_RELAXED_OPTIMUM_H_

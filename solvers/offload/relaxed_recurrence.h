// Least idle time when copies can be interrupted: the dynamic program of Beaumont et al. 2020
// (section 5, Algorithm 1), on states that none other dominates. Internal to solvers/offload.
//
// Memory is counted in any unit (bytes, slots), time in one in which both directions of the link
// take a whole number for a unit of memory. Before op i, going inwards from both ends of the
// schedule, a state is
//   kept       activation i and those before it that stay: what the device holds at least
//   backlog_f  time that the link needs for offloads that are left, or, below zero, for how long it
//              has had none
//   backlog_b  the same of prefetches, in reversed time
//   reading    of the last offload, if it ended while forward j still read its activation, which
//              therefore stays until forward j has ended: where prefetches may reach into forward j
//   idle       so far
// In the paper's terms M_F = kept + what backlog_f > 0 holds, and M_B likewise: of the gradients
// only sums with ex^B are needed, and equations 1 to 10 become those in relaxed_recurrence.cc.
// Corrected against the print: feasibility takes positive parts of the backlogs; equation 6 has
// ex^B; equation 9 |y_{j+1}|; equation 10 lacks -|y_{L+1}|, and what `reading` is for: there an
// activation counts as gone while forward j reads it.
//
// Dominance: waiting turns idle time into less backlog, one for one, in each half. So a state is no
// worse than another that keeps no less and whose idle time is no less than its own and what its
// backlogs, and `reading`, are greater by. Where the host's memory is limited, both must keep the
// same. States that cannot end within the idle time of a known set are left out.
#ifndef STOWAGE_SOLVERS_OFFLOAD_RELAXED_RECURRENCE_H_
#define STOWAGE_SOLVERS_OFFLOAD_RELAXED_RECURRENCE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "solvers/offload/offload_problem.h"
#include "solvers/solver.h"

namespace stowage {

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
                                                const SolveOptions& options) const;

  // Idle time of one set; nothing if it does not fit. O(n).
  std::optional<Number> IdleOf(const OffloadSet& set) const;

 private:
  int size() const { return static_cast<int>(instance_.ops.size()); }
  State Initial() const;
  // The state after op i, or nothing if op i never fits.
  std::optional<State> Next(int i, const State& state, bool offload) const;
  bool HostHasRoom(int i, const State& state) const;
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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_RELAXED_RECURRENCE_H_

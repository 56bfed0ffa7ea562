// Persistent schedules for all budgets of a chain at once. Internal to solvers/chain.
//
// Two ways. Exact steps (persistent_steps.h) where the chain is not too long for them. Else tables
// (persistent_table.h), whose rounding does not make a budget lose what it could have:
//  - sizes are rounded to nearest, so that errors cancel, or upwards where stages repeat: the errors
//    of equal stages add up. A table only proposes schedules, for every memory at which its value
//    changes, and the evaluator says what each really needs;
//  - one table per range of budgets, at most an octave wide, with a unit of its own;
//  - beside them, schedules for a grid of budgets that follow the table but track memory in bytes
//    (persistent_table.h): near the least budget they are what fits.
// The monotone envelope of all that, of the schedule of least memory, of the periodic ones and of
// store-all is the frontier.
//
// Which way, and with which units, depends on the chain and the options, not on a budget: a budget
// gets the best of what the smaller ones have, and more.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_FRONTIER_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_FRONTIER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/internal/persistent_steps.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/frontier.h"
#include "solvers/solver.h"

namespace stowage {

// A chain with what both ways start from.
struct PersistentProblem {
  const Chain& chain() const { return instance.chain(); }

  Instance instance;
  PersistentSpace exact;  // in bytes
  LeastMemory least;
  Bytes least_budget;
  Bytes store_all_peak;
  bool repeats;  // many of its intervals are alike
};

// O(L^3) time. Errors of ComputeLeastMemory.
absl::StatusOr<PersistentProblem> MakePersistentProblem(const Instance& instance,
                                                        const SolveOptions& options);

// RESOURCE_EXHAUSTED where schedules are too long to be kept: the one of least memory is the longest,
// or nearly. O(instructions).
absl::Status CheckScheduleSize(const PersistentProblem& problem);

// Exact for all budgets; nothing where that would take more than a fraction of a second (more for
// long chains). CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::optional<PersistentSteps>> ExactSteps(const PersistentProblem& problem,
                                                          const SolveOptions& options);

struct TableSummary {
  int64_t slots = 0;      // the most of any table; 0 if none was of use
  bool lossless = false;  // nothing was rounded: no schedule of the class is faster
  bool left_out = false;  // a range of budgets got no table: it would be over the limits
};

// Adds what cheap schedules and tables have for budgets up to `budget`, and for some beyond.
// options.slots = 0 lets the work decide how many slots. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<TableSummary> AddSchedules(const PersistentProblem& problem, Bytes budget,
                                          const SolveOptions& options, FrontierBuilder* builder);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_FRONTIER_H_

// Persistent schedules for all budgets of a chain at once: exact steps where the chain is not too long
// for them, else tables and what they propose (algorithms.md, "Frontiers"). Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_FRONTIER_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_FRONTIER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_steps.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// A chain with what both ways start from.
struct PersistentProblem {
  const Chain& chain() const { return instance.chain(); }

  Instance instance;
  PersistentSpace exact;  // in bytes
  MinimumMemory least;
  Bytes least_budget;
  Bytes store_all_peak;
  bool repeats;  // many of its intervals are alike
};

// O(L^3) time. Errors of ComputeMinimumMemory.
absl::StatusOr<PersistentProblem> MakePersistentProblem(const Instance& instance,
                                                        const SolveContext& context);

// RESOURCE_EXHAUSTED where schedules are too long to be kept: the one of least memory is the longest,
// or nearly. O(instructions).
absl::Status CheckScheduleSize(const PersistentProblem& problem);

// The schedule of least memory.
Schedule MinimumMemorySchedule(const PersistentProblem& problem);

// Exact for all budgets; nothing where that would take more than a fraction of a second (more for
// long chains). CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::optional<PersistentSteps>> ExactSteps(const PersistentProblem& problem,
                                                          const SolveContext& context);

struct TableSummary {
  int64_t slots = 0;      // the most of any table; 0 if none was of use
  bool lossless = false;  // nothing was rounded: no schedule of the class is faster
  bool left_out = false;  // a range of budgets got no table: it would be over the limits
};

// Adds what cheap schedules and tables have for budgets up to `budget`, and for some beyond.
// options.slots = 0 lets the work decide how many slots. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<TableSummary> AddSchedules(const PersistentProblem& problem, Bytes budget,
                                          const SolveContext& context, FrontierBuilder* builder);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_FRONTIER_H_

// The tables behind beyond_persistent: which of them serve a chain, and what they add to a frontier.
// Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_BEYOND_TABLES_H_
#define STOWAGE_SOLVERS_CHAIN_BEYOND_TABLES_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/beyond_extents.h"
#include "solvers/chain/beyond_table.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/model/chain.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// Whether checkpoints may move: on short chains.
bool CheckpointsMove(const Chain& chain);

// What one table was made with.
struct SizedTable {
  std::unique_ptr<PersistentSpace> space;
  std::unique_ptr<BeyondTable> table;
  int64_t unit = 1;  // bytes of a slot
  int64_t slots = 0;
  bool lossless = false;  // nothing was rounded
};

// A chain with what every table of it starts from.
struct BeyondProblem {
  const Chain& chain;
  PersistentSpace exact;
  BeyondExtents extents;
  Bytes store_all_peak;

  Bytes least_budget() const { return Bytes(LeastBudgetOf(exact, extents)); }
  Schedule least_schedule() const { return LeastSchedule(exact, extents); }
};

absl::StatusOr<BeyondProblem> MakeBeyondProblem(const Chain& chain, const SolveOptions& options);

// Whether one table in the sizes' common unit serves all budgets. It depends on none of them: more
// budget must not turn an exact answer into a rounded one.
bool LosslessIsAffordable(const BeyondProblem& problem, const SolveOptions& options);

// In the sizes' common unit.
absl::StatusOr<SizedTable> LosslessTable(const Chain& chain, Bytes budget,
                                         const SolveOptions& options);
// Of so many slots or, where the budget is no multiple, up to twice as many: none of it is left out.
absl::StatusOr<SizedTable> TableOfSlots(const Chain& chain, Bytes budget, int64_t slots,
                                        const SolveOptions& options);

// Adds what one lossless table has, or several rounded ones, and notes it in `info`. CANCELLED,
// DEADLINE_EXCEEDED; what is too large for the table limit adds nothing.
absl::Status AddLossless(const BeyondProblem& problem, const SolveOptions& options,
                         FrontierBuilder* builder, FrontierInfo* info);
absl::Status AddRounded(const BeyondProblem& problem, const SolveOptions& options,
                        FrontierBuilder* builder, FrontierInfo* info);

struct RoundedSchedule {
  std::optional<Schedule> schedule;
  int64_t slots = 0;  // the most of any table
};

// Of the schedules that AddRounded adds, the fastest that fits `budget` and takes less than `bound`,
// if there is one. The same tables, but few schedules are made of them instead of hundreds. Errors
// as of AddRounded.
absl::StatusOr<RoundedSchedule> FastestRounded(const BeyondProblem& problem, Bytes budget,
                                               Nanos bound, const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_BEYOND_TABLES_H_

// What became of a solve.
#ifndef STOWAGE_SERVER_SERVICE_SOLVE_OUTCOME_H_
#define STOWAGE_SERVER_SERVICE_SOLVE_OUTCOME_H_

#include <new>
#include <type_traits>

#include "absl/status/statusor.h"
#include "server/entries/planning_error.h"
#include "server/observe/server_metrics.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// Of one that has failed.
inline SolveOutcome OutcomeOf(const absl::Status& status) {
  return absl::IsCancelled(status) ? SolveOutcome::kCancelled : SolveOutcome::kError;
}

inline SolveOutcome OutcomeOf(const absl::StatusOr<Plan>& plan) {
  if (!plan.ok()) return OutcomeOf(plan.status());
  switch (plan->status) {
    case PlanStatus::kFound:
      return SolveOutcome::kFound;
    case PlanStatus::kProvenInfeasible:
      return SolveOutcome::kProvenInfeasible;
    case PlanStatus::kNotFound:
      return SolveOutcome::kNotFound;
  }
  return SolveOutcome::kError;
}

// All report by status; what throws is the allocator, when tables or requests are large. What has no
// answer to give is `function`'s to leave as it was.
template <class Function>
std::invoke_result_t<Function> CatchingBadAlloc(const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError();
  }
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_SOLVE_OUTCOME_H_

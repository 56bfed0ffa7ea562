// What every strategy of offloading is: a problem in, activations to offload and their replay out.
#ifndef STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_STRATEGY_H_
#define STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_STRATEGY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/offload/offload_problem.h"
#include "solvers/offload/timeline.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

struct OffloadPlan {
  PlanStatus status = PlanStatus::kNotFound;
  OffloadSet set;
  OffloadTimeline timeline;  // empty unless kFound
  Nanos lower_bound;         // no schedule that moves these activations is faster
  int64_t slots = 0;         // of memory, where sizes were rounded
  std::string explanation;
};

struct OffloadStrategyInfo {
  std::string name;         // "offload_greedy"
  std::string description;  // one line
};

// Stateless and thread-safe. Equal problems give equal plans.
class OffloadStrategy {
 public:
  virtual ~OffloadStrategy() = default;
  virtual const OffloadStrategyInfo& info() const = 0;

  // Where all fits, nothing is offloaded. Where nothing can fit, kProvenInfeasible; where the
  // strategy has no answer, kNotFound. INVALID_ARGUMENT for options, CANCELLED, DEADLINE_EXCEEDED.
  // Uses of the options `slots`, `stop`, `progress` and `table_limit`.
  absl::StatusOr<OffloadPlan> Solve(const OffloadProblem& problem,
                                    const SolveOptions& options) const;

 protected:
  // Of a problem that does not fit as it is, and for which some set may fit. `plan` has the lower
  // bound already.
  virtual absl::Status SolveHard(const OffloadProblem& problem, const SolveOptions& options,
                                 OffloadPlan* plan) const = 0;

  // Replays `set` and keeps it if it is faster than what `plan` has, or as fast with less to move.
  static void Offer(const OffloadProblem& problem, const OffloadSet& set, OffloadPlan* plan);
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_STRATEGY_H_

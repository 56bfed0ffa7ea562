// The referee for whatever is planned: of a chain that of chains (simulate.h), of a graph that of
// graphs (graph_simulate.h). A schedule's instructions name the chain's stages, or the graph's
// vertices by position in program order plus 1. With a transfer model, tensors may go to host memory
// and back (transfer_lower_bound.h has the bound); without one, no transfer is valid.
#ifndef STOWAGE_SOLVERS_PLAN_PROBLEM_REFEREE_H_
#define STOWAGE_SOLVERS_PLAN_PROBLEM_REFEREE_H_

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/plan.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

absl::StatusOr<Simulation> Simulate(const Problem& problem, const Schedule& schedule);
absl::StatusOr<Simulation> Simulate(const Problem& problem, const Schedule& schedule,
                                    const TransferModel& transfers);
Schedule StoreAllSchedule(const Problem& problem);

// A step without a budget: what StoreAllSchedule takes. INVALID_ARGUMENT made by FieldError for a
// graph on which it is no schedule: a vertex in place writes over what a backward needs. No order of
// such a graph is planned.
absl::StatusOr<Simulation> PlainTraining(const Problem& problem);
absl::StatusOr<Simulation> PlainTraining(const Chain& chain);
absl::StatusOr<Simulation> PlainTraining(const Graph& graph);

Nanos MakespanLowerBound(const Problem& problem, Bytes budget);
Nanos MakespanLowerBound(const Problem& problem, const TransferModel& transfers, Bytes budget);
absl::Status Referee(const Problem& problem, Plan* plan);
absl::Status Referee(const Problem& problem, const TransferModel& transfers, Plan* plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_PROBLEM_REFEREE_H_

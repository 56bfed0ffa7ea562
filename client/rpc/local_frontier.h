// A frontier that is made in this process, with the plans that lie behind its points.
#ifndef STOWAGE_CLIENT_RPC_LOCAL_FRONTIER_H_
#define STOWAGE_CLIENT_RPC_LOCAL_FRONTIER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "client/rpc/plan_values.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/frontier.h"

namespace stowage {

struct LocalFrontier {
  FrontierReply reply;
  Frontier frontier;
  Nanos solve_time;
};

// PlanConnection::GetFrontier of planning in this process. `progress` as that of SolveOptions; may be empty.
absl::StatusOr<LocalFrontier> MakeLocalFrontier(const Profile& profile,
                                                const KeyOptions& key_options, int max_points,
                                                const std::function<void(double)>& progress,
                                                const CallOptions& options);

// The plan that it has for a budget, without another search: validated and bounded as any, and as fast as that of
// ComputePlan but for what SolveFrontier leaves out (solvers/solver.h). "Least" is its first point. Errors:
// INVALID_ARGUMENT for the budget; INTERNAL.
absl::StatusOr<PlanReply> PlanFrom(const LocalFrontier& made, const Profile& profile,
                                   const KeyOptions& key_options, const Budget& budget);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_LOCAL_FRONTIER_H_

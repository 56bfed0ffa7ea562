// Frontiers as commands ask for them, and plans that lie in one.
#ifndef STOWAGE_CLIENT_CLI_FRONTIER_QUESTION_H_
#define STOWAGE_CLIENT_CLI_FRONTIER_QUESTION_H_

#include <optional>

#include "absl/status/statusor.h"
#include "client/cli/question.h"
#include "client/rpc/local_frontier.h"
#include "client/rpc/plan_connection.h"
#include "solvers/model/budget.h"

namespace stowage {

// From the connection of ConnectionFromFlags within --timeout, watched on standard error if that is a terminal:
// the share done and the time where this process solves, the time alone where a server does. Errors: CallFromFlags,
// PlanConnection::GetFrontier.
absl::StatusOr<FrontierReply> AskForFrontier(PlanConnection* connection, const Question& question,
                                             int max_points);

// A plan, and the frontier that it is one of; an error in place of a frontier that could not be had.
struct PlanAmongOthers {
  PlanReply plan;
  absl::StatusOr<FrontierReply> frontier;
};

// Within --timeout each; but where this process plans without copies, the frontier is solved and the plan is that
// which lies in it: no second search. Errors: AskForPlan.
absl::StatusOr<PlanAmongOthers> AskForPlanAmongOthers(PlanConnection* connection,
                                                      const Question& question,
                                                      const Budget& budget);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_FRONTIER_QUESTION_H_

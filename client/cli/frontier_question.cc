#include "client/cli/frontier_question.h"

#include <utility>

#include "client/cli/progress_line.h"
#include "client/cli/ticking_line.h"
#include "client/rpc/server_flags.h"

namespace stowage {
namespace {

constexpr char kWhat[] = "planning all budgets";

absl::StatusOr<LocalFrontier> SolveHere(const Question& question, int max_points) {
  const absl::StatusOr<CallOptions> call = CallFromFlags();
  if (!call.ok()) return call.status();
  TickingLine line(TerminalOrNull(), kWhat, call->deadline);
  return MakeLocalFrontier(
      question.profile, question.key, max_points, [&line](double share) { line.Report(share); },
      *call);
}

bool PlansHere() { return ServerFromFlags().address.empty(); }

}  // namespace

absl::StatusOr<FrontierReply> AskForFrontier(PlanConnection* connection, const Question& question,
                                             int max_points) {
  if (PlansHere()) {
    absl::StatusOr<LocalFrontier> made = SolveHere(question, max_points);
    if (!made.ok()) return made.status();
    return std::move(made->reply);
  }
  const absl::StatusOr<CallOptions> call = CallFromFlags();
  if (!call.ok()) return call.status();
  const TickingLine line(TerminalOrNull(), kWhat, call->deadline);
  return connection->GetFrontier(question.profile, question.key, max_points, *call);
}

absl::StatusOr<PlanAmongOthers> AskForPlanAmongOthers(PlanConnection* connection,
                                                      const Question& question,
                                                      const Budget& budget) {
  // A frontier of plans that copy has points at some budgets only: a search for one budget finds faster plans.
  if (PlansHere() && !question.instance().link()) {
    absl::StatusOr<LocalFrontier> made = SolveHere(question, /*max_points=*/0);
    if (made.ok()) {
      absl::StatusOr<PlanReply> plan = PlanFrom(*made, question.profile, question.key, budget);
      if (!plan.ok()) return plan.status();
      return PlanAmongOthers{*std::move(plan), std::move(made->reply)};
    }
    // One budget may take less than all: a search that the deadline ends has a plan then.
    if (!absl::IsDeadlineExceeded(made.status())) return made.status();
    absl::StatusOr<PlanReply> plan = AskForPlan(connection, question, budget, ToString(budget));
    if (!plan.ok()) return plan.status();
    return PlanAmongOthers{*std::move(plan), made.status()};
  }
  absl::StatusOr<PlanReply> plan = AskForPlan(connection, question, budget, ToString(budget));
  if (!plan.ok()) return plan.status();
  return PlanAmongOthers{*std::move(plan), AskForFrontier(connection, question, /*max_points=*/0)};
}

}  // namespace stowage

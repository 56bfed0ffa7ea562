#include "client/rpc/answer_referee.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

absl::Status Refused(const absl::Status& status) {
  return absl::InternalError(absl::StrCat("the server sent a plan that the referee refuses: ",
                                          std::string(status.message())));
}

absl::Status Judge(const LinkedProblem& linked, const Budget& budget, Plan* plan) {
  if (!std::holds_alternative<LeastBudget>(budget)) {
    const absl::StatusOr<Bytes> bytes = ResolveBudget(linked.problem, budget, PlanOptions());
    if (!bytes.ok()) return bytes.status();
    plan->budget = *bytes;
  }
  const absl::Status status = Referee(linked, plan);
  if (!status.ok()) return Refused(status);
  // Which vertices instructions mean is the caller's to say.
  plan->stage_vertices = StepVertices(linked.problem);
  return absl::OkStatus();
}

}  // namespace

absl::Status RefereeProgress(const Profile& profile, const Budget& budget,
                             const KeyOptions& key_options, Plan* plan) {
  return Judge(LinkedProblemOf(profile, key_options.recompute_only), budget, plan);
}

absl::Status RefereeAnswer(const Profile& profile, const Budget& budget,
                           const KeyOptions& key_options, Plan* plan) {
  const LinkedProblem linked = LinkedProblemOf(profile, key_options.recompute_only);
  absl::Status status = Judge(linked, budget, plan);
  if (status.ok()) TightenBound(linked, plan);
  return status;
}

}  // namespace stowage

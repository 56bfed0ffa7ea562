#include "client/rpc/answer_validation.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

absl::Status Refused(const absl::Status& status) {
  return absl::InternalError(absl::StrCat("the server sent a plan that the evaluator refuses: ",
                                          std::string(status.message())));
}

absl::Status Judge(const Instance& instance, const Budget& budget, Plan* plan) {
  if (!std::holds_alternative<LeastBudget>(budget)) {
    const absl::StatusOr<Bytes> bytes = ResolveBudget(instance, budget, PlanOptions());
    if (!bytes.ok()) return bytes.status();
    plan->budget = *bytes;
  }
  const absl::Status status = ValidatePlan(instance, plan);
  if (!status.ok()) return Refused(status);
  // Which vertices instructions mean is the caller's to say.
  plan->stage_vertices = StepVertices(instance.problem());
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateProgress(const Profile& profile, const Budget& budget,
                              const KeyOptions& key_options, Plan* plan) {
  return Judge(InstanceOf(profile, key_options.recompute_only), budget, plan);
}

absl::Status ValidateAnswer(const Profile& profile, const Budget& budget,
                            const KeyOptions& key_options, Plan* plan) {
  const Instance instance = InstanceOf(profile, key_options.recompute_only);
  absl::Status status = Judge(instance, budget, plan);
  if (status.ok()) StrengthenBound(instance, plan);
  return status;
}

}  // namespace stowage

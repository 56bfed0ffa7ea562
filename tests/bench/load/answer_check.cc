#include "tests/bench/load/answer_check.h"

#include "absl/status/statusor.h"
#include "proto/codec/codec.h"
#include "solvers/schedule/instance.h"

namespace stowage {

absl::Status CheckAnswer(const v1::ComputePlanRequest& request, const std::string& reply) {
  v1::ComputePlanResponse response;
  if (!response.ParseFromString(reply)) return absl::InternalError("the answer does not parse");
  const absl::StatusOr<Plan> plan = FromProto(response.plan());
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<Profile> profile = FromProto(request.profile());
  if (!profile.ok()) return profile.status();
  if (plan->status != PlanStatus::kFound) return absl::OkStatus();
  Plan judged = *plan;
  const Instance instance = InstanceOf(*profile, request.options().recompute_only());
  if (absl::Status status = ValidatePlan(instance, &judged); !status.ok()) return status;
  if (judged.prediction.peak != plan->prediction.peak ||
      judged.prediction.makespan != plan->prediction.makespan) {
    return absl::InternalError("the prediction is not the evaluator's");
  }
  return absl::OkStatus();
}

}  // namespace stowage

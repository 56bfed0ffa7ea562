#include "client/rpc/plan_client.h"

#include <chrono>
#include <utility>

#include "client/rpc/answer_referee.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

using Clock = CallOptions::Clock;

Nanos Since(Clock::time_point start) {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// Judges a plan made for the costs of another job. What was proven there is not proven here. Without
// own times the predicted time stays the one of whoever planned.
absl::Status RefereeForeign(const Profile& profile, Bytes budget, const KeyOptions& key,
                            Plan* plan) {
  Plan judged = *plan;
  const absl::Status status = RefereeAnswer(profile, budget, key, &judged);
  if (!status.ok()) return status;
  if (profile.cost_source == CostSource::kBytesOnly) {
    judged.prediction.makespan = plan->prediction.makespan;
    judged.prediction.recompute_time = plan->prediction.recompute_time;
    judged.bounds.store_all_makespan = plan->bounds.store_all_makespan;
    judged.bounds.lower_bound = plan->bounds.lower_bound;
  }
  judged.bounds.proven_optimal = judged.prediction.recomputed_forwards == 0;
  judged.bounds.least_budget = Bytes(0);
  *plan = std::move(judged);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClientPlan> PlanClient::Plan(ProfileSource* source, const Budget& budget,
                                            const CallOptions& call) {
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<const Profile*> structure = source->Structure();
  if (!structure.ok()) return structure.status();
  CallOptions rest = call;
  if (rest.has_deadline()) rest.deadline += Clock::now() - start;

  ClientPlan answer;
  absl::StatusOr<std::optional<PlanReply>> cached =
      FromCache(**structure, budget, rest, &answer.request_time);
  if (!cached.ok()) return cached.status();
  if (*cached) {
    answer.reply = **std::move(cached);
    return answer;
  }
  absl::StatusOr<ClientPlan> computed = Compute(source, budget, rest);
  if (computed.ok()) computed->request_time += answer.request_time;
  return computed;
}

absl::StatusOr<ClientPlan> PlanClient::Compute(ProfileSource* source, const Budget& budget,
                                               const CallOptions& call) {
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<const Profile*> profile = source->Full();
  if (!profile.ok()) return profile.status();
  CallOptions rest = call;
  if (rest.has_deadline()) rest.deadline += Clock::now() - start;

  // Resolved anew: a timed profile has seen more runs, and its overheads are the largest of them.
  const absl::StatusOr<Bytes> bytes = Resolve(**profile, budget, rest);
  if (!bytes.ok()) return bytes.status();
  const Clock::time_point asked = Clock::now();
  absl::StatusOr<PlanReply> reply = connection_->ComputePlan(**profile, *bytes, Key(rest), rest);
  if (!reply.ok()) return reply.status();
  ClientPlan answer;
  answer.profiled = true;
  answer.request_time = Since(asked);
  const absl::Status status = RefereeAnswer(**profile, *bytes, options_.key, &reply->plan);
  if (!status.ok()) return status;
  answer.reply = *std::move(reply);
  return answer;
}

PlanKey PlanClient::KeyOf(const Profile& profile, const CallOptions& call) {
  return MakePlanKey(profile, Key(call));
}

const KeyOptions& PlanClient::Key(const CallOptions& call) {
  if (tenant_known_ || !options_.key.tenant.empty()) return options_.key;
  // A server that cannot say is asked again the next time; its own key misses at worst.
  const absl::StatusOr<Capabilities> capabilities = connection_->GetCapabilities(call);
  if (!capabilities.ok()) return options_.key;
  options_.key.tenant = capabilities->tenant;
  tenant_known_ = true;
  return options_.key;
}

absl::StatusOr<Bytes> PlanClient::Resolve(const Profile& profile, const Budget& budget,
                                          const CallOptions& call) const {
  const StopToken stop(call.deadline);
  PlanOptions options;
  options.solver = options_.key.solver;
  options.solve.slots = options_.key.slots;
  options.solve.stop = &stop;
  options.recompute_only = options_.key.recompute_only;
  return ResolveBudget(profile, budget, options);
}

absl::StatusOr<std::optional<PlanReply>> PlanClient::FromCache(const Profile& profile,
                                                               const Budget& budget,
                                                               const CallOptions& call,
                                                               Nanos* request_time) {
  const absl::StatusOr<Bytes> bytes = Resolve(profile, budget, call);
  if (!bytes.ok()) return bytes.status();
  const Clock::time_point asked = Clock::now();
  std::vector<PlanKey> keys = {KeyOf(profile, call)};
  keys.insert(keys.end(), options_.other_keys.begin(), options_.other_keys.end());
  absl::StatusOr<PlanReply> reply = connection_->GetPlan(keys, *bytes, call);
  *request_time = Since(asked);
  if (absl::IsNotFound(reply.status())) return std::optional<PlanReply>();
  if (!reply.ok()) return reply.status();
  // What did not fit another job's overheads may fit this one's; a plan that does not fit here is
  // no plan.
  if (reply->plan.status != PlanStatus::kFound ||
      !RefereeForeign(profile, *bytes, options_.key, &reply->plan).ok()) {
    return std::optional<PlanReply>();
  }
  return std::optional<PlanReply>(*std::move(reply));
}

}  // namespace stowage

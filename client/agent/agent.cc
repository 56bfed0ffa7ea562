#include "client/agent/agent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;

Nanos Since(Clock::time_point start) {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// A profile holds for one shape and type of batch.
std::string Signature(const at::Tensor& input, const at::Tensor& target) {
  std::string signature;
  for (const at::Tensor* tensor : {&input, &target}) {
    absl::StrAppend(&signature, c10::toString(tensor->scalar_type()), "[");
    for (const int64_t size : tensor->sizes()) absl::StrAppend(&signature, size, ",");
    signature += "]";
  }
  return signature;
}

// Judges a plan by this job's own profile and budget, whatever it says of itself.
absl::Status RefereeHere(const Chain& chain, Bytes budget, Plan* plan) {
  plan->budget = budget;
  absl::Status status = Referee(chain, plan);
  if (status.ok()) TightenBound(chain, plan);
  return status;
}

// The same for a plan made for the costs of another job. What was proven there is not proven here.
// Without own times the predicted time stays the one of whoever planned.
absl::Status RefereeForeign(const Chain& chain, Bytes budget, bool has_times, Plan* plan) {
  Plan judged = *plan;
  absl::Status status = RefereeHere(chain, budget, &judged);
  if (!status.ok()) return status;
  if (!has_times) {
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

Agent::Agent(const ChainModel* model, AgentOptions options)
    : Agent(model, Connect(options.server, options.said, options.retry), options) {}

Agent::Agent(const ChainModel* model, std::unique_ptr<PlanConnection> connection,
             AgentOptions options)
    : model_(model), options_(std::move(options)), connection_(std::move(connection)) {
  options_.plan.recompute_only = true;
}

absl::Status Agent::Measure(const at::Tensor& input, const at::Tensor& target, bool bytes_only) {
  ProfileOptions options = options_.profile;
  options.bytes_only = bytes_only;
  absl::StatusOr<stowage::Profile> profile = ProfileChain(*model_, input, target, options);
  if (!profile.ok()) return profile.status();
  profile_ = *std::move(profile);
  signature_ = Signature(input, target);
  return absl::OkStatus();
}

absl::Status Agent::Profile(const at::Tensor& input, const at::Tensor& target) {
  return Measure(input, target, /*bytes_only=*/false);
}

absl::StatusOr<AdoptedPlan> Agent::Plan(const at::Tensor& input, const at::Tensor& target,
                                        const Budget& budget) {
  executor_.reset();
  absl::Status status = EnsureBytes(input, target);
  if (!status.ok()) return status;

  AdoptedPlan adopted;
  CallOptions call = CallOptions::Within(options_.plan_timeout);
  absl::StatusOr<std::optional<PlanReply>> cached = FromCache(budget, call, &adopted);
  if (!cached.ok()) return cached.status();
  absl::StatusOr<PlanReply> reply =
      *cached ? **std::move(cached) : Compute(input, target, budget, call, &adopted);
  if (!reply.ok()) return reply.status();
  adopted.plan = std::move(reply->plan);
  adopted.key = reply->key;
  adopted.source = reply->source;
  if (adopted.plan.status != PlanStatus::kFound) return adopted;
  status = Adopt(adopted.plan, input, target);
  if (!status.ok()) return status;
  return adopted;
}

absl::StatusOr<StepReport> Agent::Step(const at::Tensor& input, const at::Tensor& target) {
  if (executor_ == nullptr)
    return absl::FailedPreconditionError("no plan has been adopted: call Plan first");
  return executor_->Step(input, target);
}

absl::Status Agent::EnsureBytes(const at::Tensor& input, const at::Tensor& target) {
  if (profile_ && signature_ == Signature(input, target)) return absl::OkStatus();
  return Measure(input, target, /*bytes_only=*/true);
}

absl::StatusOr<Bytes> Agent::Resolve(const Budget& budget, const CallOptions& call) const {
  const StopToken stop(call.deadline);
  PlanOptions options;
  options.solver = options_.plan.solver;
  options.solve.stop = &stop;
  return ResolveBudget(chain(), budget, options);
}

absl::StatusOr<std::optional<PlanReply>> Agent::FromCache(const Budget& budget,
                                                          const CallOptions& call,
                                                          AdoptedPlan* adopted) {
  const absl::StatusOr<Bytes> bytes = Resolve(budget, call);
  if (!bytes.ok()) return bytes.status();
  const Clock::time_point start = Clock::now();
  absl::StatusOr<PlanReply> reply =
      connection_->GetPlan({MakePlanKey(*profile_, options_.plan)}, *bytes, call);
  adopted->request_time = Since(start);
  if (absl::IsNotFound(reply.status())) return std::optional<PlanReply>();
  if (!reply.ok()) return reply.status();
  // What did not fit another job's overheads may fit this one's; a plan that does not fit here is
  // no plan.
  const bool has_times = profile_->cost_source == CostSource::kMeasured;
  if (reply->plan.status != PlanStatus::kFound ||
      !RefereeForeign(chain(), *bytes, has_times, &reply->plan).ok()) {
    return std::optional<PlanReply>();
  }
  return std::optional<PlanReply>(*std::move(reply));
}

absl::StatusOr<PlanReply> Agent::Compute(const at::Tensor& input, const at::Tensor& target,
                                         const Budget& budget, CallOptions call,
                                         AdoptedPlan* adopted) {
  if (profile_->cost_source != CostSource::kMeasured) {
    const Clock::time_point start = Clock::now();
    absl::Status status = Profile(input, target);
    if (!status.ok()) return status;
    adopted->profiled = true;
    call.deadline += Clock::now() - start;
  }
  // Resolved again: the timed profile has seen more runs, and its overheads are the largest of them.
  absl::StatusOr<Bytes> bytes = Resolve(budget, call);
  if (!bytes.ok()) return bytes.status();
  const Clock::time_point start = Clock::now();
  absl::StatusOr<PlanReply> reply =
      connection_->ComputePlan(*profile_, *bytes, options_.plan, call);
  adopted->request_time += Since(start);
  if (!reply.ok()) return reply.status();
  absl::Status status = RefereeHere(chain(), *bytes, &reply->plan);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat(
        connection_->name(), " sent a plan that the referee refuses: ", status.message()));
  }
  return reply;
}

absl::Status Agent::Adopt(const stowage::Plan& plan, const at::Tensor& input,
                          const at::Tensor& target) {
  absl::StatusOr<std::unique_ptr<ChainExecutor>> executor = ChainExecutor::Create(
      model_, chain(), plan.schedule, options_.profile.meter, BatchShape::Of(input, target));
  if (!executor.ok()) return executor.status();
  executor_ = *std::move(executor);
  return absl::OkStatus();
}

}  // namespace stowage

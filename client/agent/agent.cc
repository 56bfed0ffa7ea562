#include "client/agent/agent.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/job_name.h"
#include "client/torch/median.h"

namespace stowage {
namespace {

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

AgentOptions Completed(AgentOptions options) {
  options.plan.recompute_only = true;
  if (options.job.empty()) options.job = JobName();
  return options;
}

}  // namespace

// One batch's profiles: bytes are measured in one pass, times only when they are asked for.
class Agent::BatchSource : public ProfileSource {
 public:
  BatchSource(Agent* agent, const at::Tensor& input, const at::Tensor& target)
      : agent_(agent), input_(input), target_(target) {}

  absl::StatusOr<const stowage::Profile*> Structure() override {
    return Measured(agent_->EnsureBytes(input_, target_));
  }

  absl::StatusOr<const stowage::Profile*> Full() override {
    const absl::Status status = agent_->EnsureBytes(input_, target_);
    if (!status.ok() || agent_->profile_->cost_source == CostSource::kMeasured) {
      return Measured(status);
    }
    profiled_ = true;
    return Measured(agent_->Profile(input_, target_));
  }

  bool profiled() const { return profiled_; }

 private:
  absl::StatusOr<const stowage::Profile*> Measured(const absl::Status& status) const {
    if (!status.ok()) return status;
    return &*agent_->profile_;
  }

  Agent* const agent_;
  const at::Tensor& input_;
  const at::Tensor& target_;
  bool profiled_ = false;
};

Agent::Agent(const ChainModel* model, AgentOptions options)
    : Agent(model, Connect(options.server, options.said, options.retry), options) {}

Agent::Agent(const ChainModel* model, std::unique_ptr<PlanConnection> connection,
             AgentOptions options)
    : model_(model),
      options_(Completed(std::move(options))),
      connection_(std::move(connection)),
      client_(connection_.get(), {options_.plan, {}}) {}

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

CallOptions Agent::CallWithin() const {
  CallOptions call = CallOptions::Within(options_.plan_timeout);
  call.job = options_.job;
  return call;
}

absl::StatusOr<AdoptedPlan> Agent::Plan(const at::Tensor& input, const at::Tensor& target,
                                        const Budget& budget) {
  executor_.reset();
  BatchSource source(this, input, target);
  absl::StatusOr<ClientPlan> answer = client_.Plan(&source, budget, CallWithin());
  if (answer.ok()) answer->profiled = source.profiled();
  return Adopt(std::move(answer), input, target);
}

absl::StatusOr<AdoptedPlan> Agent::Refresh(const at::Tensor& input, const at::Tensor& target,
                                           const Budget& budget) {
  executor_.reset();
  const absl::Status status = Profile(input, target);
  if (!status.ok()) return status;
  BatchSource source(this, input, target);
  return Adopt(client_.Compute(&source, budget, CallWithin()), input, target);
}

absl::StatusOr<StepReport> Agent::Step(const at::Tensor& input, const at::Tensor& target) {
  if (executor_ == nullptr)
    return absl::FailedPreconditionError("no plan has been adopted: call Plan first");
  absl::StatusOr<StepReport> report = executor_->Step(input, target);
  if (report.ok()) {
    step_times_.push_back(report->wall_time);
    step_peaks_.push_back(report->peak);
  }
  return report;
}

absl::StatusOr<ExecutionVerdict> Agent::Report() {
  if (step_times_.empty()) {
    return absl::FailedPreconditionError("no step has been made by the adopted plan");
  }
  if (for_larger_) {
    return absl::FailedPreconditionError("the adopted plan was made for a larger shape");
  }
  measured_.steps = static_cast<int64_t>(step_times_.size());
  measured_.step_time = Median(step_times_);
  measured_.peak = Median(step_peaks_);
  return connection_->ReportExecution(measured_, CallWithin());
}

absl::Status Agent::EnsureBytes(const at::Tensor& input, const at::Tensor& target) {
  if (profile_ && signature_ == Signature(input, target)) return absl::OkStatus();
  return Measure(input, target, /*bytes_only=*/true);
}

absl::StatusOr<AdoptedPlan> Agent::Adopt(absl::StatusOr<ClientPlan> answer, const at::Tensor& input,
                                         const at::Tensor& target) {
  step_times_.clear();
  step_peaks_.clear();
  if (!answer.ok()) return answer.status();
  AdoptedPlan adopted;
  adopted.plan = std::move(answer->reply.plan);
  adopted.key = answer->reply.key;
  adopted.source = answer->reply.source;
  adopted.profile_wanted = answer->reply.profile_wanted;
  adopted.profiled = answer->profiled;
  adopted.for_larger = answer->for_larger;
  adopted.request_time = answer->request_time;
  if (adopted.plan.status != PlanStatus::kFound) return adopted;
  absl::StatusOr<std::unique_ptr<ChainExecutor>> executor = ChainExecutor::Create(
      model_, chain(), adopted.plan.schedule, options_.device, BatchShape::Of(input, target));
  if (!executor.ok()) return executor.status();
  executor_ = *std::move(executor);
  for_larger_ = adopted.for_larger;
  measured_ = ExecutionMeasurement();
  measured_.key = adopted.key;
  measured_.plan_digest = ScheduleDigest(adopted.plan.schedule);
  measured_.revision = adopted.plan.revision;
  measured_.budget = adopted.plan.budget;
  return adopted;
}

}  // namespace stowage

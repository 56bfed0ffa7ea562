// The RPCs about cached plans, called.
#ifndef STOWAGE_TESTS_SERVER_RPC_ADMIN_CALLS_H_
#define STOWAGE_TESTS_SERVER_RPC_ADMIN_CALLS_H_

#include <string>
#include <utility>

#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {

// What comes back; with a token, the caller bears it.
class AdminCalls {
 public:
  explicit AdminCalls(const std::shared_ptr<grpc::Channel>& channel, std::string token = "")
      : stub_(v1::PlanService::NewStub(channel)), token_(std::move(token)) {}

  absl::StatusOr<v1::ListPlansResponse> List(const v1::ListPlansRequest& request = {}) {
    return Call(&Stub::ListPlans, request);
  }
  absl::StatusOr<v1::ListPlansResponse> List(const v1::PlanKey& key) {
    v1::ListPlansRequest request;
    *request.mutable_key() = key;
    return List(request);
  }
  absl::Status Pin(const v1::PinPlanRequest& request) {
    return Call(&Stub::PinPlan, request).status();
  }
  absl::StatusOr<v1::DeletePlanResponse> Delete(const v1::PlanKey& key) {
    v1::DeletePlanRequest request;
    *request.mutable_key() = key;
    return Call(&Stub::DeletePlan, request);
  }
  absl::StatusOr<v1::ReportExecutionResponse> Report(const v1::ReportExecutionRequest& request) {
    return Call(&Stub::ReportExecution, request);
  }
  absl::StatusOr<v1::ExplainPlanResponse> Explain(const v1::ExplainPlanRequest& request) {
    return Call(&Stub::ExplainPlan, request);
  }
  absl::StatusOr<v1::GetPlanResponse> Get(const v1::GetPlanRequest& request) {
    return Call(&Stub::GetPlan, request);
  }
  absl::StatusOr<v1::ComputePlanResponse> Compute(const v1::ComputePlanRequest& request) {
    return Call(&Stub::ComputePlan, request);
  }

 private:
  using Stub = v1::PlanService::Stub;

  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
    Response response;
    const absl::Status status =
        FromGrpcStatus((stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  std::unique_ptr<Stub> stub_;
  const std::string token_;
};

inline v1::PinPlanRequest PinRequest(const v1::PlanSummary& plan, v1::PinAction action) {
  v1::PinPlanRequest request;
  *request.mutable_key() = plan.key();
  request.set_budget_bytes(plan.budget_bytes());
  request.set_revision(plan.revision());
  request.set_action(action);
  return request;
}

inline v1::ExplainPlanRequest ExplainRequest(const v1::PlanKey& key, int64_t budget) {
  v1::ExplainPlanRequest request;
  *request.mutable_key() = key;
  request.mutable_budget()->set_bytes(budget);
  return request;
}

// Of a job whose steps and peak are as predicted, times the ratios.
inline v1::ReportExecutionRequest ReportRequest(const v1::Plan& plan, const v1::PlanKey& key,
                                                const std::string& job, double time = 1,
                                                double peak = 1) {
  v1::ReportExecutionRequest request;
  *request.mutable_key() = key;
  request.set_plan_digest(plan.digest());
  request.set_revision(plan.revision());
  request.set_steps(100);
  const auto times = [](double ratio, int64_t value) {
    return static_cast<int64_t>(ratio * static_cast<double>(value) + 0.5);
  };
  request.set_measured_step_time_ns(times(time, plan.prediction().makespan_ns()));
  request.set_measured_peak_bytes(times(peak, plan.prediction().peak_bytes()));
  request.set_budget_bytes(plan.budget_bytes());
  request.set_job(job);
  return request;
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_RPC_ADMIN_CALLS_H_

// The RPCs about cached plans, called.
#ifndef STOWAGE_TESTS_SERVER_RPC_ADMIN_CALLS_H_
#define STOWAGE_TESTS_SERVER_RPC_ADMIN_CALLS_H_

#include <string>
#include <utility>

#include "stowage/v1/plan_admin_service.grpc.pb.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {

// What comes back; with a token, the caller bears it.
class AdminCalls {
 public:
  explicit AdminCalls(const std::shared_ptr<grpc::Channel>& channel, std::string token = "")
      : stub_(v1::PlanService::NewStub(channel)),
        admin_(v1::PlanAdminService::NewStub(channel)),
        token_(std::move(token)) {}

  absl::StatusOr<v1::ListPlansResponse> List(const v1::ListPlansRequest& request = {}) {
    return Call(&Stub::ListPlans, request);
  }
  absl::StatusOr<v1::ListPlansResponse> List(const v1::PlanKey& key) {
    v1::ListPlansRequest request;
    *request.mutable_key() = key;
    return List(request);
  }
  absl::Status Pin(const v1::PinPlanRequest& request) {
    return Call(&AdminStub::PinPlan, request, admin_.get()).status();
  }
  absl::Status Unpin(const v1::UnpinPlanRequest& request) {
    return Call(&AdminStub::UnpinPlan, request, admin_.get()).status();
  }
  absl::Status RollBack(const v1::RollBackPlanRequest& request) {
    return Call(&AdminStub::RollBackPlan, request, admin_.get()).status();
  }
  absl::Status Promote(const v1::PromotePlanRequest& request) {
    return Call(&AdminStub::PromotePlan, request, admin_.get()).status();
  }
  absl::Status Freeze(const v1::FreezePlanRequest& request) {
    return Call(&AdminStub::FreezePlan, request, admin_.get()).status();
  }
  absl::Status Unfreeze(const v1::UnfreezePlanRequest& request) {
    return Call(&AdminStub::UnfreezePlan, request, admin_.get()).status();
  }
  absl::StatusOr<v1::DeletePlanResponse> Delete(const v1::DeletePlanRequest& request) {
    return Call(&AdminStub::DeletePlan, request, admin_.get());
  }
  absl::StatusOr<v1::DeletePlanResponse> Delete(const v1::PlanKey& key) {
    v1::DeletePlanRequest request;
    *request.mutable_key() = key;
    return Delete(request);
  }
  absl::StatusOr<v1::ExportDecisionsResponse> Export(
      const v1::ExportDecisionsRequest& request = {}) {
    return Call(&AdminStub::ExportDecisions, request, admin_.get());
  }
  absl::StatusOr<v1::ImportDecisionsResponse> Import(const v1::ImportDecisionsRequest& request) {
    return Call(&AdminStub::ImportDecisions, request, admin_.get());
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
  using AdminStub = v1::PlanAdminService::Stub;

  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    return Call(method, request, stub_.get());
  }

  template <class Service, class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Service::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                                const Request& request, Service* stub) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
    Response response;
    const absl::Status status = FromGrpcStatus((stub->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  std::unique_ptr<Stub> stub_;
  std::unique_ptr<AdminStub> admin_;
  const std::string token_;
};

// Any request about one revision.
template <class Request>
Request RevisionRequest(const v1::PlanSummary& plan) {
  Request request;
  *request.mutable_key() = plan.key();
  request.set_budget_bytes(plan.budget_bytes());
  request.set_revision(plan.revision());
  return request;
}

inline v1::PinPlanRequest PinRequest(const v1::PlanSummary& plan) {
  return RevisionRequest<v1::PinPlanRequest>(plan);
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

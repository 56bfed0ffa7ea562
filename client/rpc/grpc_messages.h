// Requests and answers of the service from and to the values of PlanConnection. Internal to
// client/rpc.
//
// An answer that breaks the contract is INTERNAL: it is not the caller's argument that is invalid.
// Nothing that a server sends is taken on trust: numbers are in their ranges, lists in their order,
// enums known; schedules the evaluator judges (answer_validation.h).
#ifndef STOWAGE_CLIENT_RPC_GRPC_MESSAGES_H_
#define STOWAGE_CLIENT_RPC_GRPC_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"
#include "proto/codec/codec.h"
#include "proto/codec/utf8.h"
#include "stowage/v1/plan_admin_service.pb.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

// grpc_messages.cc: plans.
v1::GetPlanRequest MakeGetPlanRequest(const std::vector<PlanKey>& keys, const Budget& budget,
                                      const std::string& job, const Plan* held = nullptr);
v1::ComputePlanRequest MakeComputePlanRequest(const Profile& profile, const Budget& budget,
                                              const KeyOptions& key_options,
                                              const std::string& job);
v1::WatchPlanRequest MakeWatchPlanRequest(const Profile& profile, const Budget& budget,
                                          const KeyOptions& key_options, const std::string& job);
// `held` is the plan that was asked with, or null.
absl::StatusOr<PlanReply> ReadResponse(const v1::GetPlanResponse& response,
                                       const Plan* held = nullptr);
absl::StatusOr<PlanReply> ReadResponse(const v1::ComputePlanResponse& response);
absl::StatusOr<PlanSource> ReadSource(v1::PlanSource source);
absl::StatusOr<Plan> ReadPlan(const v1::Plan& message);
absl::StatusOr<PlanKey> ReadKey(const v1::PlanKey& message);

// grpc_messages_curves.cc: many plans at once, without their schedules.
v1::GetFrontierRequest MakeGetFrontierRequest(const Profile& profile, const KeyOptions& key_options,
                                              int max_points);
v1::FitBatchRequest MakeFitBatchRequest(const BatchQuery& query);
absl::StatusOr<FrontierReply> ReadResponse(const v1::GetFrontierResponse& response);
absl::StatusOr<BatchReply> ReadResponse(const v1::FitBatchResponse& response);

// grpc_messages_upkeep.cc: what a server keeps, and what it says of itself.
v1::ExplainPlanRequest MakeExplainPlanRequest(const PlanKey& key, const Budget& budget);
v1::ReportExecutionRequest MakeReportExecutionRequest(const ExecutionMeasurement& measurement,
                                                      const std::string& job);
v1::ListPlansRequest MakeListPlansRequest(const ListQuery& query);
absl::StatusOr<std::string> ReadResponse(const v1::ExplainPlanResponse& response);
absl::StatusOr<ExecutionVerdict> ReadResponse(const v1::ReportExecutionResponse& response);
absl::StatusOr<PlanPage> ReadResponse(const v1::ListPlansResponse& response);
absl::StatusOr<bool> ReadResponse(const v1::DeletePlanResponse& response);
v1::ExportDecisionsRequest MakeExportDecisionsRequest(const std::string& page_token,
                                                      int32_t page_size);
v1::ImportDecisionsRequest MakeImportDecisionsRequest(const std::vector<std::string>& decisions);
absl::StatusOr<ExportedDecisions> ReadResponse(const v1::ExportDecisionsResponse& response);
absl::StatusOr<ImportedDecisions> ReadResponse(const v1::ImportDecisionsResponse& response);
absl::StatusOr<Capabilities> ReadResponse(const v1::GetCapabilitiesResponse& response);

// Any request of PlanAdminService, and one about a revision.
template <class Request>
Request MakeKeyRequest(const PlanKey& key, const ChangeTerms& terms) {
  Request request;
  *request.mutable_key() = ToProto(key);
  request.set_etag(ToValidUtf8(terms.etag));
  request.set_request_id(ToValidUtf8(terms.request_id));
  return request;
}
template <class Request>
Request MakeRevisionRequest(const PlanRevision& revision, const ChangeTerms& terms) {
  Request request = MakeKeyRequest<Request>(revision.key, terms);
  request.set_budget_bytes(revision.budget.value());
  request.set_revision(revision.revision);
  return request;
}

// INTERNAL: "the server's answer breaks the contract: ...".
absl::Status BrokenContract(const std::string& what);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_MESSAGES_H_

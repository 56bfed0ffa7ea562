#include "client/rpc/grpc_connection.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/answer_validation.h"
#include "client/rpc/grpc_channel.h"
#include "client/rpc/grpc_messages.h"
#include "client/rpc/replica_list.h"
#include "client/rpc/routed_connection.h"
#include "client/rpc/socket_probe.h"
#include "client/rpc/watch_answer.h"
#include "proto/codec/grpc_status.h"
#include "solvers/model/field_error.h"
#include "stowage/v1/plan_admin_service.grpc.pb.h"
#include "stowage/v1/plan_service.grpc.pb.h"

namespace stowage {
namespace {

using Stub = v1::PlanService::Stub;
using AdminStub = v1::PlanAdminService::Stub;

class GrpcConnection : public PlanConnection {
 public:
  explicit GrpcConnection(const GrpcOptions& options) : channel_(options) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    v1::GetPlanResponse response;
    const absl::Status status =
        Ask(&Stub::GetPlan, MakeGetPlanRequest(keys, budget, options.job, options.held.get()),
            options, &response);
    if (!status.ok()) return status;
    absl::StatusOr<PlanReply> reply = ReadResponse(response, options.held.get());
    if (reply.ok() && std::find(keys.begin(), keys.end(), reply->key) == keys.end()) {
      return BrokenContract("a plan under a key that was not asked for");
    }
    return reply;
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    absl::StatusOr<PlanReply> reply = Call<v1::ComputePlanResponse>(
        &Stub::ComputePlan, MakeComputePlanRequest(profile, budget, key_options, options.job),
        options);
    if (!reply.ok()) return reply;
    const absl::Status status = ValidateAnswer(profile, budget, key_options, &reply->plan);
    if (!status.ok()) return status;
    return reply;
  }

  absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                      const KeyOptions& key_options,
                                      const ProgressCallback& progress,
                                      const CallOptions& options) override {
    WatchAnswer answer(profile, budget, key_options, progress);
    const absl::Status status =
        Watch(MakeWatchPlanRequest(profile, budget, key_options, options.job), options, &answer);
    if (status.ok()) return answer.Finish();
    if (absl::IsDeadlineExceeded(status)) {
      if (std::optional<PlanReply> best = answer.BestSoFar()) return *std::move(best);
    }
    return status;
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    return Call<v1::GetFrontierResponse>(
        &Stub::GetFrontier, MakeGetFrontierRequest(profile, key_options, max_points), options);
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    return Call<v1::FitBatchResponse>(&Stub::FitBatch, MakeFitBatchRequest(query), options);
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                          const CallOptions& options) override {
    return Call<v1::ExplainPlanResponse>(&Stub::ExplainPlan, MakeExplainPlanRequest(key, budget),
                                         options);
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                   const CallOptions& options) override {
    return Call<v1::ReportExecutionResponse>(
        &Stub::ReportExecution, MakeReportExecutionRequest(measurement, options.job), options);
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery& query, const CallOptions& options) override {
    return Call<v1::ListPlansResponse>(&Stub::ListPlans, MakeListPlansRequest(query), options);
  }

  absl::Status ChangePlan(const PlanRevision& revision, RevisionAction action,
                          const ChangeTerms& terms, const CallOptions& options) override {
    switch (action) {
      case RevisionAction::kPin:
        return Change(&AdminStub::PinPlan, MakeRevisionRequest<v1::PinPlanRequest>(revision, terms),
                      options);
      case RevisionAction::kUnpin:
        return Change(&AdminStub::UnpinPlan,
                      MakeRevisionRequest<v1::UnpinPlanRequest>(revision, terms), options);
      case RevisionAction::kRollBack:
        return Change(&AdminStub::RollBackPlan,
                      MakeRevisionRequest<v1::RollBackPlanRequest>(revision, terms), options);
      case RevisionAction::kPromote:
        return Change(&AdminStub::PromotePlan,
                      MakeRevisionRequest<v1::PromotePlanRequest>(revision, terms), options);
      case RevisionAction::kFreeze:
        return Change(&AdminStub::FreezePlan,
                      MakeKeyRequest<v1::FreezePlanRequest>(revision.key, terms), options);
      case RevisionAction::kUnfreeze:
        return Change(&AdminStub::UnfreezePlan,
                      MakeKeyRequest<v1::UnfreezePlanRequest>(revision.key, terms), options);
    }
    return FieldError("action", static_cast<int64_t>(action), "must be one of RevisionAction");
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const ChangeTerms& terms,
                                  const CallOptions& options) override {
    v1::DeletePlanResponse response;
    const absl::Status status =
        Ask(&AdminStub::DeletePlan, MakeKeyRequest<v1::DeletePlanRequest>(key, terms), options,
            &response);
    if (!status.ok()) return status;
    return ReadResponse(response);
  }

  absl::StatusOr<ExportedDecisions> ExportDecisions(const std::string& page_token,
                                                    int32_t page_size,
                                                    const CallOptions& options) override {
    v1::ExportDecisionsResponse response;
    const absl::Status status =
        Ask(&AdminStub::ExportDecisions, MakeExportDecisionsRequest(page_token, page_size), options,
            &response);
    if (!status.ok()) return status;
    return ReadResponse(response);
  }

  absl::StatusOr<ImportedDecisions> ImportDecisions(const std::vector<std::string>& decisions,
                                                    const CallOptions& options) override {
    v1::ImportDecisionsResponse response;
    const absl::Status status =
        Ask(&AdminStub::ImportDecisions, MakeImportDecisionsRequest(decisions), options, &response);
    if (!status.ok()) return status;
    return ReadResponse(response);
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    return Call<v1::GetCapabilitiesResponse>(&Stub::GetCapabilities, v1::GetCapabilitiesRequest(),
                                             options);
  }

  std::string name() const override { return channel_.name(); }

 private:
  template <class Service, class Request, class Response>
  absl::Status Ask(grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request, const CallOptions& options, Response* response) {
    grpc::ClientContext context;
    auto channel = channel_.Begin(static_cast<int64_t>(request.ByteSizeLong()), options, &context);
    if (!channel.ok()) return channel.status();
    const CancelToken::Watch watch(options.cancel.get(), [&context] { context.TryCancel(); });
    Service stub(*channel);
    const grpc::Status status = (stub.*method)(&context, request, response);
    if (status.ok()) return absl::OkStatus();
    return channel_.Failed(*channel, FromGrpcStatus(status), options.cancel.get());
  }

  template <class Response, class Request>
  auto Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, const CallOptions& options)
      -> decltype(ReadResponse(std::declval<Response>())) {
    Response response;
    const absl::Status status = Ask(method, request, options, &response);
    if (!status.ok()) return status;
    return ReadResponse(response);
  }

  // Whose answer says nothing but that it is done.
  template <class Request, class Response>
  absl::Status Change(grpc::Status (AdminStub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                      const Request& request, const CallOptions& options) {
    Response response;
    return Ask(method, request, options, &response);
  }

  absl::Status Watch(const v1::WatchPlanRequest& request, const CallOptions& options,
                     WatchAnswer* answer) {
    grpc::ClientContext context;
    auto channel = channel_.Begin(static_cast<int64_t>(request.ByteSizeLong()), options, &context);
    if (!channel.ok()) return channel.status();
    const CancelToken::Watch watch(options.cancel.get(), [&context] { context.TryCancel(); });
    Stub stub(*channel);
    const auto reader = stub.WatchPlan(&context, request);
    v1::WatchPlanResponse message;
    absl::Status broken;
    while (broken.ok() && reader->Read(&message)) broken = answer->Take(message);
    if (!broken.ok()) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (!broken.ok()) return broken;
    return status.ok() ? absl::OkStatus()
                       : channel_.Failed(*channel, FromGrpcStatus(status), options.cancel.get());
  }

  GrpcChannel channel_;
};

absl::StatusOr<ReplicaAddresses> Listed(const std::string& address) {
  absl::StatusOr<std::vector<std::string>> addresses = ListedAddresses(address);
  if (!addresses.ok()) return addresses.status();
  std::sort(addresses->begin(), addresses->end());
  addresses->erase(std::unique(addresses->begin(), addresses->end()), addresses->end());
  return std::make_shared<const std::vector<std::string>>(*std::move(addresses));
}

// Who those are that an address stands for.
ReplicaSource SourceOf(const GrpcOptions& options) {
  if (!absl::StartsWith(options.address, "dns:")) {
    return [listed = Listed(options.address)](const CallOptions&) { return listed; };
  }
  constexpr std::chrono::seconds kRefresh{5};  // a replica that is new is used within seconds
  const auto list = std::make_shared<ReplicaList>(
      options.address, [address = options.address] { return LookUp(address); }, kRefresh);
  return [list, options](const CallOptions& call) {
    return list->Get(ConnectPatience(options, call), call.cancel.get());
  };
}

GrpcOptions OptionsOf(const std::string& replica, GrpcOptions options) {
  // Certificates are for the name, whichever address they are shown at.
  if (options.tls.enabled && options.tls.server_name.empty() &&
      absl::StartsWith(options.address, "dns:")) {
    options.tls.server_name = ParseEndpoint(options.address)->host;
  }
  options.address = replica;
  return options;
}

}  // namespace

std::unique_ptr<PlanConnection> MakeGrpcConnection(const GrpcOptions& options) {
  // What only gRPC can look up, by a resolver that the address names, has only gRPC's own spreading. Options that
  // contradict each other are refused before anything is looked up.
  const bool names_resolver =
      absl::StartsWith(options.address, "dns://") && !absl::StartsWith(options.address, "dns:///");
  if (!IsSpread(options.address) || names_resolver || !CheckGrpcOptions(options).ok()) {
    return std::make_unique<GrpcConnection>(options);
  }
  return MakeRoutedConnection(
      absl::StrCat("stowaged at ", options.address), SourceOf(options),
      [options](const std::string& replica) {
        return std::make_unique<GrpcConnection>(OptionsOf(replica, options));
      });
}

}  // namespace stowage

#include "client/rpc/grpc_connection.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/answer_validation.h"
#include "client/rpc/grpc_channel.h"
#include "client/rpc/grpc_messages.h"
#include "client/rpc/watch_answer.h"
#include "proto/codec/grpc_status.h"
#include "stowage/v1/plan_service.grpc.pb.h"

namespace stowage {
namespace {

using Stub = v1::PlanService::Stub;

class GrpcConnection : public PlanConnection {
 public:
  explicit GrpcConnection(const GrpcOptions& options) : channel_(options) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    absl::StatusOr<PlanReply> reply = Call<v1::GetPlanResponse>(
        &Stub::GetPlan, MakeGetPlanRequest(keys, budget, options.job), options);
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

  absl::Status PinPlan(const PlanRevision& revision, RevisionAction action,
                       const CallOptions& options) override {
    return Call<v1::PinPlanResponse>(&Stub::PinPlan, MakePinPlanRequest(revision, action), options)
        .status();
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const CallOptions& options) override {
    return Call<v1::DeletePlanResponse>(&Stub::DeletePlan, MakeDeletePlanRequest(key), options);
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    return Call<v1::GetCapabilitiesResponse>(&Stub::GetCapabilities, v1::GetCapabilitiesRequest(),
                                             options);
  }

  std::string name() const override { return channel_.name(); }

 private:
  template <class Response, class Request>
  auto Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, const CallOptions& options)
      -> decltype(ReadResponse(std::declval<Response>())) {
    grpc::ClientContext context;
    auto channel = channel_.Begin(static_cast<int64_t>(request.ByteSizeLong()), options, &context);
    if (!channel.ok()) return channel.status();
    const CancelToken::Watch watch(options.cancel.get(), [&context] { context.TryCancel(); });
    Stub stub(*channel);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.ok()) return ReadResponse(response);
    return channel_.Failed(*channel, FromGrpcStatus(status), options.cancel.get());
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

}  // namespace

std::unique_ptr<PlanConnection> MakeGrpcConnection(const GrpcOptions& options) {
  return std::make_unique<GrpcConnection>(options);
}

}  // namespace stowage

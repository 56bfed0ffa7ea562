#include "client/rpc/grpc_connection.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_channel.h"
#include "client/rpc/grpc_messages.h"
#include "proto/codec/grpc_status.h"
#include "stowage/v1/plan_service.grpc.pb.h"

namespace stowage {
namespace {

using Clock = CallOptions::Clock;
using Stub = v1::PlanService::Stub;

// The same status, payloads included, with more to say.
absl::Status Append(const absl::Status& status, const std::string& words) {
  absl::Status longer(status.code(), absl::StrCat(status.message(), words));
  status.ForEachPayload([&longer](absl::string_view url, const absl::Cord& payload) {
    longer.SetPayload(url, payload);
  });
  return longer;
}

class GrpcConnection : public PlanConnection {
 public:
  explicit GrpcConnection(const GrpcOptions& options) : options_(options), channel_(options) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    return Call<v1::GetPlanResponse>(&Stub::GetPlan, MakeGetPlanRequest(keys, budget), options);
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return Call<v1::ComputePlanResponse>(
        &Stub::ComputePlan, MakeComputePlanRequest(profile, budget, key_options), options);
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    return Call<v1::GetCapabilitiesResponse>(&Stub::GetCapabilities, v1::GetCapabilitiesRequest(),
                                             options);
  }

  std::string name() const override { return absl::StrCat("stowaged at ", options_.address); }

 private:
  template <class Response, class Request>
  auto Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, const CallOptions& options)
      -> decltype(ReadResponse(std::declval<Response>())) {
    const auto size = static_cast<int64_t>(request.ByteSizeLong());
    if (size > options_.message_limit.value()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the request has ", size, " bytes: ", LimitWords()));
    }
    const Clock::time_point deadline =
        options.has_deadline() ? options.deadline : Clock::now() + options_.default_timeout;
    auto channel = channel_.Connect(deadline);
    if (!channel.ok()) return Explain(channel.status());

    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + (deadline - Clock::now()));
    Stub stub(*channel);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.ok()) return ReadResponse(response);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) channel_.Discard(*channel);
    return Explain(FromGrpcStatus(status));
  }

  absl::Status Explain(const absl::Status& status) const {
    if (absl::IsUnavailable(status)) {
      return Append(status, absl::StrCat(" [is stowaged running at ", options_.address,
                                         "? a server that wants TLS looks the same]"));
    }
    if (absl::IsResourceExhausted(status) &&
        absl::StrContains(status.message(), "larger than max")) {
      return Append(status, absl::StrCat(" [", LimitWords(), "]"));
    }
    return status;
  }

  std::string LimitWords() const {
    return absl::StrCat("this connection's limit is ", options_.message_limit.value(),
                        " bytes per message");
  }

  const GrpcOptions options_;
  GrpcChannel channel_;
};

}  // namespace

std::unique_ptr<PlanConnection> MakeGrpcConnection(const GrpcOptions& options) {
  return std::make_unique<GrpcConnection>(options);
}

}  // namespace stowage

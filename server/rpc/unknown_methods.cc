#include "server/rpc/unknown_methods.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// What was a method of PlanService before there was a service for administrators.
const char* MovedTo(const std::string& method) {
  const bool moved =
      method == "/stowage.v1.PlanService/PinPlan" || method == "/stowage.v1.PlanService/DeletePlan";
  return moved ? "; it is one of stowage.v1.PlanAdminService now" : "";
}

}  // namespace

UnknownMethods::UnknownMethods(std::string version) : version_(std::move(version)) {}

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const std::string method = context->method();
  // Nobody has shown yet who they are: who does not even ask for a service of Stowage learns nothing.
  if (!absl::StartsWith(method, "/stowage.")) {
    return new Refusal(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
  }
  absl::Status status = absl::UnimplementedError(
      absl::StrCat("stowaged ", version_, " has no method ", method, MovedTo(method)));
  status = WithReason(std::move(status), kReasonNotImplemented);
  status = WithErrorMetadata(std::move(status), "method", method);
  status = WithErrorMetadata(std::move(status), "server_version", version_);
  return new Refusal(ToGrpcStatus(status));
}

}  // namespace stowage

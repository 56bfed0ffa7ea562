#include "server/rpc/rpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"
#include "server/planning/planning_error.h"

namespace stowage {

grpc::Status ToWireStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  absl::Status wire = status;
  if (GetReason(wire).empty()) {
    const std::string reason = PlanningReason(status);
    wire = WithReason(wire, reason.empty() ? absl::StatusCodeToString(status.code()) : reason);
  }
  if (const auto retry_after = PlanningRetryAfter(status)) {
    wire = WithRetryDelay(wire, *retry_after);
  }
  return ToGrpcStatus(wire);
}

absl::Status NotImplemented(Rpc rpc) {
  return WithReason(absl::UnimplementedError(absl::StrCat(
                        ToString(rpc), " is not implemented by this version of the server")),
                    kReasonNotImplemented);
}

}  // namespace stowage

#include "server/rpc/rpc_status.h"

#include <string>

#include "proto/codec/grpc_status.h"
#include "server/entries/planning_error.h"

namespace stowage {

grpc::Status ToWireStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  absl::Status wire = status;
  if (GetReason(wire).empty()) {
    const std::string reason = PlanningReason(status);
    wire = WithReason(wire, reason.empty() ? absl::StatusCodeToString(status.code()) : reason);
  }
  for (const auto& [name, figure] : PlanningFigures(status)) {
    wire = WithErrorMetadata(wire, name, figure);
  }
  if (const auto retry_after = PlanningRetryAfter(status)) {
    wire = WithRetryDelay(wire, *retry_after);
  }
  return ToGrpcStatus(wire);
}

}  // namespace stowage

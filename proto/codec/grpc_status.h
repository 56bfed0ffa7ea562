// Errors on the wire: absl::Status to grpc::Status with google.rpc details and back, for client and
// server alike.
//
//   part of the absl::Status                  detail of the grpc::Status
//   FieldViolation (solvers/model)            BadRequest: field, description "value: rule";
//                                             ErrorInfo: reason INVALID_FIELD unless there is another, metadata "rule"
//   reason, below                             ErrorInfo: reason, domain "stowage"
//   retry delay, below                        RetryInfo
// A round trip keeps code, message and these parts. Bytes that are not UTF-8 travel as '?', long
// texts are cut (gRPC refuses trailers above 8 KiB). All functions are thread-safe.
#ifndef STOWAGE_PROTO_CODEC_GRPC_STATUS_H_
#define STOWAGE_PROTO_CODEC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace stowage {

inline constexpr char kErrorDomain[] = "stowage";

// Reasons that a caller may branch on.
inline constexpr char kReasonPlanNotCached[] = "PLAN_NOT_CACHED";
inline constexpr char kReasonNotImplemented[] = "NOT_IMPLEMENTED";

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// Adds a machine-readable reason (UPPER_SNAKE_CASE); "" when a status has none.
absl::Status WithReason(absl::Status status, const std::string& reason);
std::string GetReason(const absl::Status& status);

// Adds how long to wait before trying again; nothing when a status has none.
absl::Status WithRetryDelay(absl::Status status, std::chrono::nanoseconds delay);
std::optional<std::chrono::nanoseconds> GetRetryDelay(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_GRPC_STATUS_H_

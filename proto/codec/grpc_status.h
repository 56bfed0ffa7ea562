// Errors on the wire: absl::Status to grpc::Status with google.rpc details and back, for client and
// server alike.
//
//   part of the absl::Status                  detail of the grpc::Status
//   FieldViolation (solvers/model)            BadRequest: field, description "value: rule";
//                                             ErrorInfo: reason INVALID_FIELD unless there is another, metadata "rule"
//   reason, below                             ErrorInfo: reason, domain "stowage"
//   metadata, below                           ErrorInfo: metadata
//   retry delay, below                        RetryInfo
// What is said once more, for those who read google.rpc details alone: of RESOURCE_EXHAUSTED with the metadata "limit" a
// QuotaFailure, subject "tenant:NAME", "identity:NAME" or "server"; of FAILED_PRECONDITION and ABORTED with a reason a
// PreconditionFailure of that type. gRPC sends no details where a call is turned away before its message is read
// (UNAUTHENTICATED): there a message "REASON: words" has its reason read.
// A round trip keeps code, message and these parts. Bytes that are not UTF-8 travel as '?', long
// texts are cut (gRPC refuses trailers above 8 KiB). All functions are thread-safe.
#ifndef STOWAGE_PROTO_CODEC_GRPC_STATUS_H_
#define STOWAGE_PROTO_CODEC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace stowage {

inline constexpr char kErrorDomain[] = "stowage";

// Reasons that a caller may branch on.
inline constexpr char kReasonPlanNotCached[] = "PLAN_NOT_CACHED";
inline constexpr char kReasonNotImplemented[] = "NOT_IMPLEMENTED";
inline constexpr char kReasonEtagMismatch[] = "ETAG_MISMATCH";

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// Adds a machine-readable reason (UPPER_SNAKE_CASE); "" when a status has none.
absl::Status WithReason(absl::Status status, const std::string& reason);
std::string GetReason(const absl::Status& status);

// Adds what a program may want to know beside the reason: a name (lower_snake_case) and a text. Six travel, and none beside a
// FieldViolation.
absl::Status WithErrorMetadata(absl::Status status, const std::string& name,
                               const std::string& text);
std::map<std::string, std::string> GetErrorMetadata(const absl::Status& status);

// Adds how long to wait before trying again; nothing when a status has none.
absl::Status WithRetryDelay(absl::Status status, std::chrono::nanoseconds delay);
std::optional<std::chrono::nanoseconds> GetRetryDelay(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_GRPC_STATUS_H_

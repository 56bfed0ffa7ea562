#include "proto/codec/grpc_status.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/codec/utf8.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr char kReasonPayload[] = "stowage/reason";
constexpr char kRetryPayload[] = "stowage/retry_delay_ns";
constexpr char kMetadataPayload[] = "stowage/metadata/";
constexpr int64_t kNanosPerSecond = 1000000000;

// gRPC refuses trailers above 8 KiB altogether, so long texts are cut. A message travels twice,
// once percent-encoded.
constexpr size_t kMaxMessage = 1024;
constexpr size_t kMaxDetail = 448;
constexpr size_t kMaxFigureName = 32;
constexpr size_t kMaxFigure = 96;
constexpr size_t kMostFigures = 6;
// ErrorInfo of a FieldViolation: its reason where the status has none, and which part of the description is the rule.
constexpr char kReasonInvalidField[] = "INVALID_FIELD";
constexpr char kRuleMetadata[] = "rule";

std::string Clip(const std::string& text, size_t limit) {
  return ToValidUtf8(text.size() <= limit ? text : text.substr(0, limit - 3) + "...");
}

void AddBadRequest(const absl::Status& status, google::rpc::Status* out) {
  const auto violation = GetFieldViolation(status);
  if (!violation) return;
  google::rpc::BadRequest detail;
  auto* entry = detail.add_field_violations();
  entry->set_field(Clip(violation->field, kMaxDetail));
  entry->set_description(
      absl::StrCat(Clip(violation->value, kMaxDetail), ": ", Clip(violation->rule, kMaxDetail)));
  out->add_details()->PackFrom(detail);
}

void AddErrorInfo(const absl::Status& status, google::rpc::Status* out) {
  const std::string reason = GetReason(status);
  const auto violation = GetFieldViolation(status);
  std::map<std::string, std::string> metadata = GetErrorMetadata(status);
  if (violation) metadata.clear();
  if (reason.empty() && !violation && metadata.empty()) return;
  google::rpc::ErrorInfo detail;
  detail.set_reason(reason.empty() && violation ? kReasonInvalidField : Clip(reason, kMaxDetail));
  detail.set_domain(kErrorDomain);
  for (const auto& [name, text] : metadata) {
    if (static_cast<size_t>(detail.metadata_size()) == kMostFigures) break;
    (*detail.mutable_metadata())[Clip(name, kMaxFigureName)] = Clip(text, kMaxFigure);
  }
  if (violation) (*detail.mutable_metadata())[kRuleMetadata] = Clip(violation->rule, kMaxDetail);
  out->add_details()->PackFrom(detail);
}

// Of whom a limit is.
std::string SubjectOf(const std::map<std::string, std::string>& metadata) {
  for (const char* const name : {"tenant", "identity"}) {
    const auto found = metadata.find(name);
    if (found != metadata.end()) return absl::StrCat(name, ":", found->second);
  }
  return "server";
}

void AddQuotaFailure(const absl::Status& status, google::rpc::Status* out) {
  const std::map<std::string, std::string> metadata = GetErrorMetadata(status);
  if (!absl::IsResourceExhausted(status) || metadata.count("limit") == 0) return;
  google::rpc::QuotaFailure detail;
  auto* const violation = detail.add_violations();
  violation->set_subject(Clip(SubjectOf(metadata), kMaxFigure));
  violation->set_description(Clip(std::string(status.message()), kMaxDetail));
  out->add_details()->PackFrom(detail);
}

void AddPreconditionFailure(const absl::Status& status, google::rpc::Status* out) {
  const std::string reason = GetReason(status);
  if (!absl::IsFailedPrecondition(status) && !absl::IsAborted(status)) return;
  if (reason.empty()) return;
  google::rpc::PreconditionFailure detail;
  auto* const violation = detail.add_violations();
  violation->set_type(Clip(reason, kMaxDetail));
  violation->set_subject("plan");
  violation->set_description(Clip(std::string(status.message()), kMaxDetail));
  out->add_details()->PackFrom(detail);
}

void AddRetryInfo(const absl::Status& status, google::rpc::Status* out) {
  const auto delay = GetRetryDelay(status);
  if (!delay) return;
  google::rpc::RetryInfo detail;
  detail.mutable_retry_delay()->set_seconds(delay->count() / kNanosPerSecond);
  detail.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay->count() % kNanosPerSecond));
  out->add_details()->PackFrom(detail);
}

// The rule of the violation that the details have, or "" where they do not say it by itself.
std::string RuleOf(const google::rpc::Status& rich) {
  google::rpc::ErrorInfo info;
  for (const google::protobuf::Any& any : rich.details()) {
    if (!any.UnpackTo(&info) || info.domain() != kErrorDomain) continue;
    const auto rule = info.metadata().find(kRuleMetadata);
    if (rule != info.metadata().end()) return rule->second;
  }
  return "";
}

// Where ": " divides the value from the rule. Both may hold it, too: of a server that does not say the rule by itself the
// last one divides.
size_t DivideAt(const std::string& description, const std::string& rule) {
  if (rule.empty()) return description.rfind(": ");
  return absl::EndsWith(description, ": " + rule) ? description.size() - rule.size() - 2
                                                  : std::string::npos;
}

// FieldError makes the code INVALID_ARGUMENT and the message from the parts; a server's own words
// go first.
absl::Status WithViolation(const absl::Status& status, const google::rpc::BadRequest& detail,
                           const std::string& rule) {
  if (status.code() != absl::StatusCode::kInvalidArgument || detail.field_violations().empty()) {
    return status;
  }
  const auto& entry = detail.field_violations(0);
  const std::string& text = entry.description();
  const size_t divide = DivideAt(text, rule);
  const bool divided = divide != std::string::npos;
  const absl::Status parts = FieldError(entry.field(), divided ? text.substr(0, divide) : "",
                                        divided ? text.substr(divide + 2) : text);
  absl::Status merged = status;
  parts.ForEachPayload([&merged](absl::string_view url, const absl::Cord& payload) {
    merged.SetPayload(url, payload);
  });
  return merged;
}

absl::Status WithInfo(absl::Status status, const google::rpc::ErrorInfo& info) {
  if (!info.reason().empty() && info.reason() != kReasonInvalidField) {
    status = WithReason(std::move(status), info.reason());
  }
  for (const auto& [name, text] : info.metadata()) {
    if (name != kRuleMetadata) status = WithErrorMetadata(std::move(status), name, text);
  }
  return status;
}

// "TOKEN_UNKNOWN: the bearer token ..."
absl::Status WithReasonOfMessage(const absl::Status& status) {
  const std::string message(status.message());
  const size_t end = message.find(": ");
  const std::string reason = end == std::string::npos ? "" : message.substr(0, end);
  const bool named = reason.size() > 1 && std::all_of(reason.begin(), reason.end(), [](char c) {
                       return absl::ascii_isupper(c) || c == '_';
                     });
  return named ? WithReason(status, reason) : status;
}

absl::Status WithDetail(const absl::Status& status, const google::protobuf::Any& any,
                        const std::string& rule) {
  google::rpc::BadRequest bad_request;
  if (any.UnpackTo(&bad_request)) return WithViolation(status, bad_request, rule);
  google::rpc::ErrorInfo info;
  if (any.UnpackTo(&info)) {
    return info.domain() == kErrorDomain ? WithInfo(status, info) : status;
  }
  google::rpc::RetryInfo retry;
  if (!any.UnpackTo(&retry)) return status;
  // A day bounds what a hostile or broken server may ask for, and keeps the sum from overflowing.
  static constexpr int64_t kMaxSeconds = 86400;
  const int64_t seconds = retry.retry_delay().seconds();
  if (seconds < 0 || seconds > kMaxSeconds || retry.retry_delay().nanos() < 0) return status;
  return WithRetryDelay(status, std::chrono::seconds(seconds) +
                                    std::chrono::nanoseconds(retry.retry_delay().nanos()));
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status rich;
  rich.set_code(static_cast<int>(status.code()));
  rich.set_message(Clip(std::string(status.message()), kMaxMessage));
  AddBadRequest(status, &rich);
  AddErrorInfo(status, &rich);
  AddQuotaFailure(status, &rich);
  AddPreconditionFailure(status, &rich);
  AddRetryInfo(status, &rich);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), rich.message(),
                      rich.details().empty() ? "" : rich.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (absl::IsUnauthenticated(result) && status.error_details().empty()) {
    return WithReasonOfMessage(result);
  }
  google::rpc::Status rich;
  if (!rich.ParseFromString(status.error_details())) return result;
  const std::string rule = RuleOf(rich);
  for (const google::protobuf::Any& any : rich.details()) result = WithDetail(result, any, rule);
  return result;
}

absl::Status WithReason(absl::Status status, const std::string& reason) {
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

std::string GetReason(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason ? std::string(*reason) : "";
}

absl::Status WithErrorMetadata(absl::Status status, const std::string& name,
                               const std::string& text) {
  status.SetPayload(absl::StrCat(kMetadataPayload, name), absl::Cord(text));
  return status;
}

std::map<std::string, std::string> GetErrorMetadata(const absl::Status& status) {
  std::map<std::string, std::string> metadata;
  status.ForEachPayload([&metadata](absl::string_view url, const absl::Cord& payload) {
    if (!absl::StartsWith(url, kMetadataPayload)) return;
    metadata.emplace(std::string(absl::StripPrefix(url, kMetadataPayload)), std::string(payload));
  });
  return metadata;
}

absl::Status WithRetryDelay(absl::Status status, std::chrono::nanoseconds delay) {
  status.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(delay.count())));
  return status;
}

std::optional<std::chrono::nanoseconds> GetRetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  int64_t nanos = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &nanos)) return std::nullopt;
  return std::chrono::nanoseconds(nanos);
}

}  // namespace stowage

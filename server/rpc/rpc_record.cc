#include "server/rpc/rpc_record.h"

#include <grpcpp/server_context.h>

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/codec/grpc_status.h"
#include "server/entries/planning_error.h"
#include "server/rpc/rpc_status.h"

namespace stowage {
namespace {

constexpr size_t kKeyPrefixDigits = 12;

absl::StatusOr<Caller> CallerOf(Rpc rpc, const grpc::CallbackServerContext& context,
                                const Authenticator* authenticator) {
  if (authenticator == nullptr) return Caller();
  absl::StatusOr<Caller> caller =
      authenticator->Authenticate(context.client_metadata(), context.auth_context().get());
  if (!caller.ok()) return caller;
  if (absl::Status may = CheckMayCall(*caller, rpc); !may.ok()) return may;
  return caller;
}

// Whose share is taken.
absl::Status WithSubject(const absl::Status& status, const Caller& caller) {
  if (!caller.tenant.empty()) return WithErrorMetadata(status, "tenant", caller.tenant);
  if (!caller.identity.empty()) return WithErrorMetadata(status, "identity", caller.identity);
  return status;
}

// Below the caller's span, or the beginning of a trace; null where the call is not sampled.
std::shared_ptr<Span> SpanOf(Rpc rpc, const grpc::CallbackServerContext& context,
                             const RpcMonitor& monitor) {
  if (monitor.tracer == nullptr) return nullptr;
  const auto& metadata = context.client_metadata();
  std::optional<TraceContext> parent;
  // W3C: one that comes twice is none.
  if (metadata.count(kTraceparentHeader) == 1) {
    const grpc::string_ref text = metadata.find(kTraceparentHeader)->second;
    parent = ParseTraceparent(std::string_view(text.data(), text.size()));
  }
  if (!parent) {
    parent.emplace().trace_id = NewTraceId();
    parent->sampled = IsSampled(parent->trace_id, monitor.trace_share);
  }
  if (!parent->sampled) return nullptr;
  const std::string name = absl::StrCat(ServiceOf(rpc), "/", ToString(rpc));
  return std::make_shared<Span>(monitor.tracer, *parent, name.c_str(), SpanKind::kServer);
}

// The other end of the connection, say "ipv4:10.0.0.7:41022". gRPC escapes the brackets of IPv6.
std::string PeerOf(const grpc::CallbackServerContext& context) {
  return absl::StrReplaceAll(context.peer(), {{"%5B", "["}, {"%5D", "]"}});
}

// Of a call that ended with `code`: who is at fault decides.
LogLevel LevelOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::UNKNOWN:
    case grpc::INTERNAL:
    case grpc::DATA_LOSS:
      return LogLevel::kError;
    case grpc::UNAUTHENTICATED:
    case grpc::PERMISSION_DENIED:
    case grpc::RESOURCE_EXHAUSTED:
    case grpc::UNAVAILABLE:
      return LogLevel::kWarning;
    default:
      return LogLevel::kInfo;
  }
}

}  // namespace

RpcRecord::RpcRecord(Rpc rpc, grpc::CallbackServerContext* context, const RpcMonitor& monitor)
    : rpc_(rpc),
      monitor_(monitor),
      context_(context),
      start_(std::chrono::steady_clock::now()),
      id_(context->client_metadata()),
      caller_(CallerOf(rpc, *context, monitor.authenticator)),
      span_(SpanOf(rpc, *context, monitor)) {
  if (id_.is_callers()) context_->AddTrailingMetadata(kRequestIdHeader, id_.text());
  monitor_.metrics->RpcStarted(rpc);
}

std::string RpcRecord::KeyPrefix() const {
  return key_ ? key_->digest.ToHex().substr(0, kKeyPrefixDigits) : "";
}

grpc::Status RpcRecord::Handled(const absl::Status& handled) const {
  const bool share = caller_.ok() && PlanningReason(handled) == "TENANT_QUOTA";
  const grpc::Status status = ToWireStatus(share ? WithSubject(handled, *caller_) : handled);
  if (!status.ok() && !id_.is_callers())
    context_->AddTrailingMetadata(kRequestIdHeader, id_.text());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
  monitor_.metrics->RpcHandled(rpc_, static_cast<int>(status.error_code()), took.count());
  if (monitor_.log != nullptr) LogCall(status, took.count());
  if (span_) EndSpan(status);
  return status;
}

void RpcRecord::EndSpan(const grpc::Status& status) const {
  span_->Add("rpc.system", "grpc");
  span_->Add("rpc.grpc.status_code", int64_t{status.error_code()});
  span_->Add("stowage.request_id", id_.text());
  if (key_) span_->Add("stowage.key", KeyPrefix());
  if (source_[0] != '\0') span_->Add("stowage.source", source_);
  if (!status.ok()) span_->Fail(status.error_message());
  span_->End();
}

void RpcRecord::LogCall(const grpc::Status& status, double seconds) const {
  const auto fill = [&](LogLine* line) {
    line->Add("id", id_.text()).Add("method", std::string(ToString(rpc_)));
    line->Add("code", int64_t{status.error_code()}).Add("ms", seconds * 1000);
    if (!status.ok()) line->Add("reason", GetReason(FromGrpcStatus(status)));
    line->Add("peer", PeerOf(*context_));
    if (caller_.ok() && monitor_.authenticator != nullptr) {
      line->Add("caller", caller_->identity).Add("tenant", caller_->tenant);
    }
    if (key_) line->Add("key", KeyPrefix());
    if (source_[0] != '\0') line->Add("source", std::string(source_));
    if (span_) line->Add("trace", ToHex(span_->context().trace_id));
  };
  // Each code is a kind: neither calls that go well nor mere misses hide what fails otherwise.
  monitor_.log->Write(LevelOf(status.error_code()), "rpc", fill, status.error_code());
}

}  // namespace stowage

#include "server/auth/auth_processor.h"

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

// Of all services of the contract, in any version.
constexpr char kContract[] = "/stowage.";

std::string PathOf(const grpc::AuthMetadataProcessor::InputMetadata& metadata) {
  const auto path = metadata.find(":path");
  return path != metadata.end() ? std::string(path->second.data(), path->second.size()) : "";
}

std::optional<Rpc> RpcOf(const std::string& path) {
  for (size_t i = 0; i < kRpcCount; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    if (path == absl::StrCat("/", ServiceOf(rpc), "/", ToString(rpc))) return rpc;
  }
  return std::nullopt;
}

}  // namespace

grpc::Status AuthProcessor::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                    OutputMetadata*, OutputMetadata*) {
  const std::string path = PathOf(metadata);
  if (!absl::StartsWith(path, kContract)) return grpc::Status::OK;
  const absl::StatusOr<Caller> caller = authenticator_->Authenticate(metadata, context);
  if (caller.ok()) return grpc::Status::OK;
  const std::optional<Rpc> rpc = RpcOf(path);
  const std::string reason = GetReason(caller.status());
  if (rpc) {
    metrics_->RpcStarted(*rpc);
    metrics_->RpcHandled(*rpc, grpc::UNAUTHENTICATED, 0);
  }
  // gRPC 1.51 does not say here where a call comes from, neither in its metadata nor in the context.
  log_->Write(LogLevel::kWarning, "refused", [&](LogLine* line) {
    line->Add("method", std::string(rpc ? ToString(*rpc) : "unknown")).Add("reason", reason);
  });
  return grpc::Status(grpc::UNAUTHENTICATED,
                      absl::StrCat(reason, ": ", std::string(caller.status().message())));
}

}  // namespace stowage

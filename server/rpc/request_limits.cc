#include "server/rpc/request_limits.h"

#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status AtMost(const std::string& field, int64_t count, int64_t limit) {
  if (count <= limit) return absl::OkStatus();
  return FieldError(field, absl::StrCat(count, " elements"),
                    absl::StrCat("must have at most ", limit, " on this server"));
}

}  // namespace

absl::Status CheckLimits(const v1::GetPlanRequest& request) {
  if (request.keys().empty()) return FieldError("keys", "empty", "must have at least 1 element");
  if (absl::Status status = AtMost("keys", request.keys_size(), kMaxKeysPerRequest); !status.ok()) {
    return status;
  }
  return CheckJob(request.job());
}

absl::Status CheckJob(const std::string& job) {
  if (job.size() <= kMaxJobBytes) return absl::OkStatus();
  return FieldError("job", absl::StrCat(job.size(), " bytes"),
                    absl::StrCat("must have at most ", kMaxJobBytes, " bytes"));
}

absl::Status CheckLimits(const v1::Profile& profile, const RequestLimits& limits) {
  absl::Status status =
      AtMost("profile.chain.stages", profile.chain().stages_size(), limits.max_stages);
  if (!status.ok()) return status;
  int64_t saved_tensors = profile.chain().loss().saved_tensor_bytes_size();
  for (const v1::Stage& stage : profile.chain().stages()) {
    saved_tensors += stage.saved_tensor_bytes_size();
  }
  status = AtMost("profile.chain.stages.saved_tensor_bytes", saved_tensors, kMaxSavedTensors);
  if (!status.ok()) return status;
  status = AtMost("profile.graph.vertices", profile.graph().vertices_size(), limits.max_vertices);
  if (!status.ok()) return status;
  return AtMost("profile.dag.nodes", profile.dag().nodes_size(), limits.max_vertices);
}

absl::Status CheckSize(size_t response_bytes, const RequestLimits& limits) {
  if (response_bytes <= static_cast<size_t>(limits.max_message_bytes)) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                        "the answer has ", response_bytes, " bytes, over this server's limit of ",
                        limits.max_message_bytes, " bytes for a message")),
                    "RESPONSE_TOO_LARGE");
}

}  // namespace stowage

// From requests on the wire to those of planning.
#ifndef STOWAGE_SERVER_RPC_COMPUTE_REQUEST_H_
#define STOWAGE_SERVER_RPC_COMPUTE_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/request_limits.h"
#include "server/service/compute_plan.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

using CallDeadline = std::optional<std::chrono::steady_clock::time_point>;

CallDeadline DeadlineOf(const grpc::CallbackServerContext& context);

// Parsing and converting it, its canonical bytes and its first replay take over a millisecond: not for
// gRPC's few threads.
bool IsLarge(const grpc::ByteBuffer& request);

// Checked against the limits, converted, for the caller's tenant. INVALID_ARGUMENT made by FieldError.
absl::StatusOr<ComputeRequest> ToComputeRequest(const v1::Profile& profile,
                                                const v1::Budget& budget,
                                                const v1::PlanOptions& options,
                                                const RequestLimits& limits,
                                                const std::string& tenant);

// Of a request that asks for a plan.
template <class Request>
absl::StatusOr<ComputeRequest> ToComputeRequest(const Request& request, const RequestLimits& limits,
                                                const std::string& tenant) {
  if (absl::Status status = CheckJob(request.job()); !status.ok()) return status;
  absl::StatusOr<ComputeRequest> converted =
      ToComputeRequest(request.profile(), request.budget(), request.options(), limits, tenant);
  if (converted.ok()) converted->job = request.job();
  return converted;
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_COMPUTE_REQUEST_H_

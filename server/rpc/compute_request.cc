#include "server/rpc/compute_request.h"

#include <grpcpp/server_context.h>

#include <utility>

#include "proto/codec/codec.h"

namespace stowage {

CallDeadline DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  // Beyond a year the sum with the other clock's now could overflow, and nobody waits that long.
  const auto left = deadline - std::chrono::system_clock::now();
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::steady_clock::now() + left;
}

bool IsLarge(const google::protobuf::MessageLite& request) {
  constexpr size_t kLargeBytes = 64 << 10;
  return request.ByteSizeLong() > kLargeBytes;
}

absl::StatusOr<ComputeRequest> ToComputeRequest(const v1::ComputePlanRequest& request,
                                                const RequestLimits& limits) {
  if (absl::Status status = CheckLimits(request, limits); !status.ok()) return status;
  absl::StatusOr<Profile> profile = FromProto(request.profile());
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<Budget> budget = FromProto(request.budget());
  if (!budget.ok()) return budget.status();
  const absl::StatusOr<KeyOptions> options = FromProto(request.options(), "");
  if (!options.ok()) return options.status();
  return ComputeRequest{*std::move(profile), *budget, *options, std::nullopt};
}

}  // namespace stowage

#include "server/rpc/compute_request.h"

#include <grpcpp/server_context.h>

#include <utility>

#include "proto/codec/codec.h"
#include "server/service/solve_outcome.h"

namespace stowage {

CallDeadline DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  // Beyond a year the sum with the other clock's now could overflow, and nobody waits that long.
  const auto left = deadline - std::chrono::system_clock::now();
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::steady_clock::now() + left;
}

bool IsLarge(const grpc::ByteBuffer& request) {
  constexpr size_t kLargeBytes = 64 << 10;
  return request.Length() > kLargeBytes;
}

absl::StatusOr<ComputeRequest> ToComputeRequest(const v1::Profile& profile,
                                                const v1::Budget& budget,
                                                const v1::PlanOptions& options,
                                                const RequestLimits& limits,
                                                const std::string& tenant) {
  if (absl::Status status = CheckLimits(profile, limits); !status.ok()) return status;
  absl::StatusOr<Profile> converted = CatchingBadAlloc([&] { return FromProto(profile); });
  if (!converted.ok()) return converted.status();
  const absl::StatusOr<Budget> amount = FromProto(budget);
  if (!amount.ok()) return amount.status();
  const absl::StatusOr<KeyOptions> key_options = FromProto(options, tenant);
  if (!key_options.ok()) return key_options.status();
  return ComputeRequest{*std::move(converted), *amount, *key_options, std::nullopt};
}

}  // namespace stowage

// Requests and answers of the service from and to the values of PlanConnection. Internal to
// client/rpc.
//
// An answer that breaks the contract is INTERNAL: it is not the caller's argument that is invalid.
#ifndef STOWAGE_CLIENT_RPC_GRPC_MESSAGES_H_
#define STOWAGE_CLIENT_RPC_GRPC_MESSAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

v1::GetPlanRequest MakeGetPlanRequest(const std::vector<PlanKey>& keys, const Budget& budget);
v1::ComputePlanRequest MakeComputePlanRequest(const Profile& profile, const Budget& budget,
                                              const KeyOptions& key_options);

absl::StatusOr<PlanReply> ReadResponse(const v1::GetPlanResponse& response);
absl::StatusOr<PlanReply> ReadResponse(const v1::ComputePlanResponse& response);
absl::StatusOr<Capabilities> ReadResponse(const v1::GetCapabilitiesResponse& response);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_MESSAGES_H_

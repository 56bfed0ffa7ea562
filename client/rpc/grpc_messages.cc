#include "client/rpc/grpc_messages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/enum_map.h"

namespace stowage {
namespace {

constexpr EnumMap<v1::PlanSource, PlanSource, 3> kSources{{
    {v1::PLAN_SOURCE_CACHE, PlanSource::kCache},
    {v1::PLAN_SOURCE_SOLVED, PlanSource::kSolved},
    {v1::PLAN_SOURCE_SHARED, PlanSource::kShared},
}};

absl::Status BrokenContract(const absl::Status& status) {
  return absl::InternalError(
      absl::StrCat("the server's answer breaks the contract: ", std::string(status.message())));
}

absl::StatusOr<PlanReply> ReadReply(const v1::Plan& plan, const v1::PlanKey& key,
                                    PlanSource source) {
  absl::StatusOr<Plan> read_plan = FromProto(plan);
  if (!read_plan.ok()) return BrokenContract(read_plan.status());
  absl::StatusOr<PlanKey> read_key = FromProto(key);
  if (!read_key.ok()) return BrokenContract(read_key.status());
  return PlanReply{*std::move(read_plan), *std::move(read_key), source};
}

}  // namespace

v1::GetPlanRequest MakeGetPlanRequest(const std::vector<PlanKey>& keys, const Budget& budget) {
  v1::GetPlanRequest request;
  for (const PlanKey& key : keys) *request.add_keys() = ToProto(key);
  *request.mutable_budget() = ToProto(budget);
  return request;
}

v1::ComputePlanRequest MakeComputePlanRequest(const Profile& profile, const Budget& budget,
                                              const KeyOptions& key_options) {
  v1::ComputePlanRequest request;
  *request.mutable_profile() = ToProto(profile);
  *request.mutable_budget() = ToProto(budget);
  *request.mutable_options() = ToProto(key_options);
  return request;
}

absl::StatusOr<PlanReply> ReadResponse(const v1::GetPlanResponse& response) {
  return ReadReply(response.plan(), response.key(), PlanSource::kCache);
}

absl::StatusOr<PlanReply> ReadResponse(const v1::ComputePlanResponse& response) {
  PlanSource source = PlanSource::kSolved;
  const absl::Status status = FromWire(kSources, "source", response.source(), &source);
  if (!status.ok()) return BrokenContract(status);
  return ReadReply(response.plan(), response.key(), source);
}

absl::StatusOr<Capabilities> ReadResponse(const v1::GetCapabilitiesResponse& response) {
  Capabilities capabilities;
  capabilities.server_version = response.server_version();
  capabilities.key_encoding_version = response.key_encoding_version();
  for (const v1::SolverInfo& solver : response.solvers()) {
    capabilities.solvers.push_back({solver.name(), solver.description(), solver.schedule_class()});
  }
  capabilities.max_message = Bytes(response.max_message_bytes());
  capabilities.max_stages = response.max_stages();
  capabilities.max_vertices = response.max_vertices();
  capabilities.implemented_rpcs.assign(response.implemented_rpcs().begin(),
                                       response.implemented_rpcs().end());
  return capabilities;
}

}  // namespace stowage

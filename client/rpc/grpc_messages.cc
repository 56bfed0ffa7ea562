#include "client/rpc/grpc_messages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/enum_map.h"
#include "proto/codec/utf8.h"

namespace stowage {
namespace {

constexpr EnumMap<v1::PlanSource, PlanSource, 3> kSources{{
    {v1::PLAN_SOURCE_CACHE, PlanSource::kCache},
    {v1::PLAN_SOURCE_SOLVED, PlanSource::kSolved},
    {v1::PLAN_SOURCE_SHARED, PlanSource::kShared},
}};

absl::StatusOr<PlanReply> ReadReply(const v1::Plan& plan, const v1::PlanKey& key,
                                    PlanSource source) {
  absl::StatusOr<Plan> read_plan = ReadPlan(plan);
  if (!read_plan.ok()) return read_plan.status();
  absl::StatusOr<PlanKey> read_key = ReadKey(key);
  if (!read_key.ok()) return read_key.status();
  return PlanReply{*std::move(read_plan), *std::move(read_key), source};
}

// ComputePlanRequest and WatchPlanRequest have equal fields.
template <class Request>
Request MakeSolveRequest(const Profile& profile, const Budget& budget,
                         const KeyOptions& key_options, const std::string& job) {
  Request request;
  *request.mutable_profile() = ToProto(profile);
  *request.mutable_budget() = ToProto(budget);
  *request.mutable_options() = ToProto(key_options);
  request.set_job(ToValidUtf8(job));
  return request;
}

}  // namespace

absl::Status BrokenContract(const std::string& what) {
  return absl::InternalError(absl::StrCat("the server's answer breaks the contract: ", what));
}

absl::StatusOr<PlanSource> ReadSource(v1::PlanSource source) {
  PlanSource native = PlanSource::kSolved;
  const absl::Status status = FromWire(kSources, "source", source, &native);
  if (!status.ok()) return BrokenContract(std::string(status.message()));
  return native;
}

absl::StatusOr<Plan> ReadPlan(const v1::Plan& message) {
  absl::StatusOr<Plan> plan = FromProto(message);
  if (!plan.ok()) return BrokenContract(std::string(plan.status().message()));
  return plan;
}

absl::StatusOr<PlanKey> ReadKey(const v1::PlanKey& message) {
  absl::StatusOr<PlanKey> key = FromProto(message);
  if (!key.ok()) return BrokenContract(std::string(key.status().message()));
  return key;
}

v1::GetPlanRequest MakeGetPlanRequest(const std::vector<PlanKey>& keys, const Budget& budget,
                                      const std::string& job, const Plan* held) {
  v1::GetPlanRequest request;
  for (const PlanKey& key : keys) *request.add_keys() = ToProto(key);
  *request.mutable_budget() = ToProto(budget);
  request.set_job(ToValidUtf8(job));
  if (held != nullptr) request.set_held_digest(ScheduleDigest(held->schedule).ToBinary());
  return request;
}

v1::ComputePlanRequest MakeComputePlanRequest(const Profile& profile, const Budget& budget,
                                              const KeyOptions& key_options,
                                              const std::string& job) {
  return MakeSolveRequest<v1::ComputePlanRequest>(profile, budget, key_options, job);
}

v1::WatchPlanRequest MakeWatchPlanRequest(const Profile& profile, const Budget& budget,
                                          const KeyOptions& key_options, const std::string& job) {
  return MakeSolveRequest<v1::WatchPlanRequest>(profile, budget, key_options, job);
}

absl::StatusOr<PlanReply> ReadResponse(const v1::GetPlanResponse& response, const Plan* held) {
  v1::Plan plan = response.plan();
  if (response.unchanged()) {
    if (held == nullptr) return BrokenContract("a plan that the caller is said to hold");
    *plan.mutable_schedule() = ToProto(*held).schedule();
  }
  absl::StatusOr<PlanReply> reply = ReadReply(plan, response.key(), PlanSource::kCache);
  if (!reply.ok()) return reply;
  reply->profile_wanted = response.profile_wanted();
  reply->unchanged = response.unchanged();
  return reply;
}

absl::StatusOr<PlanReply> ReadResponse(const v1::ComputePlanResponse& response) {
  const absl::StatusOr<PlanSource> source = ReadSource(response.source());
  if (!source.ok()) return source.status();
  return ReadReply(response.plan(), response.key(), *source);
}

}  // namespace stowage

// The one place where messages of the contract become types of the solver library and back, for
// client and server alike: two converters would sooner or later disagree about a field, and with it
// about the key.
//
// From* validates (INVALID_ARGUMENT made by FieldError, field names as the contract spells them:
// "profile.chain.stages[3].saved_bytes"); To* cannot fail. All functions are thread-safe.
#ifndef STOWAGE_PROTO_CODEC_CODEC_H_
#define STOWAGE_PROTO_CODEC_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/plan.h"
#include "stowage/v1/budget.pb.h"
#include "stowage/v1/plan.pb.h"
#include "stowage/v1/plan_service.pb.h"
#include "stowage/v1/profile.pb.h"

namespace stowage {

v1::Profile ToProto(const Profile& profile);
absl::StatusOr<Profile> FromProto(const v1::Profile& message);

v1::Budget ToProto(const Budget& budget);
absl::StatusOr<Budget> FromProto(const v1::Budget& message);

v1::Plan ToProto(const Plan& plan);
absl::StatusOr<Plan> FromProto(const v1::Plan& message);
// Of the schedule of a plan made by ToProto.
Digest DigestOf(const v1::Plan& plan);
v1::PlanStatus ToProto(PlanStatus status);
absl::StatusOr<PlanStatus> FromProto(v1::PlanStatus status);

v1::PlanKey ToProto(const PlanKey& key);
absl::StatusOr<PlanKey> FromProto(const v1::PlanKey& message);

// `field` names it in the error.
absl::StatusOr<Digest> DigestFromProto(const std::string& field, const std::string& bytes);

// `tenant` comes from the caller's identity, never from a message.
absl::StatusOr<KeyOptions> FromProto(const v1::PlanOptions& message, const std::string& tenant);
v1::PlanOptions ToProto(const KeyOptions& options);

// The contract's JSON mapping, with every field of the messages that are there: zeros, too. Reading takes
// fields that are left out for zeros and refuses unknown ones: INVALID_ARGUMENT with the parser's words. Plans may
// have the names of before the first release (sent_bytes, OP_REDUCE, ...).
std::string ToJson(const v1::Profile& message);
absl::StatusOr<v1::Profile> ProfileFromJson(const std::string& json);
std::string ToJson(const v1::Plan& message);
absl::StatusOr<v1::Plan> PlanFromJson(const std::string& json);

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_CODEC_H_

#include "server/rpc/identity.h"

#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

Role LeastRole(Rpc rpc) {
  switch (rpc) {
    case Rpc::kGetPlan:
    case Rpc::kExplainPlan:
    case Rpc::kListPlans:
    case Rpc::kGetCapabilities:
      return Role::kReader;
    case Rpc::kComputePlan:
    case Rpc::kWatchPlan:
    case Rpc::kGetFrontier:
    case Rpc::kFitBatch:
    case Rpc::kReportExecution:
      return Role::kPlanner;
    case Rpc::kPinPlan:
    case Rpc::kDeletePlan:
      return Role::kAdmin;
  }
  return Role::kAdmin;
}

}  // namespace

const char* ToString(Role role) {
  switch (role) {
    case Role::kReader:
      return "reader";
    case Role::kPlanner:
      return "planner";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::optional<Role> ParseRole(const std::string& text) {
  for (const Role role : {Role::kReader, Role::kPlanner, Role::kAdmin}) {
    if (text == ToString(role)) return role;
  }
  return std::nullopt;
}

absl::Status CheckMayCall(const Caller& caller, Rpc rpc) {
  if (caller.role >= LeastRole(rpc)) return absl::OkStatus();
  return WithReason(absl::PermissionDeniedError(
                        absl::StrCat(ToString(rpc), " takes the role ", ToString(LeastRole(rpc)),
                                     "; the caller is a ", ToString(caller.role))),
                    "ROLE_TOO_LOW");
}

}  // namespace stowage

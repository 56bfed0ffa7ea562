#include "server/auth/identity.h"

#include <utility>

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
    case Rpc::kUnpinPlan:
    case Rpc::kRollBackPlan:
    case Rpc::kPromotePlan:
    case Rpc::kFreezePlan:
    case Rpc::kUnfreezePlan:
    case Rpc::kDeletePlan:
      return Role::kTenantAdmin;
    case Rpc::kExportDecisions:
    case Rpc::kImportDecisions:
      return Role::kAdmin;
  }
  return Role::kAdmin;
}

}  // namespace

const char kRoles[] = "reader, planner, tenant_admin or admin";

const char* ToString(Role role) {
  switch (role) {
    case Role::kReader:
      return "reader";
    case Role::kPlanner:
      return "planner";
    case Role::kTenantAdmin:
      return "tenant_admin";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::optional<Role> ParseRole(const std::string& text) {
  for (const Role role : {Role::kReader, Role::kPlanner, Role::kTenantAdmin, Role::kAdmin}) {
    if (text == ToString(role)) return role;
  }
  return std::nullopt;
}

absl::Status CheckMayCall(const Caller& caller, Rpc rpc) {
  if (caller.role >= LeastRole(rpc)) return absl::OkStatus();
  const char* const role = ToString(LeastRole(rpc));
  absl::Status denied = WithReason(
      absl::PermissionDeniedError(absl::StrCat(ToString(rpc), " takes the role ", role,
                                               "; the caller is a ", ToString(caller.role))),
      "ROLE_TOO_LOW");
  denied = WithErrorMetadata(std::move(denied), "method", ToString(rpc));
  return WithErrorMetadata(std::move(denied), "role", role);
}

}  // namespace stowage

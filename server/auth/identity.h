// Who calls, and what a role may do.
//
//   reader         GetPlan, ExplainPlan, ListPlans, GetCapabilities, of its tenant
//   planner        and ComputePlan, WatchPlan, GetFrontier, FitBatch, ReportExecution
//   tenant_admin   and the changes of PlanAdminService, of its tenant
//   admin          all of it, of every tenant, and ExportDecisions, ImportDecisions
#ifndef STOWAGE_SERVER_AUTH_IDENTITY_H_
#define STOWAGE_SERVER_AUTH_IDENTITY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/entries/tenant_scope.h"
#include "server/observe/server_metrics.h"
#include "server/runtime/account.h"

namespace stowage {

// Each may do what those before it may.
enum class Role { kReader, kPlanner, kTenantAdmin, kAdmin };
// "reader", "planner", "tenant_admin", "admin".
const char* ToString(Role role);
// "reader, planner, tenant_admin or admin": what a file may say.
extern const char kRoles[];
std::optional<Role> ParseRole(const std::string& text);

// A Caller by default is what everyone is where the server asks for no identity: of no tenant, and an administrator.
struct Caller {
  std::string identity;  // for logs: no secret
  std::string tenant;
  Role role = Role::kAdmin;

  TenantScope scope() const { return role == Role::kAdmin ? TenantScope() : TenantScope(tenant); }
  // Whose share its calls take.
  Account account() const { return Account::Of(tenant, identity); }
};

// OK, or PERMISSION_DENIED, ROLE_TOO_LOW, that names the role it takes, in its metadata, too ("method", "role").
absl::Status CheckMayCall(const Caller& caller, Rpc rpc);

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_IDENTITY_H_

// From requests of PlanService about cached plans to PlanAdmin, and back: list, report, explain.
//
// INVALID_ARGUMENT made by FieldError, field names as the contract spells them; else what PlanAdmin
// says. The caller is one who may ask; `stop` says when nobody waits any more. All wait for the store.
// Thread-safe.
#ifndef STOWAGE_SERVER_RPC_ADMIN_HANDLERS_H_
#define STOWAGE_SERVER_RPC_ADMIN_HANDLERS_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/plan_page.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/service/admin.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class AdminHandlers {
 public:
  // The pointer outlives this object.
  AdminHandlers(const RequestLimits& limits, PlanAdmin* admin) : limits_(limits), admin_(admin) {}

  // What would make the page larger than a message is on the next one.
  absl::Status Handle(const v1::ListPlansRequest& request, const StopToken& stop, RpcRecord* record,
                      v1::ListPlansResponse* response) const;
  absl::Status Handle(const v1::ReportExecutionRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::ReportExecutionResponse* response) const;
  absl::Status Handle(const v1::ExplainPlanRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::ExplainPlanResponse* response) const;

 private:
  // Of a list: one key or all, from where, and at most how many entries.
  struct Part {
    std::optional<PlanKey> only;
    std::optional<PagePosition> after;
    size_t entries = 0;
  };
  // Where the next page starts; nothing where there is none.
  absl::StatusOr<std::optional<PagePosition>> FillPage(const AdminCaller& caller, const Part& part,
                                                       std::set<std::string>* unreachable,
                                                       PageWriter* page) const;

  const RequestLimits limits_;
  PlanAdmin* const admin_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_ADMIN_HANDLERS_H_

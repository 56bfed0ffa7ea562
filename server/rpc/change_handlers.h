// From requests of PlanAdminService to PlanAdmin, and back: what administrators change.
//
// INVALID_ARGUMENT made by FieldError, field names as the contract spells them; FAILED_PRECONDITION with the
// reason REVISION_STATE; else what PlanAdmin says. A change that is asked for again under its request_id is made
// once (change_ledger.h). All wait for the store. Thread-safe.
#ifndef STOWAGE_SERVER_RPC_CHANGE_HANDLERS_H_
#define STOWAGE_SERVER_RPC_CHANGE_HANDLERS_H_

#include "absl/status/status.h"
#include "server/rpc/change_ledger.h"
#include "server/rpc/rpc_record.h"
#include "server/service/admin.h"
#include "stowage/v1/plan_admin_service.pb.h"

namespace stowage {

class ChangeHandlers {
 public:
  // The pointer outlives this object.
  explicit ChangeHandlers(PlanAdmin* admin);

  absl::Status Handle(const v1::PinPlanRequest& request, const StopToken& stop, RpcRecord* record,
                      v1::PinPlanResponse* response);
  absl::Status Handle(const v1::UnpinPlanRequest& request, const StopToken& stop, RpcRecord* record,
                      v1::UnpinPlanResponse* response);
  absl::Status Handle(const v1::RollBackPlanRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::RollBackPlanResponse* response);
  absl::Status Handle(const v1::PromotePlanRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::PromotePlanResponse* response);
  absl::Status Handle(const v1::FreezePlanRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::FreezePlanResponse* response);
  absl::Status Handle(const v1::UnfreezePlanRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::UnfreezePlanResponse* response);
  absl::Status Handle(const v1::DeletePlanRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::DeletePlanResponse* response);

 private:
  template <class Request>
  absl::Status ChangeRevision(const Request& request, PinAction action, const StopToken& stop,
                              RpcRecord* record);
  template <class Request>
  absl::Status ChangeEntry(const Request& request, PinAction action, const StopToken& stop,
                           RpcRecord* record);
  // `make` once for the request's id, for its key.
  template <class Request, class Make>
  absl::StatusOr<bool> Once(const Request& request, const StopToken& stop, RpcRecord* record,
                            const Make& make);

  PlanAdmin* const admin_;
  ChangeLedger ledger_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_CHANGE_HANDLERS_H_

#include "server/rpc/change_handlers.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/grpc_status.h"
#include "server/rpc/admin_caller.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// As the contract says.
constexpr size_t kRemembered = 4096;
constexpr size_t kLongestId = 64;

absl::Status CheckRequestId(const std::string& id) {
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (plain && id.size() <= kLongestId) return absl::OkStatus();
  return FieldError("request_id", id,
                    absl::StrCat("must be at most ", kLongestId, " of A-Z a-z 0-9 . _ -"));
}

template <class Request>
absl::StatusOr<RevisionId> RevisionOf(const Request& request) {
  if (absl::Status status = AtLeast("budget_bytes", request.budget_bytes(), 0); !status.ok()) {
    return status;
  }
  if (absl::Status status = AtLeast("revision", request.revision(), 1); !status.ok()) return status;
  return RevisionId{Bytes(request.budget_bytes()), request.revision()};
}

absl::StatusOr<bool> Changed(const absl::Status& status) {
  if (status.ok()) return true;
  return absl::IsFailedPrecondition(status) ? WithReason(status, "REVISION_STATE") : status;
}

}  // namespace

ChangeHandlers::ChangeHandlers(PlanAdmin* admin) : admin_(admin), ledger_(kRemembered) {}

template <class Request, class Make>
absl::StatusOr<bool> ChangeHandlers::Once(const Request& request, const StopToken& stop,
                                          RpcRecord* record, const Make& make) {
  const absl::StatusOr<PlanKey> key = FromProto(request.key());
  if (!key.ok()) return key.status();
  record->SetKey(*key);
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) return status;
  const AdminCaller caller = CallerOf(*record, stop);
  const std::string change =
      Sha256(absl::StrCat(request.GetTypeName(), " ", request.SerializeAsString())).ToBinary();
  return ledger_.Once(absl::StrCat(caller.identity, "\n", caller.tenant), request.request_id(),
                      change, [&] { return make(caller, *key); });
}

template <class Request>
absl::Status ChangeHandlers::ChangeRevision(const Request& request, PinAction action,
                                            const StopToken& stop, RpcRecord* record) {
  const absl::StatusOr<RevisionId> id = RevisionOf(request);
  const auto change = [&](const AdminCaller& caller, const PlanKey& key) -> absl::StatusOr<bool> {
    if (!id.ok()) return id.status();
    return Changed(admin_->Pin(caller, key, *id, action, request.etag()));
  };
  return Once(request, stop, record, change).status();
}

template <class Request>
absl::Status ChangeHandlers::ChangeEntry(const Request& request, PinAction action,
                                         const StopToken& stop, RpcRecord* record) {
  const auto change = [&](const AdminCaller& caller, const PlanKey& key) {
    return Changed(admin_->Pin(caller, key, RevisionId(), action, request.etag()));
  };
  return Once(request, stop, record, change).status();
}

absl::Status ChangeHandlers::Handle(const v1::PinPlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::PinPlanResponse*) {
  return ChangeRevision(request, PinAction::kPin, stop, record);
}

absl::Status ChangeHandlers::Handle(const v1::UnpinPlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::UnpinPlanResponse*) {
  return ChangeRevision(request, PinAction::kUnpin, stop, record);
}

absl::Status ChangeHandlers::Handle(const v1::RollBackPlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::RollBackPlanResponse*) {
  return ChangeRevision(request, PinAction::kRollBack, stop, record);
}

absl::Status ChangeHandlers::Handle(const v1::PromotePlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::PromotePlanResponse*) {
  return ChangeRevision(request, PinAction::kPromote, stop, record);
}

absl::Status ChangeHandlers::Handle(const v1::FreezePlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::FreezePlanResponse*) {
  return ChangeEntry(request, PinAction::kFreeze, stop, record);
}

absl::Status ChangeHandlers::Handle(const v1::UnfreezePlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::UnfreezePlanResponse*) {
  return ChangeEntry(request, PinAction::kUnfreeze, stop, record);
}

absl::Status ChangeHandlers::Handle(const v1::DeletePlanRequest& request, const StopToken& stop,
                                    RpcRecord* record, v1::DeletePlanResponse* response) {
  const absl::StatusOr<bool> deleted =
      Once(request, stop, record, [&](const AdminCaller& caller, const PlanKey& key) {
        return admin_->Delete(caller, key, request.etag());
      });
  if (!deleted.ok()) return deleted.status();
  response->set_deleted(*deleted);
  return absl::OkStatus();
}

}  // namespace stowage

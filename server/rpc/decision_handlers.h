// From requests of PlanAdminService to what was decided, and back: all of it, out and in.
//
// INVALID_ARGUMENT made by FieldError, field names as the contract spells them; UNAVAILABLE (reason STORE_UNAVAILABLE) where
// the book says so (server/decisions/decision_book.h). All wait for what servers share. Thread-safe.
#ifndef STOWAGE_SERVER_RPC_DECISION_HANDLERS_H_
#define STOWAGE_SERVER_RPC_DECISION_HANDLERS_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/decisions/decision_book.h"
#include "server/rpc/plan_page.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "stowage/v1/plan_admin_service.pb.h"

namespace stowage {

class DecisionHandlers {
 public:
  // The pointer outlives this object. Null: every call is UNIMPLEMENTED.
  DecisionHandlers(const RequestLimits& limits, DecisionBook* book)
      : limits_(limits), book_(book) {}

  // What would make the page larger than a message is on the next one. RESOURCE_EXHAUSTED (reason RESPONSE_TOO_LARGE) where a single
  // decision does.
  absl::Status Handle(const v1::ExportDecisionsRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::ExportDecisionsResponse* response) const;
  // Each decision that was taken is in the audit log, and each of a key of which some could not be.
  absl::Status Handle(const v1::ImportDecisionsRequest& request, const StopToken& stop,
                      RpcRecord* record, v1::ImportDecisionsResponse* response) const;

 private:
  // Where the next page starts; nothing where there is none.
  absl::StatusOr<std::optional<PagePosition>> FillPage(const std::optional<PagePosition>& after,
                                                       size_t limit, const StopToken& stop,
                                                       v1::ExportDecisionsResponse* page) const;

  const RequestLimits limits_;
  DecisionBook* const book_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_DECISION_HANDLERS_H_

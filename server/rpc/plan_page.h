// Pages of cached plans on the wire.
#ifndef STOWAGE_SERVER_RPC_PLAN_PAGE_H_
#define STOWAGE_SERVER_RPC_PLAN_PAGE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/planning/admin.h"
#include "server/rpc/request_limits.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

// The key after which the next page starts, as text, and back; "" is the start, or the end. A token is of one list, that of
// the tenant or of all tenants (nothing), and no secret. Errors:
// INVALID_ARGUMENT made by FieldError for "page_token".
std::string ToPageToken(const std::optional<PlanKey>& after,
                        const std::optional<std::string>& tenant);
absl::StatusOr<std::optional<PlanKey>> FromPageToken(const std::string& token,
                                                     const std::optional<std::string>& tenant);

// Every revision of every entry, as many entries as fit a message, at least one.
void FillPage(const EntryPage& page, const std::optional<std::string>& tenant,
              const RequestLimits& limits, v1::ListPlansResponse* response);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLAN_PAGE_H_

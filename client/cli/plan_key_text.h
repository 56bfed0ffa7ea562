// Keys of cached plans as people write them: the hexadecimal digest, or as much of its beginning as no
// other key has.
#ifndef STOWAGE_CLIENT_CLI_PLAN_KEY_TEXT_H_
#define STOWAGE_CLIENT_CLI_PLAN_KEY_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

// Of a key in a table: as much as tells a million keys apart.
inline constexpr size_t kShownDigits = 12;

// "3fa2": the key of the server that begins so, in either case. All 64 digits are taken as they are; fewer
// are looked for among all keys that the caller may see. INVALID_ARGUMENT: no digits, other characters,
// or several keys begin so (the message names some). NOT_FOUND: none does. Else the errors of ListPlans.
absl::StatusOr<PlanKey> FindKey(PlanConnection* connection, const std::string& text,
                                const CallOptions& call);

// Every listed plan that `prefix` begins the key of, in the order of the server, all pages of them, as far as `filter`
// takes them (ListQuery::filter). INVALID_ARGUMENT as above; "" is all.
absl::StatusOr<std::vector<ListedPlan>> ListAll(PlanConnection* connection,
                                                const std::string& prefix, const CallOptions& call,
                                                const std::string& filter = "");

// The filter for names that contain this; "" for "".
std::string NameFilter(const std::string& part);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PLAN_KEY_TEXT_H_

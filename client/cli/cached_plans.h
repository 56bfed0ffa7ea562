// The plans that a server keeps, for people and for programs.
#ifndef STOWAGE_CLIENT_CLI_CACHED_PLANS_H_
#define STOWAGE_CLIENT_CLI_CACHED_PLANS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/listing.h"
#include "client/rpc/plan_values.h"

namespace stowage {

// One row per revision.
Listing ListingOf(const std::vector<ListedPlan>& plans);

// Names of RevisionAction as --action takes them: "pin", "unpin", "rollback", "promote", "freeze",
// "unfreeze". INVALID_ARGUMENT for any other.
absl::StatusOr<RevisionAction> ParseAction(const std::string& text);

// Which of a key's revisions an action is for. `budget` and `revision` are what the caller said, 0 for
// nothing: then it is the only one that the action can be for. INVALID_ARGUMENT where there are several, or
// none: the message lists them.
absl::StatusOr<PlanRevision> ChooseRevision(const std::vector<ListedPlan>& plans,
                                            RevisionAction action, Bytes budget, int64_t revision);

// That a change is of a key's plans as they are listed; of none of them, of whatever there is.
ChangeTerms TermsOf(const std::vector<ListedPlan>& plans);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_CACHED_PLANS_H_

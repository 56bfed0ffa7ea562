// Why a cached plan is what it is, for people.
#ifndef STOWAGE_SERVER_ENTRIES_EXPLAIN_H_
#define STOWAGE_SERVER_ENTRIES_EXPLAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"
#include "solvers/model/budget.h"

namespace stowage {

// Some lines of text: the plan that answers the budget, what it costs and what is proven, the plans for
// other budgets around it, its revisions, and what jobs have measured. Shares and "least" mean those
// under the costs of reference. NOT_FOUND (reason PLAN_NOT_CACHED) when no plan serves the budget.
absl::StatusOr<std::string> ExplainEntry(const PlanEntry& entry, const Budget& budget);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_EXPLAIN_H_

// Plans of the same thing by different means, side by side.
#ifndef STOWAGE_CLIENT_CLI_COMPARISON_H_
#define STOWAGE_CLIENT_CLI_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/listing.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// One row: a plan, or why there is none.
struct Compared {
  std::string of;        // a profile's name, or a file
  std::string budget;    // as it was asked for
  std::string strategy;  // "revolve", "planner's choice"
  Plan plan;
  std::string failure;  // empty where there is a plan, be it that nothing fits: "out of time"

  bool fits() const { return failure.empty() && plan.status == PlanStatus::kFound; }
};

// What --solvers stands for where it is empty: the strategies that people know, as far as they plan this,
// then the planner's choice (""). With a link, those that offload, too.
std::vector<std::string> KnownStrategies(const Instance& instance);

// --solvers, split at commas; "planner" is the planner's choice. INVALID_ARGUMENT as FindSolver has it.
absl::StatusOr<std::vector<std::string>> ParseStrategies(const Instance& instance,
                                                         const std::string& text);

// One row each. The first two columns are not in the table where all rows say the same there.
Listing ListingOf(const std::vector<Compared>& rows);

// The table, above it what all rows have in common, below it what its words mean and what each solver chooses among.
std::string ToText(const std::vector<Compared>& rows);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMPARISON_H_

// The flags of planning: what to plan, within what, by which solver, for how long, and how to show it.
#ifndef STOWAGE_CLIENT_CLI_PLAN_FLAGS_H_
#define STOWAGE_CLIENT_CLI_PLAN_FLAGS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/rpc/plan_values.h"
#include "solvers/model/budget.h"

ABSL_DECLARE_FLAG(std::string, profile);
ABSL_DECLARE_FLAG(std::string, profiles);
ABSL_DECLARE_FLAG(std::string, budget);
ABSL_DECLARE_FLAG(std::string, budgets);
ABSL_DECLARE_FLAG(std::string, key);
ABSL_DECLARE_FLAG(std::string, solver);
ABSL_DECLARE_FLAG(int64_t, slots);
ABSL_DECLARE_FLAG(bool, recompute_only);
ABSL_DECLARE_FLAG(absl::Duration, timeout);
ABSL_DECLARE_FLAG(std::string, format);
ABSL_DECLARE_FLAG(std::string, out);

namespace stowage {

// The parts of a list with commas between, empty ones left out.
std::vector<std::string> PartsOf(const std::string& list);

// --budget. INVALID_ARGUMENT that names the flag.
absl::StatusOr<Budget> BudgetFromFlag();

// --budgets, split at commas.
absl::StatusOr<std::vector<Budget>> BudgetsFromFlag();

// --solver, before it is known what is planned. INVALID_ARGUMENT unless it is empty or some solver's.
absl::Status CheckSolverFlag();

// --timeout as a deadline from now. INVALID_ARGUMENT unless positive.
absl::StatusOr<CallOptions> CallOptionsFromFlags();

enum class Format { kText, kJson, kCsv };

// --format. INVALID_ARGUMENT unless it is one of `formats`, those that the command has.
absl::StatusOr<Format> FormatFromFlag(std::initializer_list<Format> formats = {
                                          Format::kText, Format::kJson, Format::kCsv});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PLAN_FLAGS_H_

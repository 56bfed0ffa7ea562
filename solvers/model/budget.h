// How much device memory a plan may use.
#ifndef STOWAGE_SOLVERS_MODEL_BUDGET_H_
#define STOWAGE_SOLVERS_MODEL_BUDGET_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"

namespace stowage {

// floor(share * peak of store-all), share in (0, 1].
struct ShareOfStoreAll {
  double share = 1.0;
};

// That share of this peak, rounded down.
Bytes ShareOf(const ShareOfStoreAll& share, Bytes store_all_peak);

// The least budget that any schedule of the solver's class fits.
struct LeastBudget {};

using Budget = std::variant<Bytes, ShareOfStoreAll, LeastBudget>;

// OK, or INVALID_ARGUMENT made by FieldError with names below "budget.".
absl::Status ValidateBudget(const Budget& budget);

// "8GiB", "1500000000", "512 MiB", "60%", "least". INVALID_ARGUMENT naming the text and the forms
// otherwise.
absl::StatusOr<Budget> ParseBudget(const std::string& text);

std::string ToString(const Budget& budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_BUDGET_H_

// Why a plan costs what it costs, for people.
#ifndef STOWAGE_CLIENT_PYTHON_CORE_EXPLANATION_TEXT_H_
#define STOWAGE_CLIENT_PYTHON_CORE_EXPLANATION_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// PlanText, the moment of the peak by what memory is held for, and one line per stage: what becomes of it and what that
// costs. Of a plan that was not found PlanText alone. Errors: TimelineOf.
absl::StatusOr<std::string> ExplanationText(const Instance& instance, const Plan& plan);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_EXPLANATION_TEXT_H_

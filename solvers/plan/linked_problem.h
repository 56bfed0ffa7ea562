// What is planned together with the link to host memory that its plans may use: a plan with
// transfers that loses its link on the way is no plan, so both travel as one.
//
// The functions are those of problem_referee.h, with the link if there is one.
#ifndef STOWAGE_SOLVERS_PLAN_LINKED_PROBLEM_H_
#define STOWAGE_SOLVERS_PLAN_LINKED_PROBLEM_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/plan.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

// Immutable by convention, hence safe to share between threads.
struct LinkedProblem {
  Problem problem;
  std::optional<TransferModel> transfers;  // nothing: no transfer is valid
};

// Of a profile, with its device's link; without one if plans must copy nothing.
LinkedProblem LinkedProblemOf(const Profile& profile, bool recompute_only);

absl::StatusOr<Simulation> Simulate(const LinkedProblem& linked, const Schedule& schedule);
Nanos MakespanLowerBound(const LinkedProblem& linked, Bytes budget);
absl::Status Referee(const LinkedProblem& linked, Plan* plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_LINKED_PROBLEM_H_

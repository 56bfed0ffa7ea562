#include "solvers/plan/linked_problem.h"

#include "solvers/plan/problem_referee.h"

namespace stowage {

LinkedProblem LinkedProblemOf(const Profile& profile, bool recompute_only) {
  return {profile.problem, recompute_only ? std::nullopt : TransfersOf(profile.device)};
}

absl::StatusOr<Simulation> Simulate(const LinkedProblem& linked, const Schedule& schedule) {
  return linked.transfers ? Simulate(linked.problem, schedule, *linked.transfers)
                          : Simulate(linked.problem, schedule);
}

Nanos MakespanLowerBound(const LinkedProblem& linked, Bytes budget) {
  return linked.transfers ? MakespanLowerBound(linked.problem, *linked.transfers, budget)
                          : MakespanLowerBound(linked.problem, budget);
}

absl::Status Referee(const LinkedProblem& linked, Plan* plan) {
  return linked.transfers ? Referee(linked.problem, *linked.transfers, plan)
                          : Referee(linked.problem, plan);
}

}  // namespace stowage

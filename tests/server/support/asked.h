// What callers ask, and what solvers answer them, for the tests of the rules of entries.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_ASKED_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_ASKED_H_

#include <memory>
#include <utility>

#include "server/entries/plan_record.h"
#include "server/entries/planning_problem.h"
#include "solvers/planner.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {

using Asked = std::shared_ptr<const PlanningProblem>;

inline Asked ProblemOf(const ProfileShape& shape) {
  return *MakePlanningProblem(ChainProfile(shape), KeyOptions(), Sha256);
}

inline Asked ProblemOf(Problem problem) {
  const Profile profile{"test", Device(), std::move(problem), CostSource::kMeasured};
  return *MakePlanningProblem(profile, KeyOptions(), Sha256);
}

inline SolvedPlan Solved(const Asked& problem, Bytes budget, uint64_t job = 0) {
  return {problem, *MakePlan(*problem->costs, budget, {}), false, job};
}

// An entry of one plan.
inline PlanEntry EntryFor(const Asked& problem, Bytes budget, uint64_t job = 0) {
  SolvedPlan solved = Solved(problem, budget, job);
  return *Record(nullptr, &solved);
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_ASKED_H_

// What the tests of several servers ask for, and an entry that answers it.
#ifndef STOWAGE_TESTS_SERVER_DECISIONS_QUESTIONS_H_
#define STOWAGE_TESTS_SERVER_DECISIONS_QUESTIONS_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "server/service/admin.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {

inline constexpr Bytes kOther{1750};

inline const Asked& Question() {
  static const auto* const kQuestion = new Asked(ProblemOf(ProfileShape{}));
  return *kQuestion;
}

inline const PlanKey& Key() { return Question()->key; }

inline Profile Asking() { return ChainProfile(ProfileShape{}); }

inline AdminCaller Administrator() { return {"request-1", "root", "", false}; }

// Revision 1 serves kJustShort, revision 2 is slower.
inline std::shared_ptr<const PlanEntry> TwoRevisions() {
  PlanEntry entry = EntryFor(Question(), kJustShort, 1);
  SolvedPlan least = Solved(Question(), LeastPeak(Asking()), 1);
  least.plan.budget = kJustShort;
  least.plan.revision = 2;
  least.plan.bounds.lower_bound = Nanos(0);
  least.plan.bounds.proven_optimal = false;
  entry.plans.push_back({std::make_shared<const Plan>(least.plan)});
  entry.generation = FirstGeneration();
  EXPECT_NE(entry.plans[0].plan->schedule, entry.plans[1].plan->schedule);
  return std::make_shared<const PlanEntry>(std::move(entry));
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_DECISIONS_QUESTIONS_H_

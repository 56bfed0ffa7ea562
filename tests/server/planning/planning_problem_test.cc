#include "server/planning/planning_problem.h"

#include <gtest/gtest.h>

#include "solvers/model/field_error.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {
namespace {

absl::StatusOr<std::shared_ptr<PlanningProblem>> Make(const Profile& profile, int64_t max_stages,
                                                      const std::string& solver = "") {
  KeyOptions options;
  options.solver = solver;
  return MakePlanningProblem(profile, options, Sha256, max_stages);
}

TEST(PlanningProblem, KnowsWhatStoreAllTakes) {
  const auto problem = Make(ChainProfile({}), 10);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ((*problem)->store_all.peak, StoreAllPeak(ChainProfile({})));
}

TEST(PlanningProblem, SharesAreWhatThePlannerSays) {
  const auto problem = Make(ChainProfile({}), 10);
  ASSERT_TRUE(problem.ok()) << problem.status();
  for (const double share : {0.001, 0.1, 1.0 / 3, 0.6, 0.999, 1.0}) {
    const auto bytes = ResolveBudget(*(*problem)->chain, ShareOfStoreAll{share}, PlanOptions());
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(WithoutSolver(ShareOfStoreAll{share}, (*problem)->store_all.peak), *bytes) << share;
  }
  EXPECT_EQ(WithoutSolver(Bytes(7), Bytes(100)), Bytes(7));
  EXPECT_FALSE(WithoutSolver(LeastBudget{}, Bytes(100)).has_value());
}

TEST(PlanningProblem, AGraphThatSplitsIntoTooManyStagesIsRefused) {
  const auto whole = Make(GraphProfile(20, 0, 1), 1000);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const int stages = (*whole)->chain->length();
  ASSERT_GT(stages, 1);
  EXPECT_TRUE(Make(GraphProfile(20, 0, 1), stages).ok());
  const auto violation = GetFieldViolation(Make(GraphProfile(20, 0, 1), stages - 1).status());
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, "profile.graph");
  EXPECT_EQ(violation->value, std::to_string(stages) + " stages");
  EXPECT_EQ(violation->rule, "must split into at most " + std::to_string(stages - 1) + " stages");
}

TEST(PlanningProblem, AnErrorOfTheCutIsOneOfTheGraph) {
  const int vertices = static_cast<int>(Chain::kMaxStages) + 5;
  const auto violation = GetFieldViolation(Make(GraphProfile(vertices, 0, 1), 10).status());
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, "profile.graph");
  EXPECT_NE(violation->value.find("chain.stages"), std::string::npos) << violation->value;
}

TEST(PlanningProblem, AnUnknownSolverIsRefused) {
  const auto violation = GetFieldViolation(Make(ChainProfile({}), 10, "no such one").status());
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, "options.solver");
  EXPECT_EQ(violation->value, "\"no such one\"");
  EXPECT_NE(violation->rule.find("optimal_persistent"), std::string::npos);
  EXPECT_TRUE(Make(ChainProfile({}), 10, "store_all").ok());
}

}  // namespace
}  // namespace stowage::testing

#include "server/entries/planning_problem.h"

#include <gtest/gtest.h>

#include "solvers/model/field_error.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

absl::StatusOr<std::shared_ptr<PlanningProblem>> Make(const Profile& profile,
                                                      const std::string& solver = "") {
  KeyOptions options;
  options.solver = solver;
  return MakePlanningProblem(profile, options, Sha256);
}

TEST(PlanningProblem, KnowsWhatStoreAllTakes) {
  const auto problem = Make(ChainProfile({}));
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ((*problem)->store_all.peak, StoreAllPeak(ChainProfile({})));
}

TEST(PlanningProblem, SharesAreWhatThePlannerSays) {
  const auto problem = Make(ChainProfile({}));
  ASSERT_TRUE(problem.ok()) << problem.status();
  for (const double share : {0.001, 0.1, 1.0 / 3, 0.6, 0.999, 1.0}) {
    const auto bytes =
        ResolveBudget((*problem)->costs->problem(), ShareOfStoreAll{share}, PlanOptions());
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(WithoutSolver(ShareOfStoreAll{share}, (*problem)->store_all.peak), *bytes) << share;
  }
  EXPECT_EQ(WithoutSolver(Bytes(7), Bytes(100)), Bytes(7));
  EXPECT_FALSE(WithoutSolver(LeastBudget{}, Bytes(100)).has_value());
}

TEST(PlanningProblem, AGraphsStepsAreItsVerticesByTheCallersIds) {
  const auto problem = Make(GraphProfile(3, 500, 10));
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ((*problem)->stage_vertices, (std::vector<std::vector<int64_t>>{{500}, {510}, {520}}));
  EXPECT_TRUE(Make(ChainProfile({})).value()->stage_vertices.empty());
}

// The second op overwrites what the first one's backward needs: frameworks refuse that, too.
TEST(PlanningProblem, AGraphThatPlainTrainingCannotRunIsRefused) {
  GraphSpec spec;
  for (int64_t id = 0; id < 3; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = v.output_gradient = Bytes(8);
    if (id > 0) v.inputs = {{id - 1, false}};
    spec.vertices.push_back(v);
  }
  spec.vertices[1].backward_needs_output = true;
  spec.vertices[2].alias = AliasKind::kInPlace;
  Profile profile = GraphProfile(1, 0, 1);
  profile.problem = Graph::Create(std::move(spec)).value();
  const auto violation = GetFieldViolation(Make(profile).status());
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, "profile");
  EXPECT_EQ(violation->rule, "must be a step that can run without a budget");
}

TEST(PlanningProblem, OfAnEntryIsTheQuestionThatItAnswers) {
  KeyOptions options;
  options.tenant = "team-a";
  options.solver = "optimal_persistent";
  const Asked asked = *MakePlanningProblem(ChainProfile({}), options, Sha256);
  PlanEntry entry = EntryFor(asked, Bytes(1500), 1);
  const auto problem = ProblemOfEntry(asked->key, entry);
  ASSERT_NE(problem, nullptr);
  EXPECT_EQ(problem->costs, entry.reference);
  EXPECT_EQ(problem->key, asked->key);
  EXPECT_EQ(*problem->canonical, *asked->canonical);
  EXPECT_EQ(problem->options.solver, "optimal_persistent");
  EXPECT_EQ(problem->options.tenant, "team-a");
  EXPECT_EQ(problem->store_all.peak, asked->store_all.peak);
  // What is solved for it is no job's profile.
  SolvedPlan solved = Solved(problem, Bytes(1600), 7);
  EXPECT_EQ(Record(&entry, &solved)->samples.size(), 1u);
  entry.canonical = "of another version";
  EXPECT_EQ(ProblemOfEntry(asked->key, entry), nullptr);
}

TEST(PlanningProblem, AnUnknownSolverIsRefused) {
  const auto violation = GetFieldViolation(Make(ChainProfile({}), "no such one").status());
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, "options.solver");
  EXPECT_EQ(violation->value, "\"no such one\"");
  EXPECT_NE(violation->rule.find("optimal_persistent"), std::string::npos);
  EXPECT_TRUE(Make(ChainProfile({}), "store_all").ok());
}

}  // namespace
}  // namespace stowage::testing

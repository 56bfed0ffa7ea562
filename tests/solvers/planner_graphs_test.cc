// The planner on graphs: op by op, or by a chain solver that is named.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

Graph Path() {
  GraphSpec spec;
  for (int64_t id = 0; id < 9; ++id) {
    Vertex v;
    v.id = 100 + id;
    v.program_order = id;
    v.output = v.output_gradient = Bytes(10);
    v.forward_time = v.backward_time = Nanos(5);
    if (id > 0) v.inputs = {{99 + id, true}};
    spec.vertices.push_back(v);
  }
  return *Graph::Create(spec);
}

TEST(PlannerOnGraphs, PlansGraphsOpByOp) {
  const Graph graph = Path();
  const Profile profile{"path", Device(), graph};
  const absl::StatusOr<Plan> plan = MakePlan(profile, ShareOfStoreAll{0.7}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_EQ(plan->provenance.solver, "order_search");
  ASSERT_EQ(plan->stage_vertices.size(), 9u);
  EXPECT_EQ(plan->stage_vertices[1], std::vector<int64_t>{101});
  EXPECT_GT(plan->prediction.recomputed_forwards, 0);
  EXPECT_EQ(Evaluator(graph).Run(plan->schedule)->makespan, plan->prediction.makespan);
  EXPECT_GE(plan->prediction.makespan, plan->bounds.lower_bound);
  const absl::StatusOr<Frontier> frontier = MakeFrontier(profile.problem, {});
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_EQ(frontier->At(plan->budget)->makespan, plan->prediction.makespan);
  const absl::StatusOr<Plan> least = MakePlan(profile, LeastBudget{}, {});
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->budget, frontier->points().front().peak);
  EXPECT_EQ(MakePlan(profile, least->budget - Bytes(1), {})->status, PlanStatus::kProvenInfeasible);
}

TEST(PlannerOnGraphs, RefusesGraphsThatPlainTrainingCannotRun) {
  GraphSpec spec;
  for (int64_t id = 0; id < 4; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = v.output_gradient = Bytes(10);
    v.extra_saved = Bytes(3);
    if (id > 0) v.inputs = {{id - 1, true}};
    spec.vertices.push_back(v);
  }
  spec.vertices[2].alias = AliasKind::kInPlace;
  spec.vertices[1].backward_needs_output = true;
  const absl::StatusOr<Graph> graph = Graph::Create(spec);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Problem problem(*graph);
  for (const std::string name : {"", "store_all", "optimal_persistent"}) {
    const PlanOptions options{name, {}};
    std::vector<absl::Status> answers = {
        MakeFrontier(problem, options).status(),
        ResolveBudget(problem, ShareOfStoreAll{0.5}, options).status(),
        ResolveBudget(problem, LeastBudget{}, options).status()};
    for (const int64_t budget : {1, 30, 1000}) {
      answers.push_back(MakePlan(problem, Bytes(budget), options).status());
    }
    for (const absl::Status& status : answers) {
      ASSERT_TRUE(GetFieldViolation(status).has_value()) << status;
      EXPECT_EQ(GetFieldViolation(status)->field, "profile");
    }
  }
}

TEST(PlannerOnGraphs, PlansGraphsByTheChainSolverThatIsNamed) {
  const Graph graph = Path();
  const Profile profile{"path", Device(), graph};
  for (const std::string name : {"optimal_persistent", "checkpoint_sequential"}) {
    const PlanOptions options{name, {}};
    const absl::StatusOr<Plan> plan = MakePlan(profile, ShareOfStoreAll{0.7}, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    EXPECT_EQ(plan->provenance.solver, name);
    EXPECT_EQ(plan->stage_vertices.size(), 9u);
    EXPECT_EQ(Evaluator(graph).Run(plan->schedule)->makespan, plan->prediction.makespan);
    EXPECT_GE(plan->prediction.makespan, MakePlan(profile, plan->budget, {})->prediction.makespan);
    const absl::StatusOr<Frontier> frontier = MakeFrontier(profile.problem, options);
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_EQ(frontier->info().solver, name);
    EXPECT_LE(frontier->At(plan->budget)->makespan, plan->prediction.makespan);
    EXPECT_EQ(MakePlan(profile, LeastBudget{}, options)->status, PlanStatus::kFound);
    EXPECT_EQ(MakePlan(profile, Bytes(1), options)->status, PlanStatus::kProvenInfeasible);
  }
  EXPECT_EQ(GetFieldViolation(MakePlan(profile, Bytes(5), {"no_such", {}}).status())->field,
            "options.solver");
}

}  // namespace
}  // namespace stowage

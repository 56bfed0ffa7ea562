// What every solver of graphs within a budget must do: its plans.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "solvers/graph/linearize.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/lower_bound.h"
#include "tests/solvers/graph/graph_solver_cases.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/solver_promises.h"

namespace stowage::testing {
namespace {

class GraphSolvers : public GraphSolverTest {};

Bytes Share(Bytes bytes, double share) {
  return Bytes(static_cast<int64_t>(static_cast<double>(bytes.value()) * share));
}

TEST_P(GraphSolvers, PlansAreValidAndWithinBudget) {
  std::mt19937_64 rng(30);
  for (int i = 0; i < 120; ++i) {
    const Graph graph = DrawGraph(i, &rng);
    const Bytes all = StoreAllPeak(graph);
    const Bytes least = *solver().LeastBudget(graph, {});
    Nanos before(INT64_MAX);
    for (const double share : {0.3, 0.5, 0.7, 0.9, 1.0, 2.0}) {
      const Bytes budget = Share(all, share);
      const absl::StatusOr<Plan> plan = solver().Solve(graph, budget, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->status == PlanStatus::kFound, budget >= least) << Describe(graph);
      EXPECT_FALSE(plan->bounds.schedule_class.empty());
      EXPECT_FALSE(plan->explanation.empty());
      if (plan->status != PlanStatus::kFound) continue;
      const absl::StatusOr<Simulation> simulation = Evaluator(graph).Run(plan->schedule);
      ASSERT_TRUE(simulation.ok()) << simulation.status() << Describe(graph);
      EXPECT_TRUE(GradientSums(graph).KeptBy(plan->schedule)) << Describe(graph);
      EXPECT_LE(simulation->peak, budget);
      EXPECT_LE(simulation->makespan, before);
      EXPECT_GE(simulation->makespan, MakespanLowerBound(graph, budget));
      before = simulation->makespan;
    }
    EXPECT_EQ(before, graph.ideal_time());
  }
}

TEST_P(GraphSolvers, MoreBudgetIsNeverSlower) {
  std::mt19937_64 rng(36);
  for (int i = 0; i < 60; ++i) {
    ExpectMoreBudgetIsNeverSlower(solver(), Instance(DrawGraph(i, &rng)), 16);
  }
}

TEST_P(GraphSolvers, HasAPlanAtTheDeadlineIfItSaysSo) {
  std::mt19937_64 rng(38);
  for (int i = 3; i < 14; i += 4) {
    const Instance instance(DrawGraph(i, &rng));
    const Bytes below = StoreAllPeak(instance.graph()) - Bytes(1);
    ExpectPointsAtTheDeadline(solver(), instance);
    if (*solver().LeastBudget(instance, {}) > below) continue;
    ExpectAPlanAtTheDeadline(solver(), instance, below);
  }
}

// With a link: what the others are without one, joint is not.
TEST(LinkedGraphSolvers, KeepTheirPromises) {
  for (const Solver* solver : SolversOf(ProblemKind::kGraph)) {
    std::mt19937_64 rng(37);
    for (int i = 0; i < (solver->info().copies ? 60 : 12); ++i) {
      const Graph graph = DrawGraph(i, &rng);
      TransferModel link = RandomTransferModel(&rng);
      if (i % 3 == 1) link.host_memory = Bytes(StoreAllPeak(graph).value() / 3);
      SCOPED_TRACE(solver->info().name + " on " + Describe(graph));
      const Instance instance(graph, link);
      ExpectMoreBudgetIsNeverSlower(*solver, instance, 16);
      if (i < 2) ExpectPointsAtTheDeadline(*solver, instance);
      const Bytes below = StoreAllPeak(graph) - Bytes(1);
      if (*solver->LeastBudget(instance, {}) > below) continue;
      ExpectAPlanAtTheDeadline(*solver, instance, below);
    }
  }
}

TEST_P(GraphSolvers, WhatFitsNeedsNoSearch) {
  const absl::StatusOr<Graph> graph =
      ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  SolveOptions options;
  options.table_limit = Bytes(1);  // no table fits
  std::vector<double> done;
  options.progress = [&](double share) { done.push_back(share); };
  const absl::StatusOr<Plan> plan = solver().Solve(*graph, StoreAllPeak(*graph), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_TRUE(plan->bounds.proven_optimal);
  EXPECT_EQ(Evaluator(*graph).Run(plan->schedule)->recomputed_forwards, 0);
  EXPECT_EQ(done, std::vector<double>{1.0});
}

TEST_P(GraphSolvers, SaysWhatIsInfeasible) {
  std::mt19937_64 rng(32);
  int unproven = 0;
  for (int i = 0; i < 60; ++i) {
    const Graph graph = DrawGraph(i, &rng);
    const Frontier frontier = *solver().SolveFrontier(graph, {});
    const Bytes proven = frontier.info().least_budget, found = frontier.points().front().peak;
    if (proven > Bytes(0)) {
      const absl::StatusOr<Plan> plan = solver().Solve(graph, proven - Bytes(1), {});
      EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible);
      EXPECT_EQ(plan->bounds.least_budget, proven);
      EXPECT_TRUE(plan->schedule.empty());
    }
    if (proven >= found) continue;
    ++unproven;
    const absl::StatusOr<Plan> plan = solver().Solve(graph, found - Bytes(1), {});
    EXPECT_EQ(plan->status, PlanStatus::kNotFound) << Describe(graph);
    EXPECT_EQ(plan->bounds.least_budget, found);
  }
  EXPECT_GT(unproven, 5);
}

TEST_P(GraphSolvers, WhatMustBeKeptRunsOnce) {
  std::mt19937_64 rng(33);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = DrawGraph(2 * i, &rng);
    const Frontier frontier = *solver().SolveFrontier(graph, {});
    const Schedule schedule = frontier.PlanAt(frontier.points().front().peak).schedule;
    std::vector<int> runs(static_cast<size_t>(graph.size()), 0);
    for (const Instruction& instruction : schedule) {
      if (IsForward(instruction.op)) ++runs[static_cast<size_t>(instruction.stage) - 1];
    }
    for (int p = 0; p < graph.size(); ++p) {
      const Vertex& v = graph.vertex(p);
      if (v.must_keep || v.collective || v.inputs.empty()) {
        EXPECT_EQ(runs[static_cast<size_t>(p)], 1);
      }
    }
  }
}

TEST_P(GraphSolvers, AnswersGraphsOfOneVertexAndOfNoCost) {
  GraphSpec spec;
  spec.vertices.resize(1);
  spec.vertices[0].output = spec.vertices[0].output_gradient = Bytes(8);
  const Graph one = *Graph::Create(spec);
  EXPECT_EQ(solver().Solve(one, Bytes(16), {})->status, PlanStatus::kFound);
  EXPECT_EQ(solver().Solve(one, Bytes(0), {})->status, PlanStatus::kProvenInfeasible);
  spec = GraphSpec();
  for (int64_t id = 0; id < 5; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    if (id > 0) v.inputs.push_back({id - 1, true});
    spec.vertices.push_back(v);
  }
  const absl::StatusOr<Plan> plan = solver().Solve(*Graph::Create(spec), Bytes(0), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kFound);
}

TEST_P(GraphSolvers, HandlesTheLargestSizes) {
  GraphSpec spec;
  for (int64_t id = 0; id < 6; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = Bytes(kMaxTotal / 32);
    v.forward_time = Nanos(1);
    if (id > 0) v.inputs.push_back({id - 1, true});
    if (id > 2) v.inputs.push_back({id - 3, false});
    spec.vertices.push_back(v);
  }
  const absl::StatusOr<Graph> graph = Graph::Create(spec);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int64_t budget : {int64_t{0}, kMaxTotal / 8, kMaxTotal, INT64_MAX}) {
    EXPECT_TRUE(solver().Solve(*graph, Bytes(budget), {}).ok());
  }
}

TEST_P(GraphSolvers, AnswersOrRefusesGraphsThatAreTooLargeAsChains) {
  GraphSpec spec;
  for (int64_t id = 0; id < 40; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = Bytes(kMaxTotal / 50);
    v.forward_time = Nanos(1);
    if (id > 0) v.inputs.push_back({id - 1, true});
    spec.vertices.push_back(v);
  }
  const absl::StatusOr<Graph> graph = Graph::Create(spec);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_FALSE(Linearize(*graph).ok());
  EXPECT_TRUE(solver().Solve(*graph, StoreAllPeak(*graph), {}).ok());
  const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(*graph, {});
  if (PlansGraphsAsTheyAre()) {
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_LE(frontier->points().front().peak, Share(StoreAllPeak(*graph), 0.5));
  } else {
    ASSERT_TRUE(GetFieldViolation(frontier.status()).has_value()) << frontier.status();
    EXPECT_EQ(GetFieldViolation(frontier.status())->field, "profile.graph");
  }
}

TEST_P(GraphSolvers, RefusesBadOptions) {
  std::mt19937_64 rng(35);
  const Graph graph = DrawGraph(9, &rng);
  SolveOptions options;
  options.threads = 0;
  EXPECT_EQ(solver().Solve(graph, Bytes(1), options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(solver().SolveFrontier(graph, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, GraphSolvers, ::testing::ValuesIn(GraphSolverCases()),
                         GraphSolverCaseName);

}  // namespace
}  // namespace stowage::testing

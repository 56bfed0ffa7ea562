// What every solver of graphs within a budget must do.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "solvers/graph/budget/solvers.h"
#include "solvers/graph/joint/solvers.h"
#include "solvers/graph/linearize.h"
#include "solvers/model/field_error.h"
#include "solvers/plan/graph_lower_bound.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/graph_store_all.h"
#include "solvers/planner.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/naive_graph_replay.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

class GraphSolvers : public ::testing::TestWithParam<const GraphSolver*> {
 protected:
  const GraphSolver& solver() const { return *GetParam(); }
  // Not as the chain that they are cut into.
  bool PlansGraphsAsTheyAre() const {
    return &solver() == &OrderSearchSolver() || &solver() == &JointGraphSolver();
  }
};

Graph Draw(int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = 1 + i % 14;
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  options.with_flags = i % 2 == 0;
  options.with_aliases = i % 4 == 1;
  return testing::RandomGraph(options, rng);
}

Bytes StoreAllPeak(const Graph& graph) {
  return SimulateGraph(graph, StoreAllSchedule(graph))->peak;
}

Bytes Share(Bytes bytes, double share) {
  return Bytes(static_cast<int64_t>(static_cast<double>(bytes.value()) * share));
}

TEST_P(GraphSolvers, PlansAreValidAndWithinBudget) {
  std::mt19937_64 rng(30);
  for (int i = 0; i < 120; ++i) {
    const Graph graph = Draw(i, &rng);
    const Bytes all = StoreAllPeak(graph);
    const Bytes least = *solver().LeastBudget(graph, {});
    Nanos before(INT64_MAX);
    for (const double share : {0.3, 0.5, 0.7, 0.9, 1.0, 2.0}) {
      const Bytes budget = Share(all, share);
      const absl::StatusOr<Plan> plan = solver().Solve(graph, budget, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->status == PlanStatus::kFound, budget >= least) << testing::Describe(graph);
      EXPECT_FALSE(plan->bounds.schedule_class.empty());
      EXPECT_FALSE(plan->explanation.empty());
      if (plan->status != PlanStatus::kFound) continue;
      const absl::StatusOr<Simulation> simulation = SimulateGraph(graph, plan->schedule);
      ASSERT_TRUE(simulation.ok()) << simulation.status() << testing::Describe(graph);
      EXPECT_LE(simulation->peak, budget);
      EXPECT_LE(simulation->makespan, before);
      EXPECT_GE(simulation->makespan, MakespanLowerBound(graph, budget));
      before = simulation->makespan;
    }
    EXPECT_EQ(before, graph.ideal_time());
  }
}

TEST_P(GraphSolvers, WhatFitsNeedsNoSearch) {
  const absl::StatusOr<Graph> graph =
      testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  SolveOptions options;
  options.table_limit = Bytes(1);  // no table fits
  double done = 0.0;
  options.progress = [&](double share) { done = share; };
  const absl::StatusOr<Plan> plan = solver().Solve(*graph, StoreAllPeak(*graph), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_TRUE(plan->bounds.proven_optimal);
  EXPECT_EQ(SimulateGraph(*graph, plan->schedule)->recomputed_forwards, 0);
  EXPECT_EQ(done, 0.0);
}

TEST_P(GraphSolvers, FrontierAndPlansAgree) {
  std::mt19937_64 rng(31);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = Draw(i, &rng);
    const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(graph, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_EQ(frontier->points().back().makespan, graph.ideal_time());
    EXPECT_EQ(frontier->points().front().peak, *solver().LeastBudget(graph, {}));
    EXPECT_LE(frontier->info().least_budget, frontier->points().front().peak);
    for (const Frontier::Point& point : frontier->points()) {
      const Simulation simulation = *SimulateGraph(graph, frontier->PlanAt(point.peak)->schedule);
      EXPECT_EQ(simulation.peak, point.peak);
      EXPECT_EQ(simulation.makespan, point.makespan);
      const absl::StatusOr<Plan> plan = solver().Solve(graph, point.peak, {});
      EXPECT_EQ(SimulateGraph(graph, plan->schedule)->makespan, point.makespan);
    }
  }
}

TEST_P(GraphSolvers, SaysWhatIsInfeasible) {
  std::mt19937_64 rng(32);
  int unproven = 0;
  for (int i = 0; i < 60; ++i) {
    const Graph graph = Draw(i, &rng);
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
    EXPECT_EQ(plan->status, PlanStatus::kNotFound) << testing::Describe(graph);
    EXPECT_EQ(plan->bounds.least_budget, found);
  }
  EXPECT_GT(unproven, 5);
}

TEST_P(GraphSolvers, WhatMustBeKeptRunsOnce) {
  std::mt19937_64 rng(33);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = Draw(2 * i, &rng);
    const Frontier frontier = *solver().SolveFrontier(graph, {});
    const Schedule schedule = frontier.PlanAt(frontier.points().front().peak)->schedule;
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

TEST_P(GraphSolvers, EqualInputGivesEqualFrontiersWhateverTheThreads) {
  const absl::StatusOr<Graph> graph =
      testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/alexnet.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  SolveOptions options;
  const std::string first = solver().SolveFrontier(*graph, options)->Encode();
  EXPECT_EQ(solver().SolveFrontier(*graph, options)->Encode(), first);
  options.threads = 2;
  EXPECT_EQ(solver().SolveFrontier(*graph, options)->Encode(), first);
}

TEST_P(GraphSolvers, ScalingSizesScalesStoreAllAndTheProvenNeed) {
  std::mt19937_64 rng(34);
  for (int i = 0; i < 30; ++i) {
    const Graph graph = Draw(2 * i, &rng);
    GraphSpec spec;
    for (int p = 0; p < graph.size(); ++p) {
      Vertex v = graph.vertex(p);
      for (GraphInput& input : v.inputs)
        input.vertex = graph.vertex(static_cast<int>(input.vertex)).id;
      for (Bytes* bytes : {&v.output, &v.output_gradient, &v.extra_saved,
                           &v.forward_saving_overhead, &v.forward_overhead, &v.backward_overhead}) {
        *bytes = Bytes(bytes->value() * 1000);
      }
      spec.vertices.push_back(std::move(v));
    }
    const Frontier small = *solver().SolveFrontier(graph, {});
    const Frontier large = *solver().SolveFrontier(*Graph::Create(spec), {});
    EXPECT_EQ(small.points().back().peak.value() * 1000, large.points().back().peak.value());
    EXPECT_EQ(small.points().back().makespan, large.points().back().makespan);
    EXPECT_EQ(small.info().least_budget.value() * 1000, large.info().least_budget.value());
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
  const Graph graph = Draw(9, &rng);
  SolveOptions options;
  options.threads = 0;
  EXPECT_EQ(solver().Solve(graph, Bytes(1), options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(solver().SolveFrontier(graph, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Every vertex reads the one with half its number: half of them are outputs.
Graph ManyOutputs(int vertices) {
  std::mt19937_64 rng(36);
  GraphSpec spec;
  for (int64_t id = 0; id < vertices; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = v.output_gradient = Bytes(static_cast<int64_t>(1000 + rng() % 9000));
    v.forward_time = v.backward_time = Nanos(static_cast<int64_t>(1 + rng() % 100));
    if (id > 0) v.inputs.push_back({id / 2, true});
    spec.vertices.push_back(v);
  }
  spec.vertices[1].inputs[0].vertex = 0;
  return *Graph::Create(spec);
}

// The best of some tries: others may use the machine.
void ExpectToStopSoonAfter(std::chrono::milliseconds after, const GraphSolver& solver,
                           const Graph& graph) {
  constexpr std::chrono::milliseconds kSoon(150);
  StopToken::Clock::duration late = std::chrono::hours(1);
  for (int tries = 0; tries < 3 && late > kSoon; ++tries) {
    const auto deadline = StopToken::Clock::now() + after;
    const StopToken stop(deadline);
    SolveOptions options;
    options.stop = &stop;
    const absl::StatusOr<Frontier> frontier = solver.SolveFrontier(graph, options);
    if (frontier.ok()) return;  // done before
    EXPECT_EQ(frontier.status().code(), absl::StatusCode::kDeadlineExceeded);
    late = std::min(late, StopToken::Clock::now() - deadline);
  }
  EXPECT_LT(late, kSoon) << graph.size() << " vertices, told after " << after.count() << " ms";
}

TEST_P(GraphSolvers, StopsSoonAfterADeadline) {
  const absl::StatusOr<Graph> graph =
      testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Graph many_outputs = ManyOutputs(5000);
  for (const int after_ms : {0, 50, 700}) {
    ExpectToStopSoonAfter(std::chrono::milliseconds(after_ms), solver(), *graph);
  }
  for (const int after_ms : {200, 1000}) {
    ExpectToStopSoonAfter(std::chrono::milliseconds(after_ms), solver(), many_outputs);
  }
}

TEST_P(GraphSolvers, StopsSoonWhenItIsTold) {
  const absl::StatusOr<Graph> graph =
      testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  StopToken stop;
  SolveOptions options;
  options.stop = &stop;
  double last = 0.0;
  options.progress = [&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1.0);
    last = share;
    if (share > 0.1) stop.RequestStop();
  };
  const absl::Status stopped = solver().SolveFrontier(*graph, options).status();
  // Chain solvers may be through before they say anything.
  if (!stopped.ok() || PlansGraphsAsTheyAre()) {
    EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
    EXPECT_GT(last, 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphSolvers, ::testing::ValuesIn(AllGraphSolvers()),
                         [](const auto& tested) { return tested.param->info().name; });

}  // namespace
}  // namespace stowage

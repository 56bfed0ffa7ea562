// What every solver of graphs within a budget must do: its frontiers, and how it stops.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/graph/graph_solver_cases.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/stop_looks.h"

namespace stowage::testing {
namespace {

class GraphFrontiers : public GraphSolverTest {};

TEST_P(GraphFrontiers, FrontierAndPlansAgree) {
  std::mt19937_64 rng(31);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = DrawGraph(i, &rng);
    const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(graph, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_EQ(frontier->points().back().makespan, graph.ideal_time());
    EXPECT_EQ(frontier->points().front().peak, *solver().LeastBudget(graph, {}));
    EXPECT_LE(frontier->info().least_budget, frontier->points().front().peak);
    for (const Frontier::Point& point : frontier->points()) {
      const Simulation simulation = *Evaluator(graph).Run(frontier->PlanAt(point.peak).schedule);
      EXPECT_EQ(simulation.peak, point.peak);
      EXPECT_EQ(simulation.makespan, point.makespan);
      const absl::StatusOr<Plan> plan = solver().Solve(graph, point.peak, {});
      EXPECT_EQ(Evaluator(graph).Run(plan->schedule)->makespan, point.makespan);
    }
  }
}

TEST_P(GraphFrontiers, EqualInputGivesEqualFrontiersWhateverTheThreads) {
  const absl::StatusOr<Graph> graph = ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/alexnet.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  SolveOptions options;
  const std::string first = solver().SolveFrontier(*graph, options)->Encode();
  EXPECT_EQ(solver().SolveFrontier(*graph, options)->Encode(), first);
  options.threads = 2;
  EXPECT_EQ(solver().SolveFrontier(*graph, options)->Encode(), first);
}

TEST_P(GraphFrontiers, ScalingSizesScalesStoreAllAndTheProvenNeed) {
  std::mt19937_64 rng(34);
  for (int i = 0; i < 30; ++i) {
    const Graph graph = DrawGraph(2 * i, &rng);
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

TEST_P(GraphFrontiers, EndsAtTheLookOfADeadline) {
  const absl::StatusOr<Graph> graph =
      ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Graph many_outputs = ManyOutputs(5000);
  for (const Graph* each : {&*graph, &many_outputs}) {
    ExpectToEndAtTheLook([&](const StopToken& stop) {
      SolveOptions options;
      options.stop = &stop;
      const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(*each, options);
      // An anytime solver has points then.
      const bool cut = frontier.ok() && !frontier->info().search_complete;
      return cut ? absl::DeadlineExceededError("") : frontier.status();
    });
  }
}

TEST_P(GraphFrontiers, StopsSoonWhenItIsTold) {
  const absl::StatusOr<Graph> graph =
      ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
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
  // Others may be through before they say anything.
  if (!stopped.ok() || Searches()) {
    EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
    EXPECT_GT(last, 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphFrontiers, ::testing::ValuesIn(GraphSolverCases()),
                         GraphSolverCaseName);

}  // namespace
}  // namespace stowage::testing

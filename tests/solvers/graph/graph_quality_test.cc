// How good the search's frontiers are: against every schedule there is on small graphs, and against
// what they must never be slower than.
#include <gtest/gtest.h>

#include <random>

#include "solvers/chain/solvers.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/graph/internal/exact_orders.h"
#include "solvers/graph/linearize.h"
#include "solvers/graph/internal/order_search.h"
#include "solvers/graph/internal/proposals.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

Graph Draw(int vertices, int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = vertices;
  options.density = 0.2 + 0.1 * (i % 4);
  return testing::RandomGraph(options, rng);
}

// A graph of tests/data, with times: they have none.
Graph Timed(const std::string& file) {
  const absl::StatusOr<Graph> read =
      testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/" + file);
  EXPECT_TRUE(read.ok()) << read.status();
  GraphSpec spec;
  for (int p = 0; p < read->size(); ++p) {
    Vertex v = read->vertex(p);
    int64_t bytes = v.output.value();
    for (GraphInput& input : v.inputs) {
      const Vertex& from = read->vertex(static_cast<int>(input.vertex));
      bytes += from.output.value();
      input.vertex = from.id;
    }
    const int64_t rate = v.op_kind == "Conv2d" || v.op_kind == "Linear" ? 125 : 500;
    v.forward_time = Nanos(bytes / rate + 2000);
    v.backward_time = Nanos(2 * v.forward_time.value());
    spec.vertices.push_back(std::move(v));
  }
  return *Graph::Create(spec);
}

// Of the search itself, which the solver helps out on graphs as small as these.
TEST(GraphQuality, SmallGraphsAreMostlyExact) {
  std::mt19937_64 rng(7);
  int points = 0, equal = 0, found = 0;
  double gaps = 0.0;
  for (int i = 0; i < 120; ++i) {
    const Graph graph = Draw(4 + i % 9, i, &rng);
    const OpGraph ops(graph);
    OrderSearch search(ops, {});
    search.Offer(StoreAllOrder(ops));
    ASSERT_TRUE(search.Improve(1000000 * ops.size(), nullptr).ok());
    const ExactOrders exact =
        *SearchAllOrders(ops, search.pool(), PeakLowerBound(graph).value(), 1 << 18, nullptr);
    ASSERT_TRUE(exact.complete);
    OrderPool best = search.pool();
    OrderEvaluator evaluator(ops);
    for (const ComputeOrder& order : exact.orders) best.Offer(evaluator.Evaluate(order, 0), order);
    for (const OrderPool::Entry& point : best.entries()) {
      ++points;
      const size_t within = search.pool().Within(point.peak);
      if (within == 0) continue;
      ++found;
      const int64_t time = search.pool().entries()[within - 1].forward_time;
      equal += time == point.forward_time ? 1 : 0;
      gaps += static_cast<double>(time - point.forward_time) /
              static_cast<double>(graph.ideal_time().value());
    }
  }
  EXPECT_GE(equal, points * 70 / 100) << equal << " of " << points;
  EXPECT_GE(found, points * 90 / 100) << found << " of " << points;
  EXPECT_LE(gaps / found, 0.01) << found;
}

void ExpectNeverSlowerThanTheChainSolvers(const Graph& graph, const Frontier& frontier) {
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  ASSERT_TRUE(linear.ok()) << linear.status();
  const Frontier chain = *NonPersistentSolver().SolveFrontier(linear->chain, {});
  for (const Frontier::Point& point : chain.points()) {
    const Frontier::Point* ours = frontier.At(point.peak);
    ASSERT_NE(ours, nullptr);
    // The times of a^0 are in no stage.
    EXPECT_LE(ours->makespan - graph.ideal_time(), point.makespan - linear->chain.ideal_time());
  }
}

void ExpectNeverSlowerThanItsCheckpoints(const Graph& graph, const Frontier& frontier) {
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(graph);
  ASSERT_TRUE(problem.ok()) << problem.status();
  const CheckpointAnswer answer = *DivisionTreeSolver().Solve(problem->graph, {});
  Segmentation segments;
  ASSERT_TRUE(ValidateCheckpoints(problem->graph, answer.set.checkpoints,
                                  SegmentRule::kTwoEndPoints, &segments)
                  .ok());
  std::vector<int> segment_of(static_cast<size_t>(graph.size()), Segmentation::kCheckpoint);
  for (size_t v = 0; v < problem->members.size(); ++v) {
    for (const int p : problem->members[v]) {
      segment_of[static_cast<size_t>(p)] = segments.segment_of[v];
    }
  }
  const Schedule schedule =
      WithDiscards(graph, ToSchedule(graph, CheckpointOrder(OpGraph(graph), segment_of)));
  const absl::StatusOr<Simulation> simulation = Evaluator(graph).Run(schedule);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  ASSERT_NE(frontier.At(simulation->peak), nullptr);
  EXPECT_LE(frontier.At(simulation->peak)->makespan, simulation->makespan);
}

TEST(GraphQuality, NeverSlowerThanChainSolversAndCheckpoints) {
  std::mt19937_64 rng(9);
  for (int i = 0; i < 40; ++i) {
    const Graph graph = Draw(6 + i % 20, i, &rng);
    const Frontier frontier = *OrderSearchSolver().SolveFrontier(graph, {});
    ExpectNeverSlowerThanTheChainSolvers(graph, frontier);
    ExpectNeverSlowerThanItsCheckpoints(graph, frontier);
  }
}

// Ops that hand their input on as it is stand among the many readers of what it was.
TEST(GraphQuality, PlansCellNetworks) {
  NetworkOptions network;
  network.name = "darts_v2";
  network.batch = 8;
  const Graph graph = *GraphOf(*MakeNetwork(network), ModelledV100());
  const Bytes all = Evaluator(graph).Run(StoreAllSchedule(graph))->peak;
  const Bytes budget(all.value() * 15 / 100);  // less than checkpoints need
  StopToken stop;
  SolveOptions options;
  options.stop = &stop;
  Schedule found;
  options.incumbent = [&](const Schedule& schedule) {
    found = schedule;
    stop.RequestStop();
  };
  const absl::StatusOr<Plan> plan = OrderSearchSolver().Solve(graph, budget, options);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kCancelled);
  const absl::StatusOr<Simulation> simulation = Evaluator(graph).Run(found);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  EXPECT_LE(simulation->peak, budget);
  EXPECT_LE(simulation->makespan.value(), graph.ideal_time().value() * 2);
  EXPECT_TRUE(GradientSums(graph).KeptBy(found));
}

// What is recomputed takes about half the time that the chain solver's schedules take for it.
TEST(GraphQuality, HalvesTheOverheadOfResNet) {
  const Graph graph = Timed("resnet50.graph");
  const Frontier frontier = *OrderSearchSolver().SolveFrontier(graph, {});
  ExpectNeverSlowerThanTheChainSolvers(graph, frontier);
  ExpectNeverSlowerThanItsCheckpoints(graph, frontier);
  const Frontier chain = *NonPersistentSolver().SolveFrontier(Linearize(graph)->chain, {});
  const double all = static_cast<double>(frontier.points().back().peak.value());
  const double ideal = static_cast<double>(graph.ideal_time().value());
  for (const double share : {0.3, 0.5, 0.7}) {
    const Bytes budget(static_cast<int64_t>(share * all));
    const double ours = static_cast<double>(frontier.At(budget)->makespan.value()) / ideal;
    const double theirs = static_cast<double>(chain.At(budget)->makespan.value()) / ideal;
    EXPECT_LE(ours - 1.0, 0.7 * (theirs - 1.0)) << share;
  }
  EXPECT_LE(frontier.points().front().peak.value(), chain.points().front().peak.value() * 3 / 4);
}

}  // namespace
}  // namespace stowage

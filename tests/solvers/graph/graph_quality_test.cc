// How good the search's frontiers are: against every schedule there is on small graphs, and against
// what they must never be slower than.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/graph/internal/order_search.h"
#include "solvers/graph/internal/proposals.h"
#include "solvers/graph/linearize.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
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
TEST(GraphQuality, SearchesLieBetweenEveryOrderAndPlainTraining) {
  std::mt19937_64 rng(7);
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
    const int64_t all = evaluator.Evaluate(StoreAllOrder(ops), 0).peak;
    for (const OrderPool::Entry& found : search.pool().entries()) {
      const size_t within = best.Within(found.peak);
      ASSERT_GT(within, 0u);
      EXPECT_GE(found.forward_time, best.entries()[within - 1].forward_time);
      EXPECT_LE(found.peak, all) << "more memory than plain training gains nothing";
    }
  }
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
  EXPECT_TRUE(GradientSums(graph).KeptBy(found));
}

TEST(GraphQuality, NeverSlowerThanChainSolversAndCheckpointsOnResNet) {
  const Graph graph = Timed("resnet50.graph");
  const Frontier frontier = *OrderSearchSolver().SolveFrontier(graph, {});
  ExpectNeverSlowerThanTheChainSolvers(graph, frontier);
  ExpectNeverSlowerThanItsCheckpoints(graph, frontier);
  const Frontier chain = *NonPersistentSolver().SolveFrontier(Linearize(graph)->chain, {});
  EXPECT_LE(frontier.points().front().peak, chain.points().front().peak);
}

// Of more vertices than the moves are for: prices alone choose. A compact frontier has few points beside the long
// schedules of the least budgets.
TEST(GraphQuality, PlansADecoderOfThreeHundredLayersCloseToItsBound) {
  DecoderOptions options;
  options.layers = 300;
  const absl::StatusOr<Graph> graph = GraphOf(*MakeDecoder(options), ModelledV100());
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_GT(graph->size(), 5000);
  const Instance instance = Instance(*graph).Remembering();
  SolveOptions solve;
  solve.threads = 2;
  const absl::StatusOr<Frontier> frontier = OrderSearchSolver().SolveFrontier(instance, solve);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  const double peak = static_cast<double>(instance.store_all()->peak.value());
  for (const double share : {0.3, 0.5, 0.7, 0.9}) {
    const Bytes budget(static_cast<int64_t>(peak * share));
    const Frontier::Point* const point = frontier->At(budget);
    ASSERT_NE(point, nullptr) << share;
    EXPECT_LE(static_cast<double>(point->makespan.value()),
              1.02 * static_cast<double>(StrongestMakespanLowerBound(instance, budget).value()))
        << share;
  }
}

// A few steps of prices are most of what the whole search gains, where memory is half of plain training's and more.
TEST(GraphQuality, ASketchIsCloseToTheBound) {
  for (const char* const name : {"inception_v3", "densenet121", "resnet50"}) {
    NetworkOptions options;
    options.name = name;
    options.batch = 32;
    const absl::StatusOr<Graph> graph = GraphOf(*MakeNetwork(options), ModelledV100());
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::StatusOr<FoldedGraph> folded = FoldAliases(*graph);
    ASSERT_TRUE(folded.ok()) << folded.status();
    const OpGraph ops(folded->graph, GradientSums(*graph, folded->members));
    OrderSearch search(ops, SolveContext());
    search.Offer(StoreAllOrder(ops));
    const auto plain = search.pool().entries().back();
    constexpr int64_t kWork = 100000000;
    std::vector<int64_t> told;
    const absl::Status sketched = search.Sketch(PeakLowerBound(folded->graph).value(), kWork,
                                                [&told](double, int64_t budget) {
                                                  told.push_back(budget);
                                                  return absl::OkStatus();
                                                });
    ASSERT_TRUE(sketched.ok()) << sketched;
    EXPECT_EQ(told.size(), 16u);
    const Instance instance(*graph);
    for (const int64_t share : {50, 60, 70, 80, 90}) {
      const int64_t budget = plain.peak / 100 * share;
      const size_t within = search.pool().Within(budget);
      ASSERT_GT(within, 0u) << name << " at " << share;
      const Nanos makespan =
          instance.ideal_time() +
          Nanos(search.pool().entries()[within - 1].forward_time - plain.forward_time);
      EXPECT_LE(static_cast<double>(makespan.value()),
                1.05 * static_cast<double>(MakespanLowerBound(instance, Bytes(budget)).value()))
          << name << " at " << share;
    }
  }
}

}  // namespace
}  // namespace stowage

#include "solvers/graph/internal/order_search.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "solvers/graph/fold.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "tests/solvers/graph_search.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

constexpr int64_t kNoTarget = INT64_MAX;
constexpr int64_t kLabels = 1 << 18;

using Points = std::map<int64_t, int64_t>;  // peak -> makespan

Graph Draw(int vertices, int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = vertices;
  options.density = 0.1 + 0.1 * (i % 5);
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  options.with_flags = i % 2 == 0;
  options.with_overheads = i % 7 != 0;
  options.with_stops = i % 4 > 1;
  return testing::RandomGraph(options, rng);
}

OrderPool StoreAllPool(const OpGraph& ops) {
  OrderPool pool(int64_t{1} << 40);
  const ComputeOrder order = StoreAllOrder(ops);
  pool.Offer(OrderEvaluator(ops).Evaluate(order, kNoTarget), order);
  return pool;
}

// What the orders take under the evaluator, with store-all.
Points Replayed(const Graph& graph, const ExactOrders& exact) {
  FrontierBuilder builder(graph);
  EXPECT_TRUE(
      builder.Add(WithDiscards(graph, ToSchedule(graph, StoreAllOrder(OpGraph(graph))))).ok());
  for (const ComputeOrder& order : exact.orders) {
    const absl::Status status = builder.Add(WithDiscards(graph, ToSchedule(graph, order)));
    EXPECT_TRUE(status.ok()) << status << testing::Describe(graph);
  }
  const Frontier frontier = builder.Build({});
  Points points;
  for (const Frontier::Point& p : frontier.points()) points[p.peak.value()] = p.makespan.value();
  return points;
}

void ExpectEveryPoint(const Graph& graph) {
  const OpGraph ops(graph);
  const ExactOrders exact =
      *SearchAllOrders(ops, StoreAllPool(ops), PeakLowerBound(graph).value(), kLabels, nullptr);
  EXPECT_TRUE(exact.complete);
  EXPECT_EQ(Replayed(graph, exact), testing::GraphScheduleFrontier(graph, testing::SumOrder::kKept))
      << testing::Describe(graph);
}

TEST(ExactOrders, AreWhatAnotherExhaustiveSearchFinds) {
  std::mt19937_64 rng(50);
  for (int i = 0; i < 3000; ++i) ExpectEveryPoint(Draw(1 + i % 5, i, &rng));
  for (int i = 0; i < 60; ++i) ExpectEveryPoint(Draw(6, i, &rng));
}

// The output may be made anew while extras of an earlier forward stay, where a forward that saves
// extras has the larger overhead.
TEST(ExactOrders, LeaveExtrasWhereTheyAre) {
  GraphSpec spec;
  spec.vertices.resize(3);
  const int64_t output[] = {2, 4, 5}, gradient[] = {3, 5, 1}, extra[] = {0, 1, 2};
  const int64_t saving[] = {2, 5, 0}, forward[] = {1, 3, 1}, backward[] = {1, 4, 3};
  for (size_t v = 0; v < 3; ++v) {
    Vertex& vertex = spec.vertices[v];
    vertex.id = vertex.program_order = static_cast<int64_t>(v);
    vertex.output = Bytes(output[v]);
    vertex.output_gradient = Bytes(gradient[v]);
    vertex.extra_saved = Bytes(extra[v]);
    vertex.forward_saving_overhead = Bytes(saving[v]);
    vertex.forward_overhead = Bytes(forward[v]);
    vertex.backward_overhead = Bytes(backward[v]);
    vertex.backward_needs_output = v < 2;
    vertex.forward_time = Nanos(2);
    if (v > 0) vertex.inputs.push_back({0, v == 1});
  }
  const Graph graph = *Graph::Create(spec);
  const OpGraph ops(graph);
  const ExactOrders exact =
      *SearchAllOrders(ops, StoreAllPool(ops), PeakLowerBound(graph).value(), kLabels, nullptr);
  EXPECT_EQ(Replayed(graph, exact),
            testing::GraphScheduleFrontier(graph, testing::SumOrder::kKept));
  bool stays = false;
  for (const ComputeOrder& order : exact.orders) {
    for (const Compute& compute : order) stays = stays || compute.extras_stay;
  }
  EXPECT_TRUE(stays);
}

TEST(ExactOrders, StopBeforeTooManyLabels) {
  std::mt19937_64 rng(51);
  const Graph graph = Draw(12, 1, &rng);
  const OpGraph ops(graph);
  const OrderPool pool = StoreAllPool(ops);
  const int64_t least = PeakLowerBound(graph).value();
  const ExactOrders all = *SearchAllOrders(ops, pool, least, kLabels, nullptr);
  ASSERT_TRUE(all.complete);
  const ExactOrders some = *SearchAllOrders(ops, pool, least, all.labels / 2, nullptr);
  EXPECT_FALSE(some.complete);
  EXPECT_LE(some.labels, all.labels / 2);
  // The faster points come first.
  ASSERT_LE(some.orders.size(), all.orders.size());
  for (size_t i = 0; i < some.orders.size(); ++i) EXPECT_EQ(some.orders[i], all.orders[i]);
}

TEST(ExactOrders, StopWhenTold) {
  std::mt19937_64 rng(52);
  const OpGraph ops(Draw(12, 1, &rng));
  StopToken stop;
  stop.RequestStop();
  EXPECT_EQ(SearchAllOrders(ops, StoreAllPool(ops), 0, kLabels, &stop).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(OrderSearchSolver, IsExactOnSmallGraphsWithoutAliases) {
  std::mt19937_64 rng(53);
  for (int i = 0; i < 200; ++i) {
    const Graph graph = Draw(2 + i % 4, i, &rng);
    const Frontier frontier = *OrderSearchSolver().SolveFrontier(graph, {});
    EXPECT_TRUE(frontier.info().exact);
    EXPECT_EQ(frontier.info().schedule_class, OrderSearchSolver().info().schedule_class);
    Points points;
    for (const Frontier::Point& p : frontier.points()) points[p.peak.value()] = p.makespan.value();
    EXPECT_EQ(points, testing::GraphScheduleFrontier(graph, testing::SumOrder::kKept))
        << testing::Describe(graph);
    const Bytes least = frontier.points().front().peak;
    EXPECT_EQ(frontier.info().least_budget, least);
    const Plan fits = *OrderSearchSolver().Solve(graph, least, {});
    EXPECT_EQ(fits.status, PlanStatus::kFound);
    EXPECT_TRUE(fits.bounds.proven_optimal);
    const Plan below = *OrderSearchSolver().Solve(graph, least - Bytes(1), {});
    EXPECT_EQ(below.status, PlanStatus::kProvenInfeasible);
  }
}

TEST(OrderSearchSolver, ClaimsNothingWhereThereAreAliases) {
  std::mt19937_64 rng(54);
  int folded = 0;
  for (int i = 0; i < 60; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 3 + i % 6;
    options.with_aliases = true;
    const Graph graph = testing::RandomGraph(options, &rng);
    const bool same = FoldAliases(graph)->graph.size() == graph.size();
    folded += same ? 0 : 1;
    EXPECT_EQ(OrderSearchSolver().SolveFrontier(graph, {})->info().exact, same);
  }
  EXPECT_GT(folded, 20);
}

}  // namespace
}  // namespace stowage

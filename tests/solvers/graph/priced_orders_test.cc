#include "solvers/graph/internal/priced_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "solvers/graph/internal/compute_order.h"
#include "solvers/graph/internal/order_search.h"
#include "solvers/graph/solvers.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "tests/solvers/graph_ops.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

struct DrawnArc {
  int from, to;
  int64_t capacity;
};

int64_t CutOf(const std::vector<DrawnArc>& arcs, unsigned source_side) {
  int64_t cut = 0;
  for (const DrawnArc& arc : arcs) {
    if ((source_side >> arc.from & 1) != 0 && (source_side >> arc.to & 1) == 0) cut += arc.capacity;
  }
  return cut;
}

// With all capacities anew, again and again.
TEST(RepeatedCut, IsTheSmallestOfAllMinimumCuts) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 200; ++i) {
    const int nodes = 2 + i % 7;
    RepeatedCut cut(nodes);
    std::vector<DrawnArc> arcs;
    std::vector<int> indices;
    for (int a = 0; a < 3 * nodes; ++a) {
      const int from = static_cast<int>(rng() % static_cast<uint64_t>(nodes));
      const int to = static_cast<int>(rng() % static_cast<uint64_t>(nodes));
      if (from == to) continue;
      arcs.push_back({from, to, 0});
      indices.push_back(cut.AddArc(from, to));
    }
    for (int draw = 0; draw < 5; ++draw) {
      for (size_t a = 0; a < arcs.size(); ++a) {
        arcs[a].capacity = static_cast<int64_t>(rng() % 6);
        cut.Set(indices[a], arcs[a].capacity);
      }
      StopPoll poll(nullptr);
      ASSERT_TRUE(cut.Solve(&poll).ok());
      unsigned found = 0, least_nodes = 0;
      int64_t least = INT64_MAX;
      for (unsigned side = 0; side < 1U << nodes; ++side) {
        if ((side & 3) != 1) continue;  // the source, and not the sink
        const int64_t of_side = CutOf(arcs, side);
        if (of_side < least) {
          least = of_side;
          least_nodes = side;
        } else if (of_side == least) {
          least_nodes &= side;  // minimum cuts have a smallest one: what all have in common
        }
      }
      for (int node = 0; node < nodes; ++node) {
        if (cut.OnSourceSide(node)) found |= 1U << node;
      }
      EXPECT_EQ(found, least_nodes);
      EXPECT_EQ(CutOf(arcs, found), least);
    }
  }
}

void ExpectValid(const Graph& graph, const OpGraph& ops, const ComputeOrder& order) {
  EXPECT_TRUE(KeepsGradientSums(ops, order));
  const absl::StatusOr<Simulation> simulation =
      Evaluator(graph).Run(WithDiscards(graph, ToSchedule(graph, order)));
  EXPECT_TRUE(simulation.ok()) << simulation.status() << "\n" << testing::Describe(graph);
  std::vector<int> runs(static_cast<size_t>(graph.size()), 0);
  for (const Compute& c : order) {
    if (!c.backward) ++runs[static_cast<size_t>(c.vertex)];
  }
  for (int v = 0; v < graph.size(); ++v) {
    EXPECT_GE(runs[static_cast<size_t>(v)], 1);
    if (ops.costs(v).recomputable) continue;
    EXPECT_EQ(runs[static_cast<size_t>(v)], 1);
  }
}

TEST(PricedOrders, AreSchedulesThatNoneOfAllOrdersIsSlowerThan) {
  std::mt19937_64 rng(2);
  int repeating = 0, optimal = 0;
  for (int i = 0; i < 120; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + i % 7;
    options.density = 0.1 + 0.1 * (i % 5);
    options.sources = i % 3 == 0 ? 0.2 : 0.0;
    options.with_flags = i % 2 == 0;
    options.with_stops = i % 5 > 2;
    const Graph graph = testing::RandomGraph(options, &rng);
    const OpGraph ops(graph);
    OrderEvaluator evaluator(ops);
    OrderPool pool(int64_t{1} << 30);
    const OrderCost plain = evaluator.Evaluate(StoreAllOrder(ops), 0);
    pool.Offer(plain, StoreAllOrder(ops));
    const ExactOrders exact =
        *SearchAllOrders(ops, pool, PeakLowerBound(graph).value(), 1 << 18, nullptr);
    ASSERT_TRUE(exact.complete);
    OrderPool best = pool;
    for (const ComputeOrder& order : exact.orders) best.Offer(evaluator.Evaluate(order, 0), order);
    PricedOrders priced(ops, nullptr);
    for (int64_t target = plain.peak; target >= PeakLowerBound(graph).value(); --target) {
      for (int step = 0; step < 6; ++step) {
        ComputeOrder order;
        const absl::StatusOr<OrderCost> told =
            priced.Next(target, 2 * plain.forward_time + 1, &order);
        ASSERT_TRUE(told.ok());
        ExpectValid(graph, ops, order);
        const OrderCost cost = evaluator.Evaluate(order, 0);
        EXPECT_EQ(told->peak, cost.peak);
        EXPECT_EQ(told->forward_time, cost.forward_time);
        OrderProfile profile;
        evaluator.EvaluateWithProfile(order, 0, &profile);
        EXPECT_EQ(priced.WithoutDead(order), profile.order);
        const size_t within = best.Within(cost.peak);
        ASSERT_GT(within, 0U);
        EXPECT_GE(cost.forward_time, best.entries()[within - 1].forward_time);
        if (cost.forward_time == plain.forward_time) continue;
        ++repeating;
        optimal += cost.forward_time == best.entries()[within - 1].forward_time ? 1 : 0;
      }
    }
  }
  EXPECT_GT(repeating, 200);
  EXPECT_GT(optimal, 50);
}

TEST(PricedOrders, AreOfGraphsInWhichNothingCosts) {
  const Graph graph = testing::MakeGraph({testing::MakeOp(0, {}), testing::MakeOp(1, {{0, true}})});
  const OpGraph ops(graph);
  PricedOrders priced(ops, nullptr);
  ComputeOrder order;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(priced.Next(0, 0, &order).ok());
    EXPECT_EQ(order, StoreAllOrder(ops));
  }
}

// Two tensors wait while a third one is made, and there is memory for one of them: the one that takes less time runs again.
TEST(PricedOrders, RepeatWhatCostsLeast) {
  std::vector<Vertex> ops = {testing::MakeOp(0, {}), testing::MakeOp(1, {{0, false}}, 100),
                             testing::MakeOp(2, {{0, false}}, 100),
                             testing::MakeOp(3, {{1, true}, {2, true}}),
                             testing::MakeOp(4, {{3, false}}, 100)};
  for (Vertex& op : ops) op.output_gradient = Bytes(0);
  ops[1].forward_time = Nanos(5);
  ops[2].forward_time = Nanos(50);
  const Graph graph = testing::MakeGraph(std::move(ops));
  const OpGraph op_graph(graph);
  OrderEvaluator evaluator(op_graph);
  const OrderCost plain = evaluator.Evaluate(StoreAllOrder(op_graph), 0);
  ASSERT_EQ(plain.peak, 300);
  PricedOrders priced(op_graph, nullptr);
  OrderPool pool(int64_t{1} << 20);
  ComputeOrder order;
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(priced.Next(250, 2 * plain.forward_time, &order).ok());
    pool.Offer(evaluator.Evaluate(order, 0), order);
  }
  const size_t within = pool.Within(250);
  ASSERT_GT(within, 0U);
  EXPECT_EQ(pool.entries()[within - 1].forward_time, plain.forward_time + 5);
}

TEST(PricedOrders, StopWhenToldTo) {
  const OpGraph ops(
      testing::MakeGraph({testing::MakeOp(0, {}), testing::MakeOp(1, {{0, true}}, 8)}));
  StopToken stop;
  stop.RequestStop();
  PricedOrders priced(ops, &stop);
  ComputeOrder order;
  EXPECT_EQ(priced.Next(0, 1, &order).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stowage

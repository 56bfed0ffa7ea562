#include "solvers/graph/internal/order_search.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/graph/internal/compute_order.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"

namespace stowage {
namespace {

constexpr int64_t kWork = 100000000;

// A compute DAG. Every node reads the one with half its number: half of them are read by none. None has bytes, so that
// there is nothing to be gained by repeating any.
Graph ManyOutputs(int64_t nodes) {
  GraphSpec spec;
  spec.has_backwards = false;
  for (int64_t id = 0; id < nodes; ++id) {
    Vertex vertex;
    vertex.id = vertex.program_order = id;
    if (id > 0) vertex.inputs.push_back({id / 2, false});
    vertex.forward_time = Nanos(1);
    spec.vertices.push_back(std::move(vertex));
  }
  return Graph::Create(std::move(spec)).value();
}

// There are more than twice as many windows as vertices, and for each target all are looked at. Were
// each of them to cost a look at the whole order, this would take minutes: ctest does not wait.
TEST(OrderSearch, WindowsWithoutRepeatsCostNothing) {
  const OpGraph ops(ManyOutputs(20000));
  OrderSearch search(ops, SolveOptions());
  const ComputeOrder store_all = StoreAllOrder(ops);
  search.Offer(store_all);
  // Far less than any order takes, so that none is close to what is proven, and all are varied.
  const auto least_repeated = [&ops](int64_t) { return -ops.ideal_time() / 2; };
  ASSERT_TRUE(search.Improve(10 * kWork, nullptr, least_repeated).ok());
  ASSERT_EQ(search.pool().entries().size(), 1U);
  EXPECT_EQ(search.pool().entries()[0].order.size(), store_all.size());
}

// A compute DAG of as many forwards, a loss, and backwards that read their forward and the one after it; sizes and times far
// from each other.
Graph UnevenStep(int64_t forwards) {
  GraphSpec spec;
  spec.has_backwards = false;
  for (int64_t id = 0; id <= 2 * forwards; ++id) {
    Vertex vertex;
    vertex.id = vertex.program_order = id;
    if (id > 0) vertex.inputs.push_back({id - 1, false});
    if (id > forwards) vertex.inputs.push_back({2 * forwards - id, false});
    vertex.output = Bytes(50 + id * 7919 % 1000);
    vertex.forward_time = Nanos(10 + id * 104729 % 97);
    spec.vertices.push_back(std::move(vertex));
  }
  return Graph::Create(std::move(spec)).value();
}

// Budgets lie apart. An order that was found for one of them may do without one of its repeats before the next one.
TEST(OrderSearch, NoRepeatOfAnOrderCanBeLeftOutForNothing) {
  const OpGraph ops(UnevenStep(20));
  OrderSearch search(ops, SolveOptions());
  search.Offer(StoreAllOrder(ops));
  ASSERT_TRUE(search.Improve(kWork, nullptr).ok());
  EXPECT_GT(search.pool().entries().size(), 5U);
  OrderEvaluator evaluator(ops);
  for (const OrderPool::Entry& entry : search.pool().entries()) {
    std::vector<bool> ran(41, false);
    for (size_t i = 0; i < entry.order.size(); ++i) {
      if (entry.order[i].backward) continue;
      const auto vertex = static_cast<size_t>(entry.order[i].vertex);
      ComputeOrder without = entry.order;
      without.erase(without.begin() + static_cast<ptrdiff_t>(i));
      if (ran[vertex]) {
        EXPECT_FALSE(search.pool().Beats(evaluator.Evaluate(without, 0)))
            << entry.peak << " " << vertex;
      }
      ran[vertex] = true;
    }
  }
}

// Prices are for graphs with backwards. A compute DAG has the moves where such a graph has prices alone.
TEST(OrderSearch, ImprovesComputeDagsOfThousandsOfNodes) {
  const OpGraph ops(UnevenStep(3000));
  ASSERT_GT(ops.size(), 5000);
  OrderSearch search(ops, SolveOptions());
  search.Offer(StoreAllOrder(ops));
  const int64_t plain = search.pool().entries().back().peak;
  constexpr int64_t kReplays = 400;
  ASSERT_TRUE(search.Improve(kReplays * ops.size(), nullptr).ok());
  EXPECT_GT(search.pool().entries().size(), 1U);
  EXPECT_LT(search.pool().entries().front().peak, plain);
}

}  // namespace
}  // namespace stowage

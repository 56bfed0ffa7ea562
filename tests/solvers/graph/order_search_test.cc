#include "solvers/graph/internal/order_search.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/graph/internal/compute_order.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "tests/solvers/graph_ops.h"

namespace stowage {
namespace {

constexpr int64_t kWork = 100000000;

// Every vertex reads the one with half its number: half of them are outputs. None has bytes, so that
// there is nothing to be gained by repeating any.
Graph ManyOutputs(int64_t vertices) {
  std::vector<Vertex> ops = {testing::MakeOp(0, {}, 0)};
  for (int64_t id = 1; id < vertices; ++id) {
    ops.push_back(testing::MakeOp(id, {{id / 2, true}}, 0));
  }
  ops[1].inputs[0].vertex = 0;
  return testing::MakeGraph(std::move(ops));
}

// There are more than twice as many windows as vertices, and for each target all are looked at. Were
// each of them to cost a look at the whole order, this would take minutes: ctest does not wait.
TEST(OrderSearch, WindowsWithoutRepeatsCostNothing) {
  const OpGraph ops(ManyOutputs(20000));
  OrderSearch search(ops, SolveOptions());
  const ComputeOrder store_all = StoreAllOrder(ops);
  search.Offer(store_all);
  ASSERT_TRUE(search.Improve(kWork, nullptr).ok());
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

}  // namespace
}  // namespace stowage

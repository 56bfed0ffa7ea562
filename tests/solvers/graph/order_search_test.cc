#include "solvers/graph/internal/order_search.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace stowage

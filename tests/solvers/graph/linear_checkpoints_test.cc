// Graphs that are one path.
#include "solvers/graph/internal/division_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "tests/solvers/graph/brute_force_checkpoints.h"
#include "tests/solvers/graph/small_graphs.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointAnswer;
using stowage::CheckpointGraph;
using stowage::LinearCheckpoints;
using stowage::LinearCheckpointSolver;
using stowage::LinearStop;
using stowage::testing::EdgeList;
using stowage::testing::GraphOf;
using stowage::testing::LeastObjectiveOfTwoEndPoints;
using stowage::testing::RandomBytes;
using stowage::testing::SpecOf;

CheckpointGraph Path(const std::vector<int64_t>& bytes) {
  const int vertices = static_cast<int>(bytes.size());
  EdgeList edges;
  for (int v = 1; v < vertices; ++v) edges.push_back({v - 1, v});
  return GraphOf(SpecOf(vertices, edges, bytes));
}

Bytes Least(const CheckpointGraph& graph) {
  const CheckpointAnswer answer = *LinearCheckpointSolver().Solve(graph, {});
  EXPECT_TRUE(answer.optimal);
  return answer.set.objective();
}

TEST(LinearCheckpoints, KeepsTheLeastUnderALimit) {
  // Sizes 9 2 5 4 1 9 with 3 between the third and the fourth.
  const std::vector<LinearStop> stops = {{9, 0, false},  {2, 9, false},  {5, 11, false},
                                         {4, 19, false}, {1, 23, false}, {9, 24, false}};
  LinearCheckpoints linear;
  const auto kept = [&](int64_t limit) {
    linear.Solve(stops, limit);
    std::vector<size_t> positions;
    for (size_t stop = linear.previous(5); stop != 0; stop = linear.previous(stop)) {
      positions.insert(positions.begin(), stop);
    }
    EXPECT_EQ(linear.kept().count, static_cast<int>(positions.size()));
    return positions;
  };
  EXPECT_THAT(kept(15), testing::IsEmpty());
  EXPECT_THAT(kept(14), testing::ElementsAre(4));  // 14 before it, nothing after
  EXPECT_THAT(kept(13), testing::ElementsAre(1));
  EXPECT_EQ(linear.kept().bytes, 2);
  EXPECT_THAT(kept(12), testing::ElementsAre(1, 4));
  EXPECT_THAT(kept(3), testing::ElementsAre(2, 3));
}

TEST(LinearSolver, IsOptimalOnRandomPaths) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const int vertices = 1 + round % 15;
    const CheckpointGraph graph = Path(RandomBytes(vertices, 0, 1 + round / 4, &random));
    ASSERT_EQ(Least(graph).value(), LeastObjectiveOfTwoEndPoints(graph)) << round;
  }
}

// n equal vertices between two of no size: k checkpoints leave n - k in k + 1 segments, so the cost
// is the least of k + ceil((n - k) / (k + 1)); about 2 sqrt(n).
TEST(LinearSolver, EqualSizesCostAsTheClosedFormSays) {
  for (const int n : {1, 2, 3, 8, 9, 10, 99, 100, 1000, 9999}) {
    std::vector<int64_t> bytes(static_cast<size_t>(n) + 2, 1000);
    bytes.front() = bytes.back() = 0;
    int64_t least = n;
    for (int64_t k = 0; k <= n; ++k) least = std::min(least, k + (n - k + k) / (k + 1));
    EXPECT_EQ(Least(Path(bytes)), Bytes(1000 * least)) << n;
  }
  std::vector<int64_t> bytes(10002, 1);
  bytes.front() = bytes.back() = 0;
  EXPECT_EQ(Least(Path(bytes)), Bytes(2 * 100 - 1));
}

TEST(LinearSolver, LargestSizesDoNotOverflow) {
  const int64_t large = (stowage::kMaxTotal - 1) / 4;
  EXPECT_EQ(Least(Path({large, large, 1, large, large})), Bytes(3 * large + 1));
}

TEST(LinearSolver, RefusesOtherGraphs) {
  const CheckpointGraph graph = GraphOf(SpecOf(3, {{0, 1}, {0, 2}, {1, 2}}, {1, 1, 1}));
  const absl::Status status = LinearCheckpointSolver().Solve(graph, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("vertex 2"));
}

}  // namespace

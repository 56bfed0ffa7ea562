#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/internal/acyclic_quotient_search.h"
#include "tests/solvers/graph/brute_force_acyclic_quotient.h"
#include "tests/solvers/graph/brute_force_checkpoints.h"
#include "tests/solvers/graph/random_dag.h"
#include "tests/solvers/graph/small_graphs.h"
#include "tests/solvers/graph_file.h"

namespace stowage::testing {
namespace {

using ::testing::ElementsAre;

// The optimum of a graph small enough that the solver says so.
int64_t Exact(const CheckpointGraph& graph) {
  const auto answer = AcyclicQuotientSolver().Solve(graph, {});
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return -1;
  EXPECT_TRUE(answer->optimal) << Describe(graph);
  EXPECT_EQ(answer->lower_bound, answer->set.objective());
  return answer->set.objective().value();
}

TEST(AcyclicQuotient, EqualsBruteForceOnAllSmallDags) {
  std::mt19937_64 rng(1);
  int graphs = 0;
  for (int size = 2; size <= 6; ++size) {
    ForEachDag(size, [&](const EdgeList& edges) {
      const CheckpointGraph graph = GraphOf(SpecOf(size, edges, RandomBytes(size, 0, 9, &rng)));
      ++graphs;
      ASSERT_EQ(Exact(graph), BestObjective(graph, SegmentRule::kSeveralEndPoints))
          << Describe(graph);
    });
  }
  EXPECT_GT(graphs, 3000);
}

TEST(AcyclicQuotient, EqualsBruteForceOnRandomDags) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 6000; ++i) {
    RandomDagOptions options;
    options.density = 0.1 + 0.1 * (i % 5);
    options.longest_edge = i % 3 == 0 ? 3 : 100;
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(2 + i % 10, options, &rng);
    ASSERT_EQ(Exact(graph), BestObjective(graph, SegmentRule::kSeveralEndPoints))
        << Describe(graph);
  }
}

TEST(AcyclicQuotient, LongSkipsOverABlock) {
  CheckpointGraphSpec spec;
  for (const int64_t bytes : {5, 2, 8, 8, 8}) spec.bytes.emplace_back(bytes);
  spec.edges = {{0, 1}, {0, 3}, {0, 4}, {1, 2}, {2, 3}, {3, 4}};
  const CheckpointGraph graph = GraphOf(std::move(spec));
  EXPECT_EQ(LeastObjectiveOfTwoEndPoints(graph), 31);
  const auto answer = AcyclicQuotientSolver().Solve(graph, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->set.objective(), Bytes(29));
  EXPECT_THAT(answer->set.checkpoints, ElementsAre(0, 2, 4));
}

// Three segments that each count what one checkpoint needs of the others are joined to one: what
// they count together is more than a sum of bytes may be.
TEST(AcyclicQuotient, SegmentsThatShareANeedJoinedNearTheLimit) {
  constexpr int64_t kThird = (kMaxTotal - 10) / 3;
  CheckpointGraphSpec spec;
  for (const int64_t bytes :
       {int64_t{1}, kThird, kThird, kThird, int64_t{1}, int64_t{1}, int64_t{1}}) {
    spec.bytes.emplace_back(bytes);
  }
  spec.edges = {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4},
                {1, 5}, {2, 5}, {3, 5}, {4, 6}, {5, 6}};
  spec.must_keep = {false, false, false, false, true, false, false};
  spec.needs_inputs = spec.must_keep;
  const CheckpointGraph graph = GraphOf(std::move(spec));
  EXPECT_EQ(Exact(graph), BestObjective(graph, SegmentRule::kSeveralEndPoints));

  CutState state(0);
  StopPoll poll(nullptr);
  const CutOrder order = **MakeCutOrder(graph, &poll);
  for (const CutStep& step : order.steps) {
    const int v = step.vertex;
    if (v == 0 || v == 4 || v == 6) {
      state.Keep(graph, order, step);
    } else {
      ASSERT_TRUE(state.Join(graph, step)) << v;
    }
    EXPECT_GE(state.open_bytes(), 0) << v;
  }
  EXPECT_EQ(state.largest(), 3 * kThird + 1);
}

TEST(AcyclicQuotient, BeatsTwoEndPointsOnMostRandomDags) {
  std::mt19937_64 rng(3);
  int better = 0;
  constexpr int kGraphs = 300;
  for (int i = 0; i < kGraphs; ++i) {
    const CheckpointGraph graph = RandomDag(8 + i % 4, RandomDagOptions(), &rng);
    const int64_t two = LeastObjectiveOfTwoEndPoints(graph);
    const int64_t several = Exact(graph);
    EXPECT_LE(several, two) << Describe(graph);
    if (several < two) ++better;
  }
  EXPECT_GT(better, kGraphs / 2);
}

TEST(AcyclicQuotient, NeverWorseThanAnyOtherSolver) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 10; ++i) {
    RandomDagOptions options;
    options.longest_edge = 2 + 10 * i;  // the last ones have more open at once than is searched
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(150, options, &rng);
    const auto least = AcyclicQuotientSolver().Solve(graph, {});
    ASSERT_TRUE(least.ok());
    for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
      const auto other = solver->Solve(graph, {});
      if (!other.ok()) continue;
      EXPECT_LE(least->set.objective(), other->set.objective()) << solver->info().name;
    }
  }
}

TEST(AcyclicQuotient, OptimaOfNetworks) {
  const std::pair<const char*, int64_t> kOptima[] = {{"alexnet", 1737654272},
                                                     {"vgg19", 1991239680},
                                                     {"resnet50", 1580197888},
                                                     {"densenet121", 733099008}};
  for (const auto& [name, optimum] : kOptima) {
    const auto network =
        ReadGraphFile(absl::StrCat(STOWAGE_SOURCE_DIR, "/tests/data/", name, ".graph"));
    ASSERT_TRUE(network.ok()) << network.status();
    const auto problem = MakeCheckpointProblem(*network);
    ASSERT_TRUE(problem.ok());
    const auto answer = AcyclicQuotientSolver().Solve(problem->graph, {});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->set.objective(), Bytes(optimum)) << name;
    EXPECT_TRUE(answer->optimal) << name;
  }
}

TEST(AcyclicQuotient, CellNetworkFarBelowTwoEndPoints) {
  const auto network = ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
  ASSERT_TRUE(network.ok()) << network.status();
  const auto problem = MakeCheckpointProblem(*network);
  ASSERT_TRUE(problem.ok());
  const auto answer = AcyclicQuotientSolver().Solve(problem->graph, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_LT(answer->set.objective(), Bytes(750000000));  // 1185155584 with two end points
  EXPECT_LE(answer->lower_bound, answer->set.objective());
}

// Where it cannot look at everything: with a part of the work.
TEST(BandSearch, OfLittleWorkIsBetweenTheOptimumAndWhereItStarts) {
  std::mt19937_64 rng(5);
  int above = 0;
  for (int i = 0; i < 700; ++i) {
    RandomDagOptions options;
    options.max_bytes = 100;
    options.with_flags = i % 3 == 0;
    const CheckpointGraph graph = RandomDag(8 + i % 7, options, &rng);
    const int64_t optimum = Exact(graph);
    StopPoll poll(nullptr);
    const CheckpointSet start = *RepairCheckpoints(graph, {}, &poll);
    CheckpointAnswer answer = {start, Bytes(0), false};
    const CheckpointPathBound bound = *CheckpointPathBound::Create(graph, &poll);
    const CutSearch search(graph, bound, **MakeCutOrder(graph, &poll));
    ASSERT_TRUE(BandSearch(graph, bound, search, &answer).Run(200000, &poll, {}).ok());
    ASSERT_GE(answer.set.objective().value(), optimum) << Describe(graph);
    ASSERT_LE(answer.lower_bound.value(), optimum) << Describe(graph);
    ASSERT_LE(answer.set.objective(), start.objective()) << Describe(graph);
    above += answer.set.objective().value() > optimum ? 1 : 0;
  }
  EXPECT_GT(above, 0) << "as good as with all the work: this tests nothing";
}

}  // namespace
}  // namespace stowage::testing

// Known optima of the graphs of Feng & Huang 2018.
#include <gtest/gtest.h>

#include <string>

#include "solvers/graph/checkpoint_solver.h"
#include "tests/solvers/graph_file.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointAnswer;
using stowage::CheckpointGraph;
using stowage::DivisionTreeSolver;

struct Known {
  std::string name;
  int64_t all_vertices;
  int64_t optimum;  // of their solver
  size_t checkpoints;
};

class FengGraphs : public testing::TestWithParam<Known> {};

TEST_P(FengGraphs, HaveTheirOptimum) {
  const CheckpointGraph graph =
      MakeCheckpointProblem(*stowage::testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/" +
                                                             GetParam().name + ".graph"))
          ->graph;
  EXPECT_EQ(graph.total(), Bytes(GetParam().all_vertices));
  const CheckpointAnswer answer = *DivisionTreeSolver().Solve(graph, {});
  EXPECT_EQ(answer.set.objective(), Bytes(GetParam().optimum));
  EXPECT_TRUE(answer.optimal);
  EXPECT_LE(answer.set.checkpoints.size(), GetParam().checkpoints);
}

INSTANTIATE_TEST_SUITE_P(All, FengGraphs,
                         testing::Values(Known{"alexnet", 3040247808, 1737654272, 4},
                                         Known{"vgg19", 4234799104, 1991239680, 4},
                                         Known{"resnet50", 7194535936, 1785718784, 10},
                                         Known{"densenet121", 4258395136, 792507392, 12},
                                         Known{"nasnet_cifar", 7567235584, 1185155584, 115}),
                         [](const auto& test) { return test.param.name; });

}  // namespace

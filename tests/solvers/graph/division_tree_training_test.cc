// Training by the checkpoints of the division tree: that set, and no other.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "tests/solvers/graph/graph_solver_cases.h"
#include "tests/solvers/graph_file.h"

namespace stowage::testing {
namespace {

std::vector<int> ForwardRuns(const Graph& graph, const Schedule& schedule) {
  std::vector<int> runs(static_cast<size_t>(graph.size()), 0);
  for (const Instruction& i : schedule) {
    if (IsForward(i.op)) ++runs[static_cast<size_t>(i.stage) - 1];
  }
  return runs;
}

// By position: whether the division tree's set has it.
std::vector<bool> CheckpointsOf(const Graph& graph) {
  const CheckpointProblem problem = *MakeCheckpointProblem(graph);
  const CheckpointAnswer answer = *DivisionTreeSolver().Solve(problem.graph, {});
  std::vector<bool> kept(static_cast<size_t>(graph.size()), false);
  for (const int v : answer.set.checkpoints) {
    for (const int p : problem.members[static_cast<size_t>(v)]) kept[static_cast<size_t>(p)] = true;
  }
  return kept;
}

// A path: of 36 equal vertices and the input a set of least bytes has 5 or 6 checkpoints between the ends.
Graph EqualPath(int vertices) {
  GraphSpec spec;
  for (int64_t id = 0; id < vertices; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = v.output_gradient = Bytes(100);
    v.forward_time = v.backward_time = Nanos(10);
    if (id > 0) v.inputs.push_back({id - 1, true});
    spec.vertices.push_back(v);
  }
  return *Graph::Create(spec);
}

TEST(DivisionTreeTraining, RunsCheckpointsOnceAndTheRestTwiceButForTheLastSegment) {
  const Graph graph = EqualPath(37);
  const std::vector<bool> kept = CheckpointsOf(graph);
  int last = graph.size() - 2;  // the last vertex is the target, which is kept
  while (!kept[static_cast<size_t>(last)]) --last;
  const Bytes least = *DivisionTreeTrainingSolver().LeastBudget(graph, {});
  EXPECT_LT(least, StoreAllPeak(graph));
  const Plan plan = *DivisionTreeTrainingSolver().Solve(graph, least, {});
  ASSERT_EQ(plan.status, PlanStatus::kFound);
  const std::vector<int> runs = ForwardRuns(graph, plan.schedule);
  for (int p = 0; p < graph.size(); ++p) {
    const bool once = kept[static_cast<size_t>(p)] || p > last;
    EXPECT_EQ(runs[static_cast<size_t>(p)], once ? 1 : 2) << p;
  }
}

TEST(DivisionTreeTraining, RecomputesNoCheckpointOfAnyGraph) {
  std::mt19937_64 rng(41);
  int recomputing = 0;
  for (int i = 0; i < 200; ++i) {
    const Graph graph = DrawGraph(i, &rng);
    const Plan plan = *DivisionTreeTrainingSolver().Solve(
        graph, *DivisionTreeTrainingSolver().LeastBudget(graph, {}), {});
    ASSERT_EQ(plan.status, PlanStatus::kFound);
    const std::vector<bool> kept = CheckpointsOf(graph);
    const std::vector<int> runs = ForwardRuns(graph, plan.schedule);
    for (int p = 0; p < graph.size(); ++p) {
      EXPECT_LE(runs[static_cast<size_t>(p)], kept[static_cast<size_t>(p)] ? 1 : 2);
      recomputing += runs[static_cast<size_t>(p)] - 1;
    }
  }
  EXPECT_GT(recomputing, 50);
}

TEST(DivisionTreeTraining, BelowItsSetNothingIsFoundAndItSaysWhatTheSetTakes) {
  const Graph graph = EqualPath(37);
  const Bytes least = *DivisionTreeTrainingSolver().LeastBudget(graph, {});
  const Plan plan = *DivisionTreeTrainingSolver().Solve(graph, least - Bytes(1), {});
  EXPECT_EQ(plan.status, PlanStatus::kNotFound);
  EXPECT_EQ(plan.bounds.least_budget, least);
  EXPECT_NE(plan.explanation.find(std::to_string(least.value()) + " bytes"), std::string::npos);
  const Plan more = *OrderSearchSolver().Solve(graph, least - Bytes(1), {});
  EXPECT_EQ(more.status, PlanStatus::kFound) << "what is not found is not infeasible";
}

TEST(DivisionTreeTraining, TakesLittleOnTheGraphsOfThePaper) {
  for (const char* name : {"resnet50", "densenet121", "nasnet_cifar"}) {
    const Graph graph =
        *ReadGraphFile(std::string(STOWAGE_SOURCE_DIR "/tests/data/") + name + ".graph");
    const Bytes least = *DivisionTreeTrainingSolver().LeastBudget(graph, {});
    EXPECT_LT(least.value() * 2, StoreAllPeak(graph).value()) << name;
  }
}

}  // namespace
}  // namespace stowage::testing

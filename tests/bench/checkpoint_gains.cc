// What segments with several end points save over two on networks: a Markdown table.
//
//   checkpoint_gains                   the networks of Feng & Huang 2018
//   checkpoint_gains some.graph ...    graphs of tests/data
#include <ctime>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solvers.h"
#include "solvers/networks/paper_graphs.h"
#include "solvers/networks/roofline.h"
#include "tests/solvers/graph_file.h"

namespace stowage {
namespace {

double CpuMilliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double Share(Bytes part, Bytes all) {
  return static_cast<double>(part.value()) / static_cast<double>(all.value());
}

struct Solved {
  CheckpointAnswer answer;
  double milliseconds;
};

Solved Solve(const CheckpointSolver& solver, const CheckpointGraph& graph) {
  const double start = CpuMilliseconds();
  const auto answer = solver.Solve(graph, {});
  return {answer.ok() ? *answer : CheckpointAnswer(), CpuMilliseconds() - start};
}

void PrintRow(const std::string& name, const Graph& network) {
  const auto problem = MakeCheckpointProblem(network);
  if (!problem.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), problem.status().ToString().c_str());
    return;
  }
  const CheckpointGraph& graph = problem->graph;
  const Solved chen = Solve(ChenGreedyCheckpointSolver(), graph);
  const Solved two = Solve(DivisionTreeSolver(), graph);
  const Solved several = Solve(SeveralEndsSolver(), graph);
  const Bytes least = several.answer.set.objective();
  std::printf("| %s | %d | %.4f | %.4f | %.4f | %.1f%% | %s | %.0f ms |\n", name.c_str(),
              graph.size(), Share(chen.answer.set.objective(), graph.total()),
              Share(two.answer.set.objective(), graph.total()), Share(least, graph.total()),
              100 * (1 - Share(least, two.answer.set.objective())),
              several.answer.optimal
                  ? "optimal"
                  : std::to_string(Share(several.answer.lower_bound, least)).substr(0, 4).c_str(),
              several.milliseconds);
}

int Main(const std::vector<std::string>& files) {
  std::printf(
      "| graph | vertices | chen_greedy | two end points | several | less | bound | CPU |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const std::string& file : files) {
    const auto graph = testing::ReadGraphFile(file);
    if (graph.ok()) PrintRow(graph->name(), *graph);
  }
  if (!files.empty()) return 0;
  for (const PaperGraph& paper : PaperGraphs()) {
    const auto graph = MakePaperGraph(paper, ModelledV100());
    if (graph.ok()) PrintRow(paper.name, *graph);
  }
  return 0;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}

#include "tests/bench/checkpoint_rows.h"

#include <algorithm>
#include <utility>

#include "solvers/viz/graph_drawing.h"
#include "tests/bench/thread_cpu.h"

namespace stowage {
namespace {

constexpr size_t kRepeats = 5;
constexpr Nanos kShort(100000000);

SolverResult Measure(const CheckpointSolver& solver, const CheckpointGraph& graph) {
  SolverResult result{&solver, solver.Solve(graph, {}), Nanos(0)};  // warms up, too
  std::vector<Nanos> times;
  do {
    const Nanos start = ThreadCpu();
    result.answer = solver.Solve(graph, {});
    times.push_back(ThreadCpu() - start);
  } while (times.size() < kRepeats && times.back() < kShort);
  std::sort(times.begin(), times.end());
  result.cpu = times[times.size() / 2];
  return result;
}

}  // namespace

absl::StatusOr<CheckpointRow> ComputeCheckpointRow(const PaperGraph& paper_graph) {
  const absl::StatusOr<Graph> ops = MakePaperGraph(paper_graph, ModelledV100());
  if (!ops.ok()) return ops.status();
  absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(*ops);
  if (!problem.ok()) return problem.status();
  std::vector<std::string> labels = LabelsOf(*ops, *problem);
  CheckpointRow row{paper_graph, std::move(labels), std::move(problem->graph), {}};
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    row.results.push_back(Measure(*solver, row.graph));
  }
  return row;
}

const SolverResult* ResultOf(const CheckpointRow& row, const std::string& solver) {
  for (const SolverResult& result : row.results) {
    if (result.solver->info().name == solver && result.answer.ok()) return &result;
  }
  return nullptr;
}

double RatioOf(const CheckpointRow& row, const SolverResult& result) {
  return static_cast<double>(result.answer->set.objective().value()) /
         static_cast<double>(row.graph.total().value());
}

}  // namespace stowage

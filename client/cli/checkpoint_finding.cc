#include "client/cli/checkpoint_finding.h"

#include <cstddef>
#include <utility>
#include <variant>

#include "solvers/base/thread_cpu.h"
#include "solvers/viz/drawn_plan.h"

namespace stowage {
namespace {

// What of a finding follows from the profile alone.
absl::StatusOr<CheckpointFinding> UnsolvedFinding(const Profile& profile) {
  const Graph* const graph = std::get_if<Graph>(&profile.problem);
  absl::StatusOr<CheckpointProblem> problem =
      graph != nullptr ? MakeCheckpointProblem(*graph)
                       : MakeCheckpointProblem(std::get<Chain>(profile.problem));
  if (!problem.ok()) return problem.status();
  CheckpointFinding finding(*std::move(problem));
  finding.name = profile.name;
  finding.chain = graph == nullptr;
  if (graph != nullptr) finding.labels = LabelsOf(*graph, finding.problem);
  const std::vector<std::string> stages = StageLabels(profile.problem);
  for (const std::vector<int>& members : finding.problem.members) {
    if (graph == nullptr) finding.labels.push_back(stages[static_cast<size_t>(members.front())]);
    std::vector<int64_t> ids;
    for (const int member : members) {
      ids.push_back(graph != nullptr ? graph->vertex(member).id : member);
    }
    finding.ids.push_back(std::move(ids));
  }
  return finding;
}

}  // namespace

absl::StatusOr<CheckpointFinding> FindCheckpoints(const Profile& profile,
                                                  const CheckpointSolver& solver,
                                                  const SolveOptions& options) {
  absl::StatusOr<CheckpointFinding> finding = UnsolvedFinding(profile);
  if (!finding.ok()) return finding.status();
  const CheckpointGraph& graph = finding->problem.graph;
  finding->solver = &solver;
  const int64_t start = ThreadCpuNanos();
  absl::StatusOr<CheckpointAnswer> answer = solver.Solve(graph, options);
  finding->cpu = Nanos(ThreadCpuNanos() - start);
  if (!answer.ok()) return answer.status();
  finding->answer = *std::move(answer);
  const CheckpointSet& set = finding->answer.set;
  const absl::StatusOr<CheckpointSet> judged =
      ValidateCheckpoints(graph, set.checkpoints, solver.rule(), &finding->segments);
  if (!judged.ok()) return absl::InternalError(judged.status().message());
  if (judged->checkpoint_bytes != set.checkpoint_bytes ||
      judged->segment_bytes != set.segment_bytes) {
    return absl::InternalError("the set costs other bytes than its solver says");
  }
  return finding;
}

GraphDrawing DrawingOf(const CheckpointFinding& finding) {
  GraphDrawing drawing;
  drawing.title = finding.name + ": " + finding.solver->info().name;
  drawing.labels = finding.labels;
  drawing.checkpoints = finding.answer.set.checkpoints;
  drawing.rule = finding.solver->rule();
  return drawing;
}

}  // namespace stowage

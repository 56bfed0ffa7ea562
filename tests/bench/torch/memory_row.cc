#include "tests/bench/torch/memory_row.h"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/torch/profile/median.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/networks.h"
#include "solvers/zoo/roofline.h"
#include "tests/bench/graph_budget_rows.h"
#include "tests/bench/paper_tables.h"
#include "tests/bench/torch/trained_network.h"

namespace stowage {
namespace {

constexpr int64_t kTimesWeights = 3;

double Over(double a, double b) { return a / b; }
double Over(Bytes a, Bytes b) {
  return Over(static_cast<double>(a.value()), static_cast<double>(b.value()));
}
double Over(Nanos a, Nanos b) {
  return Over(static_cast<double>(a.value()), static_cast<double>(b.value()));
}

absl::StatusOr<double> TheoreticalRatio(const PaperGraph& paper_graph) {
  const absl::StatusOr<Graph> graph = MakePaperGraph(paper_graph, ModelledV100());
  if (!graph.ok()) return graph.status();
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(*graph);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<CheckpointAnswer> answer = DivisionTreeSolver().Solve(problem->graph, {});
  if (!answer.ok()) return answer.status();
  return Over(answer->set.objective(), problem->graph.total());
}

// The schedules of a row, in the order of its cuts.
absl::StatusOr<std::vector<Schedule>> SchedulesFor(const Problem& problem) {
  const absl::StatusOr<Schedule> checkpoints = CheckpointTrainingSchedule(std::get<Graph>(problem));
  if (!checkpoints.ok()) return checkpoints.status();
  const absl::StatusOr<Simulation> run = Evaluator(problem).Run(*checkpoints);
  if (!run.ok()) return run.status();
  const absl::StatusOr<Frontier> frontier = MakeFrontier(problem, PlanOptions());
  if (!frontier.ok()) return frontier.status();
  const absl::StatusOr<Plan> same = frontier->PlanAt(run->peak);
  if (!same.ok()) return same.status();
  const absl::StatusOr<Plan> least = frontier->PlanAt(frontier->points().front().peak);
  if (!least.ok()) return least.status();
  return std::vector<Schedule>{*checkpoints, same->schedule, least->schedule};
}

absl::Status Train(const TrainedNetwork& network, const Problem& problem,
                   const MemoryOptions& options, MemoryRow* row) {
  const absl::StatusOr<std::vector<Schedule>> schedules = SchedulesFor(problem);
  if (!schedules.ok()) return schedules.status();
  std::vector<Step> ways = {[&] { return network.Plain(); }};
  for (const Schedule& schedule : *schedules) {
    absl::StatusOr<Step> step = network.Planned(problem, schedule);
    if (!step.ok()) return step.status();
    ways.push_back(*std::move(step));
  }
  const absl::StatusOr<std::vector<StepTimes>> times =
      TakeTurns(ways, options.warmups, options.rounds);
  if (!times.ok()) return times.status();
  row->plain = (*times)[0].peak;
  MemoryCut* const cuts[] = {&row->checkpoints, &row->same_memory, &row->least};
  for (size_t i = 0; i < schedules->size(); ++i) {
    const StepTimes& run = (*times)[i + 1];
    cuts[i]->peak = run.peak;
    cuts[i]->ratio = Over(run.peak, row->plain);
    cuts[i]->accuracy = Over(run.peak, Evaluator(problem).Run((*schedules)[i])->peak);
    cuts[i]->overhead = Over(Median(run.cpu), Median((*times)[0].cpu)) - 1;
  }
  return absl::OkStatus();
}

std::string Mib(Bytes bytes, int64_t shrink) {
  return absl::StrFormat("%.0f", Over(bytes, Bytes(1 << 20)) * static_cast<double>(shrink));
}

std::string CutMarkdown(const MemoryRow& row, const MemoryCut& cut) {
  return absl::StrFormat("%s | %.2f | %+.0f%%", Mib(cut.peak, row.shrink), cut.ratio,
                         cut.overhead * 100);
}

}  // namespace

absl::StatusOr<int64_t> UsualShrink(const PaperGraph& paper_graph) {
  const absl::StatusOr<Network> network = MakeNetwork(paper_graph.network);
  if (!network.ok()) return network.status();
  const PaperFigures* const paper = PaperFiguresOf(paper_graph.name);
  const int64_t plain = paper != nullptr ? int64_t{1000000} * paper->f_regular : 0;
  int64_t shrink = 1;
  while (paper_graph.network.batch % (2 * shrink) == 0 &&
         plain / (2 * shrink) >= kTimesWeights * BytesOfModel(*network).parameters.value()) {
    shrink *= 2;
  }
  return shrink;
}

absl::StatusOr<MemoryRow> MeasureMemory(const PaperGraph& paper_graph, const MemoryOptions& asked) {
  MemoryOptions options = asked;
  if (options.shrink == 0) {
    const absl::StatusOr<int64_t> usual = UsualShrink(paper_graph);
    if (!usual.ok()) return usual.status();
    options.shrink = *usual;
  }
  if (options.shrink < 1 || paper_graph.network.batch % options.shrink != 0) {
    return absl::InvalidArgumentError(absl::StrCat("shrink must divide the batch, ",
                                                   paper_graph.network.batch, ", which ",
                                                   options.shrink, " does not"));
  }
  const absl::StatusOr<double> theoretical = TheoreticalRatio(paper_graph);
  if (!theoretical.ok()) return theoretical.status();
  MemoryRow row;
  row.network = paper_graph.name;
  row.batch = paper_graph.network.batch;
  row.shrink = options.shrink;
  row.theoretical = *theoretical;
  NetworkChoice choice;
  choice.name = paper_graph.network.name;
  choice.image = paper_graph.network.image;
  choice.batch = row.batch / options.shrink;
  choice.classes = paper_graph.network.classes;
  const absl::StatusOr<std::unique_ptr<TrainedNetwork>> network =
      TrainedNetwork::Make(choice, Form::kGraph);
  if (!network.ok()) return network.status();
  ProfileOptions profiling = OnePass();
  profiling.warmup = options.warmups;
  const absl::StatusOr<Profile> profile = (*network)->Measure(profiling);
  if (!profile.ok()) return profile.status();
  const absl::Status status = Train(**network, profile->problem, options, &row);
  if (!status.ok()) return status;
  return row;
}

std::string MemoryHeader() {
  return "| network (batch) | ran | F: plain [MB] | F: theirs | ratio | time | plain [MiB] | "
         "checkpoints | ratio | time | theoretical | R: measured | R: theoretical | search, same "
         "memory | ratio | time | search, least | ratio | time | peak / predicted |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string MemoryMarkdown(const MemoryRow& row) {
  const PaperFigures* paper = PaperFiguresOf(row.network);
  std::string f = "- | - | - | -";
  std::string r = "- | -";
  if (paper != nullptr) {
    f = absl::StrFormat("%d | %d | %.2f | %+d%%", paper->f_regular, paper->f_theirs,
                        Over(paper->f_theirs, paper->f_regular), paper->f_time_overhead);
    if (paper->r) {
      r = absl::StrFormat("%.2f | %.2f", paper->r->measured_ratio, paper->r->theoretical_ratio);
    }
  }
  return absl::StrFormat(
      "| %s (%d) | 1/%d | %s | %s | %s | %.2f | %s | %s | %s | %.4f %.4f %.4f |\n", row.network,
      row.batch, row.shrink, f, Mib(row.plain, row.shrink), CutMarkdown(row, row.checkpoints),
      row.theoretical, r, CutMarkdown(row, row.same_memory), CutMarkdown(row, row.least),
      row.checkpoints.accuracy, row.same_memory.accuracy, row.least.accuracy);
}

}  // namespace stowage

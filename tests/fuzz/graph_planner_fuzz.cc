// Arbitrary graphs and schedules through the library: bad graphs are refused by name, and whatever
// comes through has checkpoints that the validation accepts, pictures, a chain, and schedules of which
// the evaluator, the bound and the placement of discards agree.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/linearize.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/viz/division_drawing.h"
#include "solvers/viz/graph_drawing.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/draw_graph.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/require.h"
#include "tests/solvers/naive_graph_replay.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

using testing::ByteSource;
using testing::Describe;
using testing::Require;

constexpr int kMaxVertices = 24;
constexpr std::chrono::seconds kDeadline(5);

// The draws of a fuzzer's schedule: first runs in an order near the program's, repeats and discards
// anywhere, backwards mostly in reverse.
Schedule DrawSchedule(int vertices, ByteSource* in) {
  Schedule schedule;
  const auto disturb = [&] {
    const int what = in->Byte();
    if (what < 192) return;
    const int stage = in->Below(vertices + 2);
    if (what < 224) {
      schedule.push_back(what % 2 == 0 ? ForwardSave(stage) : ForwardNoSave(stage));
    } else if (what < 248) {
      schedule.push_back(
          Discard(what % 2 == 0 ? TensorKind::kActivation : TensorKind::kSaved, stage));
    } else {
      schedule.push_back({static_cast<Op>(what - 248), stage, TensorKind::kSaved, Stream::kToHost});
    }
  };
  for (int v = 1; v <= vertices; ++v) {
    schedule.push_back(in->OneIn(3) ? ForwardNoSave(v) : ForwardSave(v));
    disturb();
  }
  for (int v = vertices; v >= 1; --v) {
    disturb();
    schedule.push_back(Backward(v));
  }
  if (in->OneIn(8) && schedule.size() > 1) {
    std::swap(schedule[static_cast<size_t>(in->Below(static_cast<int>(schedule.size())))],
              schedule.back());
  }
  return schedule;
}

Schedule ComputeOf(const Schedule& schedule) {
  Schedule compute;
  for (const Instruction& instruction : schedule) {
    if (IsForward(instruction.op) || instruction.op == Op::kBackward) {
      compute.push_back(instruction);
    }
  }
  return compute;
}

// Accepted or refused as documented, by both evaluators; what is accepted keeps to the bound.
absl::StatusOr<Simulation> Replay(const Graph& graph, const Schedule& schedule) {
  std::vector<TimelinePoint> timeline;
  absl::StatusOr<Simulation> run = Evaluator(graph).Run(schedule, &timeline);
  const std::string detail = Describe(graph) + "\n" + Describe(schedule);
  const testing::NaiveResult naive = testing::NaiveGraphReplay(graph, schedule);
  Require(run.ok() == naive.valid, "both evaluators agree", run.status().ToString() + detail);
  if (!run.ok()) {
    Require(absl::IsInvalidArgument(run.status()), "bad schedules are bad arguments", detail);
    return run;
  }
  Require(run->peak.value() == naive.peak, "both see one peak", detail);
  Require(run->makespan.value() == naive.makespan, "both see one makespan", detail);
  Require(timeline.size() == schedule.size(), "a point per instruction", detail);
  Require(StrongestMakespanLowerBound(graph, run->peak) <= run->makespan, "the bound is one",
          detail);
  return run;
}

// No backward needs what has been written over in place.
bool IsTrainable(const Graph& graph) { return Replay(graph, StoreAllSchedule(graph)).ok(); }

void CheckSchedules(const Graph& graph, ByteSource* in) {
  const Schedule drawn = DrawSchedule(graph.size(), in);
  const absl::StatusOr<Simulation> run = Replay(graph, drawn);
  const absl::StatusOr<Simulation> placed = Replay(graph, WithDiscards(graph, ComputeOf(drawn)));
  if (run.ok()) {
    const std::string detail = Describe(graph);
    Require(placed.ok(), "discards can be placed where a placement exists",
            placed.status().ToString() + "\n" + detail);
    Require(placed->peak <= run->peak, "no placement has a lower peak", detail);
    Require(placed->makespan <= run->makespan, "none is faster", detail);
  }
}

void CheckFold(const Graph& graph, const FoldedGraph& folded) {
  const std::string detail = Describe(graph);
  std::vector<bool> seen(static_cast<size_t>(graph.size()), false);
  for (const std::vector<int>& members : folded.members) {
    for (const int v : members) {
      Require(!seen[static_cast<size_t>(v)], "every vertex is folded once", detail);
      seen[static_cast<size_t>(v)] = true;
    }
  }
  Require(std::count(seen.begin(), seen.end(), true) == graph.size(), "none is lost", detail);
  for (int p = 0; p < folded.graph.size(); ++p) {
    Require(folded.graph.vertex(p).alias == AliasKind::kNone, "no alias is left", detail);
  }
  Require(folded.graph.ideal_time() == graph.ideal_time(), "no time is lost", detail);
  const Schedule store_all = StoreAllSchedule(folded.graph);
  Require(Replay(folded.graph, store_all).ok(), "without aliases everything can be stored", detail);
  const Schedule unfolded = WithDiscards(graph, UnfoldCompute(folded, store_all));
  const absl::StatusOr<Simulation> back = Replay(graph, unfolded);
  Require(back.ok() || !IsTrainable(graph), "store-all unfolds",
          back.status().ToString() + "\n" + detail);
}

// Any plan of the chain is one of the graph.
void CheckLinearized(const Graph& graph, ByteSource* in) {
  const absl::StatusOr<LinearizedGraph> line = Linearize(graph);
  const std::string detail = Describe(graph);
  Require(line.ok() || absl::IsInvalidArgument(line.status()), "errors are documented", detail);
  if (!line.ok()) return;
  const Chain& chain = line->chain;
  Require(line->stage_begin.size() == static_cast<size_t>(chain.length()) + 1,
          "every stage has its vertices", detail);
  const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
  const Bytes budget(all / 256 * (1 + in->Byte()));
  const absl::StatusOr<Plan> plan = MakePlan(chain, budget, PlanOptions());
  Require(plan.ok(), "the chain is planned", plan.status().ToString() + "\n" + detail);
  if (plan->status != PlanStatus::kFound) return;
  const auto run = Replay(graph, ExpandSchedule(graph, *line, plan->schedule));
  Require(run.ok() || !IsTrainable(graph), "the chain's schedule expands",
          run.status().ToString() + "\n" + detail);
  if (run.ok()) Require(run->peak <= plan->prediction.peak, "to no higher peak", detail);
}

struct Answered {
  SegmentRule rule;
  CheckpointAnswer answer;
};

void CheckPictures(const CheckpointGraph& graph, const Answered& best, const std::string& detail) {
  GraphDrawing drawing;
  drawing.checkpoints = best.answer.set.checkpoints;
  drawing.rule = best.rule;
  Require(DrawSvg(graph, drawing).ok() && DrawDot(graph, drawing).ok(), "it is drawn", detail);
  StopPoll poll(nullptr);
  const absl::StatusOr<DivisionTree> tree = DivisionTree::Build(graph, &poll);
  Require(tree.ok(), "there is a division tree", detail);
  DivisionLimits limits;
  limits.rows = 1 + static_cast<int>(best.answer.set.objective().value() % 50);
  Require(DrawDivisionSvg(graph, *tree, drawing, limits).ok() &&
              DrawDivisionDot(graph, *tree, drawing).ok(),
          "the tree is drawn", detail);
}

void CheckSolvers(const CheckpointGraph& graph, int threads, const std::string& detail) {
  std::vector<Answered> answers;
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    const std::string who = solver->info().name + "\n" + detail;
    const StopToken stop(StopToken::Clock::now() + kDeadline);
    SolveOptions options;
    options.stop = &stop;
    options.threads = threads;
    absl::StatusOr<CheckpointAnswer> answer = solver->Solve(graph, options);
    if (!answer.ok()) {
      const bool documented =
          absl::IsFailedPrecondition(answer.status()) || absl::IsDeadlineExceeded(answer.status());
      Require(documented, "errors are documented", answer.status().ToString() + " " + who);
      continue;
    }
    const auto validated = ValidateCheckpoints(graph, answer->set.checkpoints, solver->rule());
    Require(validated.ok(), "the validation accepts the answer",
            validated.status().ToString() + " " + who);
    Require(validated->objective() == answer->set.objective(), "the objective is right", who);
    Require(answer->lower_bound <= answer->set.objective(), "the bound is below", who);
    answers.push_back({solver->rule(), *std::move(answer)});
  }
  Require(!answers.empty(), "some solver answers", detail);
  for (const Answered& one : answers) {
    for (const Answered& other : answers) {
      // A set for the narrower rule is one for the wider.
      if (one.rule == SegmentRule::kTwoEndPoints && other.rule != one.rule) continue;
      const Bytes objective = other.answer.set.objective();
      Require(one.answer.lower_bound <= objective, "no set is below a bound", detail);
      Require(!one.answer.optimal || one.answer.set.objective() <= objective,
              "nothing is better than an optimum", detail);
    }
  }
  CheckPictures(graph, answers.front(), detail);
}

}  // namespace

void Fuzz(ByteSource* in) {
  const int threads = 1 + in->Below(2);
  const absl::StatusOr<Graph> graph = Graph::Create(testing::DrawGraph(kMaxVertices, in));
  if (!graph.ok()) {
    Require(absl::IsInvalidArgument(graph.status()) &&
                graph.status().message().find("graph.vertices") != std::string::npos,
            "bad graphs are bad arguments that name a vertex", graph.status().ToString());
    return;
  }
  CheckSchedules(*graph, in);
  const absl::StatusOr<FoldedGraph> folded = FoldAliases(*graph);
  Require(folded.ok() || absl::IsInvalidArgument(folded.status()), "errors are documented",
          folded.status().ToString() + "\n" + Describe(*graph));
  if (folded.ok()) CheckFold(*graph, *folded);
  CheckLinearized(*graph, in);
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(*graph);
  Require(problem.ok() == folded.ok(), "what folds is a problem",
          problem.status().ToString() + "\n" + Describe(*graph));
  if (problem.ok()) CheckSolvers(problem->graph, threads, Describe(*graph));
}

}  // namespace stowage

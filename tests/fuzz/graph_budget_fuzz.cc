// Arbitrary small graphs and budgets for every solver of graphs within a budget: an answer is a plan
// that two evaluators accept, or says why there is none.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
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

constexpr int kMaxVertices = 12;
constexpr std::chrono::seconds kDeadline(2);

bool Documented(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status);
}

void CheckSchedule(const Graph& graph, const Schedule& schedule, Bytes peak, Nanos makespan) {
  const std::string detail = Describe(graph) + "\n" + Describe(schedule);
  const absl::StatusOr<Simulation> run = Evaluator(graph).Run(schedule);
  Require(run.ok(), "the schedule is valid", run.status().ToString() + "\n" + detail);
  const testing::NaiveResult naive = testing::NaiveGraphReplay(graph, schedule);
  Require(naive.valid && naive.peak == run->peak.value(), "both evaluators see one peak", detail);
  Require(run->peak <= peak, "the peak is within the budget", detail);
  Require(run->makespan == makespan, "the makespan is exact", detail);
  Require(StrongestMakespanLowerBound(graph, run->peak) <= run->makespan, "the bound is one",
          detail);
}

void CheckFrontier(const Graph& graph, const Simulation& store_all, const Frontier& frontier) {
  const std::string detail = Describe(graph);
  Require(!frontier.points().empty(), "there is a point", detail);
  for (const Frontier::Point& point : frontier.points()) {
    const absl::StatusOr<Plan> plan = frontier.PlanAt(point.peak);
    Require(plan.ok(), "every point is a plan", detail);
    CheckSchedule(graph, plan->schedule, point.peak, point.makespan);
    Require(frontier.info().least_budget <= point.peak, "no schedule needs less", detail);
  }
  Require(frontier.points().back().makespan <= store_all.makespan, "ends at store-all", detail);
}

void CheckPlan(const Graph& graph, const Solver& solver, Bytes budget, const Simulation& store_all,
               const Frontier& frontier) {
  const std::string detail = Describe(graph) + "\nbudget " + ToString(budget);
  const StopToken stop(StopToken::Clock::now() + kDeadline);
  SolveOptions options;
  options.stop = &stop;
  const absl::StatusOr<Plan> plan = solver.Solve(graph, budget, options);
  Require(plan.ok() || Documented(plan.status()), "errors are documented",
          plan.status().ToString() + "\n" + detail);
  if (!plan.ok()) return;
  const Frontier::Point* point = frontier.At(budget);
  const bool found = plan->status == PlanStatus::kFound;
  Require(found == (point != nullptr), "the frontier is what Solve finds", detail);
  if (found) {
    CheckSchedule(graph, plan->schedule, budget, point->makespan);
  } else {
    Require(budget < store_all.peak, "what fits is found", detail);
  }
}

void CheckSolver(const Graph& graph, const Solver& solver, const Simulation& store_all,
                 ByteSource* in) {
  const StopToken stop(StopToken::Clock::now() + kDeadline);
  SolveOptions options;
  options.stop = &stop;
  const absl::StatusOr<Frontier> frontier = solver.SolveFrontier(graph, options);
  Require(frontier.ok() || Documented(frontier.status()), "errors are documented",
          frontier.status().ToString() + "\n" + Describe(graph));
  if (!frontier.ok()) return;
  CheckFrontier(graph, store_all, *frontier);
  const Bytes budget(store_all.peak.value() / 256 * in->Byte() + in->Below(3));
  CheckPlan(graph, solver, budget, store_all, *frontier);
}

// Some backward needs what is written over in place.
void CheckRefused(const Graph& graph) {
  const absl::Status plan = MakePlan(Problem(graph), Bytes(0), {}).status();
  const absl::Status frontier = MakeFrontier(Problem(graph), {}).status();
  const absl::Status least = ResolveBudget(Problem(graph), LeastBudget{}, {}).status();
  for (const absl::Status& status : {plan, frontier, least}) {
    Require(GetFieldViolation(status).has_value(), "what cannot run is refused",
            status.ToString() + "\n" + Describe(graph));
  }
}

}  // namespace

void Fuzz(ByteSource* in) {
  const absl::StatusOr<Graph> graph = Graph::Create(testing::DrawGraph(kMaxVertices, in));
  if (!graph.ok()) return;
  const absl::StatusOr<Simulation> store_all = Evaluator(*graph).Run(StoreAllSchedule(*graph));
  if (!store_all.ok()) {
    CheckRefused(*graph);
    return;
  }
  for (const Solver* solver : SolversOf(ProblemKind::kGraph)) {
    CheckSolver(*graph, *solver, *store_all, in);
  }
}

}  // namespace stowage

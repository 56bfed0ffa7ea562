#include "solvers/plan/problem_referee.h"

#include "solvers/plan/graph_lower_bound.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/graph_store_all.h"
#include "solvers/plan/lower_bound.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {

absl::StatusOr<Simulation> Simulate(const Problem& problem, const Schedule& schedule) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) return SimulateGraph(*graph, schedule);
  return Simulate(std::get<Chain>(problem), schedule);
}

Schedule StoreAllSchedule(const Problem& problem) {
  return std::visit([](const auto& kind) { return StoreAllSchedule(kind); }, problem);
}

Nanos MakespanLowerBound(const Problem& problem, Bytes budget) {
  return std::visit([budget](const auto& kind) { return MakespanLowerBound(kind, budget); },
                    problem);
}

absl::Status Referee(const Problem& problem, Plan* plan) {
  return std::visit([plan](const auto& kind) { return Referee(kind, plan); }, problem);
}

}  // namespace stowage

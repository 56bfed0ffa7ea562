#include "solvers/plan/problem_referee.h"

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/lower_bound.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

absl::StatusOr<Simulation> OrPlainTrainingFails(absl::StatusOr<Simulation> store_all) {
  if (store_all.ok()) return store_all;
  return FieldError("profile", absl::StrCat("plain training fails: ", store_all.status().message()),
                    "must be a step that can run without a budget");
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const Problem& problem, const Schedule& schedule) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) return SimulateGraph(*graph, schedule);
  return Simulate(std::get<Chain>(problem), schedule);
}

absl::StatusOr<Simulation> Simulate(const Problem& problem, const Schedule& schedule,
                                    const TransferModel& transfers) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    return SimulateGraph(*graph, schedule, transfers);
  }
  return Simulate(std::get<Chain>(problem), schedule, transfers);
}

Schedule StoreAllSchedule(const Problem& problem) {
  return std::visit([](const auto& kind) { return StoreAllSchedule(kind); }, problem);
}

absl::StatusOr<Simulation> PlainTraining(const Chain& chain) {
  return OrPlainTrainingFails(Simulate(chain, StoreAllSchedule(chain)));
}

absl::StatusOr<Simulation> PlainTraining(const Graph& graph) {
  return OrPlainTrainingFails(SimulateGraph(graph, StoreAllSchedule(graph)));
}

absl::StatusOr<Simulation> PlainTraining(const Problem& problem) {
  return std::visit([](const auto& kind) { return PlainTraining(kind); }, problem);
}

Nanos MakespanLowerBound(const Problem& problem, Bytes budget) {
  return std::visit([budget](const auto& kind) { return MakespanLowerBound(kind, budget); },
                    problem);
}

Nanos MakespanLowerBound(const Problem& problem, const TransferModel& transfers, Bytes budget) {
  return std::visit([&](const auto& kind) { return MakespanLowerBound(kind, transfers, budget); },
                    problem);
}

absl::Status Referee(const Problem& problem, Plan* plan) {
  return std::visit([plan](const auto& kind) { return Referee(kind, plan); }, problem);
}

absl::Status Referee(const Problem& problem, const TransferModel& transfers, Plan* plan) {
  return std::visit([&](const auto& kind) { return Referee(kind, transfers, plan); }, problem);
}

}  // namespace stowage

#include "solvers/plan/graph_simulate.h"

#include "solvers/plan/graph_replay.h"
#include "solvers/plan/transfer_replay.h"

namespace stowage {

absl::StatusOr<Simulation> SimulateGraph(const Graph& graph, const Schedule& schedule,
                                         std::vector<TimelinePoint>* timeline) {
  return GraphReplay(graph).Run(schedule, timeline);
}

absl::StatusOr<Simulation> SimulateGraph(const Graph& graph, const Schedule& schedule,
                                         const TransferModel& transfers,
                                         std::vector<TimelinePoint>* timeline) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return TransferReplay<GraphReplay>(graph, transfers).Run(schedule, timeline);
}

}  // namespace stowage

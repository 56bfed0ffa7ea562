#include "solvers/schedule/evaluator.h"

#include "solvers/schedule/internal/chain_replay.h"
#include "solvers/schedule/internal/graph_replay.h"
#include "solvers/schedule/internal/transfer_replay.h"

namespace stowage {

absl::StatusOr<Simulation> Evaluator::Run(const Schedule& schedule,
                                          std::vector<TimelinePoint>* timeline) const {
  const std::optional<TransferModel>& link = instance_.link();
  absl::Status status = instance_.CheckLink();
  if (!status.ok()) return status;
  if (instance_.is_graph()) {
    const Graph& graph = instance_.graph();
    return link ? TransferReplay<GraphReplay>(graph, *link).Run(schedule, timeline)
                : GraphReplay(graph).Run(schedule, timeline);
  }
  const Chain& chain = instance_.chain();
  return link ? PartReplay(chain, *link).Run(schedule, timeline)
              : ChainReplay(chain).Run(schedule, timeline);
}

}  // namespace stowage

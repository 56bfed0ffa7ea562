#include "solvers/schedule/evaluator.h"

#include <optional>

#include "solvers/schedule/internal/chain_replay.h"
#include "solvers/schedule/internal/computing_observer.h"
#include "solvers/schedule/internal/graph_replay.h"
#include "solvers/schedule/internal/transfer_replay.h"

namespace stowage {

absl::StatusOr<Simulation> Evaluator::Run(const Schedule& schedule,
                                          std::vector<TimelinePoint>* timeline) const {
  const std::optional<TransferModel>& link = instance_.link();
  absl::Status status = instance_.CheckLink();
  if (!status.ok()) return status;
  if (const std::optional<Simulation> known = instance_.Recall(schedule, timeline)) return *known;
  if (ComputingObserver* observer = computing_observer.load(std::memory_order_relaxed)) {
    observer->OnReplay(instance_, schedule);
  }
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

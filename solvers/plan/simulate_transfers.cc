#include "solvers/plan/part_replay.h"
#include "solvers/plan/simulate.h"

namespace stowage {

absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    const TransferModel& transfers,
                                    std::vector<TimelinePoint>* timeline) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return PartReplay(chain, transfers).Run(schedule, timeline);
}

}  // namespace stowage

#include "solvers/plan/simulate.h"

#include "solvers/plan/chain_replay.h"

namespace stowage {

absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    std::vector<TimelinePoint>* timeline) {
  return ChainReplay(chain).Run(schedule, timeline);
}

}  // namespace stowage

// The joint solver's search for one budget. Internal to solvers/transfer.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_JOINT_SEARCH_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_JOINT_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/schedule/frontier.h"
#include "solvers/solver.h"
#include "solvers/transfer/internal/incumbent.h"
#include "solvers/transfer/internal/joint_recurrence.h"
#include "solvers/transfer/internal/segment_costs.h"

namespace stowage {

// Schedules that cost next to nothing to find: everything on the host, store-all and a checkpoint of every
// stage. Something fits down to CheapLeastMemory.
absl::Status OfferCheapSchedules(const StopToken* stop, Incumbent* best);

// The least memory that these fit. O(L log memory).
Bytes CheapLeastMemory(const Instance& instance);

// Looks for faster schedules, by outlines and their changes. Everything is counted in work, not in
// time. On chains too long for the costs of segments there are no outlines: only points of frontiers
// are of use. CANCELLED, DEADLINE_EXCEEDED.
class JointSearch {
 public:
  // All that is pointed to must outlive it. `costs` are of the chain and link of `best`, for its
  // memory or more; null where there are none. What they hold counts towards the context's memory.
  JointSearch(const SegmentCosts* costs, const SolveContext& context, Incumbent* best);

  // What the recurrence proposes with so many states at a stage, fewer on long chains, in so many
  // cells of memory. Coarse cells find more different states, fine ones better ones.
  absl::Status Propose(size_t states, double cells);

  // Every point of a frontier of schedules without transfers, what is too much of it offloaded; the
  // best one gives an outline.
  absl::Status TakePoints(const Frontier& alone);

  // Changes the best outlines that have not been changed yet, so many of them, and looks at so many
  // schedules, fewer on long chains.
  absl::Status Improve(int outlines, int64_t schedules);

 private:
  struct Rated {
    Nanos makespan;
    Outline outline;
  };

  absl::Status Rate(Outline outline);

  const SegmentCosts* costs_;
  const SolveContext context_;  // less what the costs hold
  Incumbent& best_;
  StopPoll poll_;
  std::vector<Rated> rated_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_JOINT_SEARCH_H_

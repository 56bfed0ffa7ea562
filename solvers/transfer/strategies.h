// What every strategy of offloading is: a problem in, activations to offload and their replay out.
#ifndef STOWAGE_SOLVERS_TRANSFER_STRATEGIES_H_
#define STOWAGE_SOLVERS_TRANSFER_STRATEGIES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/schedule/plan.h"
#include "solvers/solver.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

struct OffloadPlan {
  PlanStatus status = PlanStatus::kNotFound;
  OffloadSet set;
  OffloadTimeline timeline;  // empty unless kFound
  Nanos lower_bound;         // no schedule that moves these activations is faster
  int64_t slots = 0;         // of memory, where sizes were rounded
  std::string explanation;
};

// No schedule that moves whole activations, and recomputes nothing, is faster; no less for less memory. Where nothing
// fits it says nothing. O(n).
Nanos OffloadLowerBound(const OffloadProblem& problem);

struct OffloadStrategyInfo {
  std::string name;         // "offload_greedy"
  std::string description;  // one line
  // Finds a plan within every memory that moving whole activations fits the problem in.
  bool complete = true;
};

// Stateless and thread-safe. Equal problems give equal plans.
class OffloadStrategy {
 public:
  virtual ~OffloadStrategy() = default;
  const OffloadStrategyInfo& info() const { return info_; }

  // Where all fits, nothing is offloaded. Where nothing can fit, kProvenInfeasible; where the
  // strategy has no answer, kNotFound. INVALID_ARGUMENT for options, CANCELLED, DEADLINE_EXCEEDED.
  // Uses slots, stop, progress and memory of the context.
  absl::StatusOr<OffloadPlan> Solve(const OffloadProblem& problem,
                                    const SolveContext& context) const;

 protected:
  explicit OffloadStrategy(OffloadStrategyInfo info) : info_(std::move(info)) {}

  // Of a problem that does not fit as it is, and for which some set may fit. `plan` has the lower
  // bound already.
  virtual absl::Status SolveHard(const OffloadProblem& problem, const SolveContext& context,
                                 OffloadPlan* plan) const = 0;

  // Replays `set` and keeps it if it is faster than what `plan` has, or as fast with less to move.
  static void Offer(const OffloadProblem& problem, const OffloadSet& set, OffloadPlan* plan);

 private:
  const OffloadStrategyInfo info_;
};

// The eager set: Greedy of Beaumont et al. 2020 (section 4).
// The first activations, as few as are needed: theirs is at least the overflow, and
// every op fits. Activations without bytes are left out. The host's memory is not looked at. All of
// them where problem.memory() < problem.least_memory(). O(n).
OffloadSet EagerSet(const OffloadProblem& problem);

// The strategies of offloading. Each lives as long as the process; see OffloadStrategy for the
// interface.
// Beaumont et al. 2020, section 4: the first activations, as few as needed; optimal up to the last
// one's rounding if activations could be split. O(n log n).
const OffloadStrategy& GreedyOffload();

// Beaumont et al. 2020, section 5: of the sets that are optimal when copies can be interrupted, the
// one with the fastest replay.
//   slots = 0: exact where a few thousand states per op hold all; else two slots for each
//              activation, and at least 500.
//   slots > 0: in that many slots.
// With slots Greedy's set is tried, too. What can fit at all is found, by Greedy's set if need be,
// unless the host's memory is too small for that one, too. However long the chain, fewer than 2^32
// comparisons of states (relaxed_optimum.h), and the replays of 65 sets.
const OffloadStrategy& DynProgOffload();

// vDNN (Rhu et al. 2016; Shriram et al. 2019) as Beaumont et al. 2020 read it: all activations
// whose ratio of forward time to size reaches a threshold, or every other one of these; the best of
// all thresholds, of 512 where there are more.
const OffloadStrategy& VdnnOffload();

// TFLMS (Le et al. 2018): the first activations, prefetched when the backward so many ops ahead
// starts; ops never wait for memory. The best of all numbers and distances that fit; of 64 of each
// where there are more.
const OffloadStrategy& TflmsOffload();

// AutoSwap (Zhang et al. 2019): activations by a weighted sum of four priority scores, until they
// fit; the best of weights from a seeded search.
const OffloadStrategy& AutoSwapOffload();

// All of the above.
const std::vector<const OffloadStrategy*>& AllOffloadStrategies();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_STRATEGIES_H_

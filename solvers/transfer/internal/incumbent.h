// The fastest schedule found so far for one instance and memory. Internal to solvers/transfer.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_INCUMBENT_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_INCUMBENT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

// A tensor, by what makes it.
struct TensorName {
  TensorKind kind;
  int stage;
};

// Of an instance with a link. Not thread-safe.
class Incumbent {
 public:
  // What is offered here and is a schedule is offered to `all`, too, unless that is null; it must outlive this.
  Incumbent(const Instance& instance, Bytes memory, FastestSchedule* all = nullptr)
      : evaluator_(instance), has_parts_(HasParts(instance.chain())), all_(all), best_(memory) {}

  const Instance& instance() const { return evaluator_.instance(); }
  const Chain& chain() const { return instance().chain(); }
  const TransferModel& link() const { return *instance().link(); }
  Bytes memory() const { return best_.memory(); }

  bool found() const { return best_.found(); }
  // More than any schedule's where none is found.
  Nanos makespan() const { return best_.makespan(); }
  const Schedule& schedule() const { return best_.schedule(); }
  const std::string& explanation() const { return best_.explanation(); }

  // Whether a compute schedule that takes so much may, with copies of what is too much, be faster than what is known.
  bool MayBeFaster(Nanos time, Bytes peak) const;

  // A schedule, transfers included, if it fits. INTERNAL if the evaluator refuses it.
  absl::Status Offer(const Schedule& schedule, const std::string& explanation);

  // Has the copies of the best schedule run beside more of what it computes. What a stop leaves of
  // that: solvers/transfer/internal/transfer_overlap.h. INTERNAL as above.
  absl::Status OverlapBest(const StopToken* stop);

  // The ways to run a compute schedule that take next to no time to find: without transfers, or with
  // the first tensors on the host, as few as are needed, or with those named, and more if these are too
  // few. The least time, whether it is better than what was known or not; nothing if no way fits. A
  // time that cannot be better is not looked for: nothing either. INTERNAL as above.
  absl::StatusOr<std::optional<Nanos>> OfferQuickly(const Schedule& compute,
                                                    const std::vector<TensorName>& on_host,
                                                    const std::string& explanation);
  // The set of DynProgOffload, of whole tensors, and of parts where stages list them. As above;
  // CANCELLED, DEADLINE_EXCEEDED.
  absl::Status OfferThoroughly(const Schedule& compute, const SolveContext& context,
                               const std::string& explanation);

 private:
  struct Problem {
    ComputeTrace trace;
    TraceProblem offload;
  };

  // Nothing where no set can be better than what is known.
  absl::StatusOr<std::optional<Problem>> ProblemOf(const Schedule& compute,
                                                   Granularity granularity) const;
  absl::Status OfferDynProg(const Schedule& compute, Granularity granularity,
                            const SolveContext& context, const std::string& explanation);
  absl::Status OfferTimeline(const Schedule& compute, const Problem& problem,
                             const OffloadTimeline& timeline, const std::string& explanation);

  const Evaluator evaluator_;
  const bool has_parts_;
  FastestSchedule* const all_;
  FastestSchedule best_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_INCUMBENT_H_

// The tensors of a trace that are worth moving together. Internal to solvers/transfer.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_SEARCH_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"
#include "solvers/solver.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/strategies.h"

namespace stowage {

// Waits for offloads as early as that makes a schedule no slower.
//
// Where the link is what takes the time, compute runs ahead of it until memory is full, and then waits for
// each copy. Here it waits before: for the next copy where there is nothing to be had from being ahead. Memory is
// then less full while tensors leave, as it is with WithLatePrefetches while they come back.
//
// `schedule`, of a chain or a graph, with the same instructions, waits for offloads earlier.
// `timeline` is the evaluator's; `earliest` says for each instruction that is such a wait before which the
// wait may come: after the last that reads its tensor before it has left. Compute keeps of the time to
// spare `margin` times what a copy takes, for links that are slower than they were said to be. Memory is at no
// time more than before; the evaluator says whether the makespan is. O(instructions log instructions).
Schedule WithEarlyWaits(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                        const std::vector<size_t>& earliest, double margin);

// Starts copies from the host as late as they may without making a schedule slower.
//
// The replays that choose times start each copy as early as there is memory for it. Where the link has time
// to spare, memory is then full of tensors that have come back long before they are read, and blocks that
// come and go find no places in one region of memory (solvers/placement) but with much of it lost to fragmentation.
//
// `schedule`, of a chain or a graph, with the same instructions, those that start prefetches later.
// `timeline` is the evaluator's; `full_duplex` says whether prefetches have a channel to themselves. Each
// prefetch keeps of the time to spare `margin` times what it takes, for links that are slower than they
// were said to be. Memory is at no time more than before, and the makespan is the same but where copies
// on one channel meet: the evaluator says. O(instructions log instructions).
Schedule WithLatePrefetches(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                            bool full_duplex, double margin);

// The same with fewer tensors. Sets leave in one order and come back in the other: a tensor that is
// read again early brings back all that left after it. And a small one takes the link for its
// latencies. So those of which none is in the way of another one, of the most bytes, and none that
// takes more latency than it takes to copy. O(tensors log tensors).
ComputeTrace NestedTrace(ComputeTrace trace, const TransferModel& link);

// A schedule with transfers that is as fast and takes less memory in between: `schedule`, of an instance with a link,
// which is `compute` with copies around its forward/backward boundary (trace_problem.h), with its
// waits for offloads early and its prefetches late, as far as the evaluator says that it is no slower and
// takes no more at its peak: what lies in memory without need makes it hard to place blocks in one
// region. O(instructions log instructions + TraceOf).
Schedule JustInTimeSchedule(const Instance& instance, const Schedule& compute, Schedule schedule);

// The fastest schedules found with transfers, for some budgets.
// Not thread-safe. The graph must outlive it. Errors: CANCELLED, DEADLINE_EXCEEDED; INTERNAL for a
// schedule that the evaluator refuses.
class TransferSearch {
 public:
  struct Best {
    Bytes budget;
    Nanos makespan{std::numeric_limits<int64_t>::max()};  // where nothing is found
    Schedule compute;                                     // without its transfers
    Schedule schedule;                                    // empty where nothing is found

    bool found() const { return !schedule.empty(); }
  };

  // Budgets rise.
  TransferSearch(const Instance& instance, const std::vector<Bytes>& budgets,
                 const SolveContext& context);

  // What gets faster at a budget is offered there, too; it must outlive this.
  void ReportTo(FastestSchedule* all) { all_ = all; }

  // At every budget, the schedule as it is where it fits, else with the first tensors that lie idle
  // on the host, as few as are needed: of all, or of those of NestedTrace.
  absl::Status Offer(const Schedule& compute);

  // At one budget, with the tensors on the host that DynProg chooses, if any set can be better than what is
  // found.
  absl::Status OfferThoroughly(const Schedule& compute, size_t budget);

  // At one budget, beginning with what is found for the one before, if that is better: takes out one
  // repeated forward after the other, wherever that is faster. Looks at so many instructions at most.
  absl::Status Retain(size_t budget, int64_t most_work);

  // The other way round: makes tensors that go to the host again right before they are read, one after the other,
  // wherever that is faster, those of least time per byte first. Looks at so many instructions at most.
  absl::Status Repeat(size_t budget, int64_t most_work);

  const std::vector<Best>& bests() const { return bests_; }

  // The smallest memory that one of the schedules offered so far takes with the first tensors on the host;
  // the largest number before the first.
  Bytes least_budget() const { return least_budget_; }

 private:
  struct Offered {
    const Schedule& compute;
    std::vector<ComputeTrace> traces;  // to move tensors of; the first has all
    Nanos makespan;
    Bytes peak;
  };

  absl::StatusOr<Offered> Trace(const Schedule& compute) const;
  absl::Status OfferAt(const Offered& offered, Best* best);
  void Report(const Best& best);
  // Of a change of what is found: none if it is no schedule.
  absl::Status OfferChanged(const Schedule& compute, Best* best);
  void Inherit(size_t budget);
  // What `best` has on the host and may be made again, of least time per byte first.
  absl::StatusOr<std::vector<ComputeTrace::Tensor>> FindOffloaded(const Best& best) const;
  absl::Status OfferWith(const Offered& offered, const ComputeTrace& trace,
                         const OffloadStrategy& strategy, const SolveContext& context, Best* best);
  // Keeps a schedule with transfers if it is faster.
  absl::Status Take(Schedule schedule, const Schedule& compute, Best* best);
  bool MayBeat(const Offered& offered, const Best& best) const;
  absl::StatusOr<bool> FitsIn(const Offered& offered, Bytes memory);
  absl::Status NoteLeast(const Offered& offered);

  const Graph& graph() const { return evaluator_.instance().graph(); }
  const TransferModel& link() const { return *evaluator_.instance().link(); }

  const Evaluator evaluator_;   // of an instance with a link
  const SolveContext context_;  // of what is solved on the way: quiet
  StopPoll poll_;
  FastestSchedule* all_ = nullptr;
  std::vector<Best> bests_;
  Bytes least_budget_{std::numeric_limits<int64_t>::max()};
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_SEARCH_H_

// Periodic checkpointing: the chain is cut into segments, all but a tail keep only their input and
// are recomputed whole, the tail is kept whole from its first forward. Schedules, and their costs
// without building them.
//
// The accounting is the evaluator's (solvers/schedule/evaluator.h), bytes and ns; no errors.
#ifndef STOWAGE_SOLVERS_CHAIN_SEGMENTS_H_
#define STOWAGE_SOLVERS_CHAIN_SEGMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// Last stages of the segments that are recomputed: rising, the first segment starts at stage 1, the
// tail behind the last one. Empty: store-all.
using SegmentEnds = std::vector<int>;

// What torch.utils.checkpoint.checkpoint_sequential does with k segments, 1 <= k <= L: the first
// k-1 are of floor(L/k) stages, the last one and the loss are the tail. O(k).
SegmentEnds SequentialSegments(const Chain& chain, int k);

// O(instructions). The ends must rise within 1..L.
Schedule SegmentedSchedule(const Chain& chain, const SegmentEnds& ends);
inline Schedule SequentialSchedule(const Chain& chain, int k) {
  return SegmentedSchedule(chain, SequentialSegments(chain, k));
}

// What the evaluator says of a segmented schedule.
struct SegmentedCost {
  Nanos makespan;
  Bytes peak;
  int recomputed_forwards = 0;
};

// Peaks of stretches that are kept whole to the end of the chain: one per chain, shared by its
// SegmentedCosts. O(L) to make.
class TailPeaks {
 public:
  explicit TailPeaks(const Chain& chain);
  const Chain& chain() const { return *chain_; }
  // Of stages first..L+1, above what is held below them.
  Bytes From(int first) const { return peaks_[static_cast<size_t>(first)]; }

 private:
  const Chain* chain_;  // must outlive this
  std::vector<Bytes> peaks_;
};

// The cost of a segmentation that grows by segments at its end. Not thread-safe.
class SegmentedCosts {
 public:
  // Starts with store-all. `tails` must outlive this.
  explicit SegmentedCosts(const TailPeaks& tails);

  // Adds the segment that ends with stage `end` <= L. False, and nothing added, if a stage of it
  // must not be recomputed. O(length of the segment).
  bool Add(int end);

  // All stages after the last segment being the tail. O(1).
  SegmentedCost Cost() const;

 private:
  const TailPeaks& tails_;
  const Chain& chain_;
  int end_ = 0;        // of the last segment
  Bytes checkpoints_;  // a^0 and the inputs of the segments and of the tail
  Bytes peak_;         // of everything but the tail
  Nanos recompute_;
};

// What the comparison strategies that cut a chain into segments have in common: a list of
// candidates, store-all among them, of which the fastest that fits is the plan and those that no
// other one beats are the frontier.
class SegmentedSolver : public Solver {
 protected:
  struct Candidate {
    int64_t parameter;  // the strategy's own: what it is made from
    SegmentedCost cost;
  };

  // Every candidate whose recomputed stages may all be; store-all is the first. CANCELLED,
  // DEADLINE_EXCEEDED.
  virtual absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                            const SolveContext& context) const = 0;
  // The segments of a candidate.
  virtual SegmentEnds Segments(const Chain& chain, int64_t parameter) const = 0;
  // For people: "12 segments", if it is not overridden.
  virtual std::string Describe(int64_t parameter) const;

 private:
  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const final;
  // Compact (solvers/schedule/frontier.h).
  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const final;
  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const final;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_SEGMENTS_H_

// The least checkpoints of a linear graph under a limit on its segments: Feng & Huang 2018,
// algorithm 1, with the shortest path through the accessibility graph found by a sliding window.
//
// Works in bare bytes: sums of sizes below kMaxTotal, and segments that may cost that much again,
// do not overflow.
#ifndef STOWAGE_SOLVERS_GRAPH_LINEAR_CHECKPOINTS_H_
#define STOWAGE_SOLVERS_GRAPH_LINEAR_CHECKPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace stowage {

// A vertex that may be a checkpoint.
struct LinearStop {
  int64_t bytes = 0;
  int64_t before = 0;      // of all in front of it: vertices and what lies between them
  bool must_keep = false;  // no segment may pass it

  // What lies between this one and `next`.
  int64_t Until(const LinearStop& next) const { return next.before - before - bytes; }
};

// Sums that are compared by bytes, then by number.
struct KeptBytes {
  int64_t bytes = 0;
  int count = 0;

  friend bool operator<(const KeptBytes& a, const KeptBytes& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.count < b.count;
  }
};

// Keeps its arrays from one solve to the next. Not thread-safe.
class LinearCheckpoints {
 public:
  // Finds which stops to keep so that no segment between two kept ones exceeds the limit: the least
  // bytes; then the fewest; then, from the last backwards, the earliest. The first and the last stop
  // are always kept and do not count. No two consecutive stops may be further apart than the limit.
  // O(stops).
  void Solve(absl::Span<const LinearStop> stops, int64_t limit);

  // Of the last solve.
  const KeptBytes& kept() const { return best_[last_]; }
  // The stop kept before `stop`, another that is kept or the last.
  size_t previous(size_t stop) const { return via_[stop]; }

 private:
  size_t last_ = 0;
  std::vector<KeptBytes> best_;  // in front of a stop, itself not counted
  std::vector<size_t> via_;
  std::vector<size_t> window_;  // stops with rising best, itself counted; the front is the least
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LINEAR_CHECKPOINTS_H_

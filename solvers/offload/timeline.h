// When ops and copies run, and what memory that takes.
#ifndef STOWAGE_SOLVERS_OFFLOAD_TIMELINE_H_
#define STOWAGE_SOLVERS_OFFLOAD_TIMELINE_H_

#include <vector>

#include "solvers/model/units.h"
#include "solvers/offload/offload_problem.h"

namespace stowage {

struct TimedCopy {
  int activation = 0;
  Nanos start;
  Nanos end;

  friend bool operator==(const TimedCopy& a, const TimedCopy& b) {
    return a.activation == b.activation && a.start == b.start && a.end == b.end;
  }
};

// The seam to schedules: a wait for an offload belongs before the first op that starts at its end or
// later, a wait for a prefetch before the backward of its activation.
struct OffloadTimeline {
  std::vector<Nanos> forward_start;   // by op
  std::vector<Nanos> backward_start;  // by op
  std::vector<TimedCopy> offloads;    // in the order in which they run
  std::vector<TimedCopy> prefetches;
  Nanos makespan;
  Bytes peak;       // of device memory
  Bytes host_peak;  // of host memory
};

// Device memory at its highest, at every instant and between ops that take no time: where a release,
// an op and a prefetch fall on one instant, they come in this order. The copies of an activation are
// one offload and one later prefetch. O(n log n).
Bytes PeakOf(const OffloadProblem& problem, const OffloadTimeline& timeline);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_TIMELINE_H_

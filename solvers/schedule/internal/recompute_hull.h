// What a few ops that depend on each other give for memory at one time step: the lower convex hull of bytes that are
// held and time of the forwards that run again, by minimum cuts in whole numbers (../algorithms.md).
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_HULL_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_HULL_H_

#include <cstdint>
#include <vector>

namespace stowage {

// An op, its output and its extras.
struct RecomputeCell {
  bool output_needed = false;  // later, whatever runs again
  int64_t output = 0;          // bytes
  int64_t extras = 0;          // bytes that are needed later
  bool repeatable = true;
  int64_t time = 0;          // of a repeat that makes the output
  int64_t stopped_time = 0;  // of one that makes the extras alone, at most `time`
  std::vector<int> inputs;   // cells whose outputs a repeat reads
};

// Giving up so many bytes costs so much time, in fractions too.
struct HullStep {
  int64_t bytes;
  int64_t time;
};

struct RecomputeHull {
  int64_t held = 0;             // bytes where nothing runs again
  std::vector<HullStep> steps;  // of rising time per byte
};

// Sums of bytes and of times below kMaxTotal (units.h). Minimum cuts of some nodes for each cell, two for each step.
RecomputeHull HullOf(const std::vector<RecomputeCell>& cells);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_HULL_H_

// What is known of the fastest schedule under one caller's costs, from what was proven or reached
// under the costs of reference.
//
// Without transfers a schedule takes the ideal time, which no schedule takes less than, and its
// repeated forwards. Let r be the least ratio of caller to reference time of a forward that may be
// repeated, or of a recompute that stops early. Then a schedule that takes x more than ideal under
// the reference takes at least r x more
// under the caller's costs, so what is a bound of ideal + x there is one of ideal + r x here.
// With transfers, let r be the least ratio over all steps and all copies. A replay is made of sums
// and maxima, so with every cost r times that of the reference a schedule takes r times as long, and
// no cost of the caller's is less: what is a bound of b there is one of r b here.
// As with all bounds, schedules are those that put nothing on the communication stream (lower_bound.h).
// Both need that what fits the caller fits under the reference: the caller's overheads are at
// least, its host memory at most the reference's.
//
// Both problems have the same structure. O(steps), of chains with saved tensors O(tensors). Exact in
// integers. Pure functions, hence thread-safe.
#ifndef STOWAGE_SERVER_ENTRIES_COST_RATIOS_H_
#define STOWAGE_SERVER_ENTRIES_COST_RATIOS_H_

#include <cstdint>

#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"

namespace stowage {

// A ratio of times, caller to reference, the least of those that it was shown; at first 1 where
// there is nothing to compare.
class LeastRatio {
 public:
  // Where the reference is 0 there is nothing to compare.
  void Add(Nanos caller, Nanos reference);
  // Rounded down. `time` >= 0.
  Nanos Of(Nanos time) const;

 private:
  int64_t caller_ = 1;
  int64_t reference_ = 1;
  bool any_ = false;
};

// No schedule that fits the caller within a budget is faster than this, if none is faster than `bound`
// under the reference within the same budget. 0 where nothing follows.
Nanos BoundUnder(const Instance& caller, const Instance& reference, Nanos bound);

// What a plan takes under the caller's costs that is to them what one of `makespan` is to the
// reference's: ideal + r x as above, with the steps that are under 1% of what may be repeated
// counted as one (clocks are coarse, their ratios are noise), and copies of a mean tensor. Where
// `makespan` is the least of a class of schedules without transfers and no step is that small, no
// schedule of the class is faster.
Nanos ExpectedUnder(const Instance& caller, const Instance& reference, Nanos makespan);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_COST_RATIOS_H_

#include "solvers/graph/linear_checkpoints.h"

namespace stowage {

void LinearCheckpoints::Solve(absl::Span<const LinearStop> stops, int64_t limit) {
  last_ = stops.size() - 1;
  best_.resize(stops.size());
  via_.resize(stops.size());
  window_.resize(stops.size());
  best_[0] = {};
  const auto through = [&](size_t stop) {
    // The first stop is kept anyway.
    if (stop == 0) return KeptBytes{};
    return KeptBytes{best_[stop].bytes + stops[stop].bytes, best_[stop].count + 1};
  };
  size_t head = 0, tail = 0;
  for (size_t stop = 1; stop < stops.size(); ++stop) {
    const KeptBytes entering = through(stop - 1);
    if (stops[stop - 1].must_keep) head = tail;
    while (tail > head && entering < through(window_[tail - 1])) --tail;
    window_[tail++] = stop - 1;
    // What is out of reach now is out of reach of all later stops.
    while (stops[window_[head]].Until(stops[stop]) > limit) ++head;
    via_[stop] = window_[head];
    best_[stop] = through(window_[head]);
  }
}

}  // namespace stowage

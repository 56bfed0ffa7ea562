// The best of all limits: Feng & Huang 2018, algorithm 6, without trying all sums of sizes.
//
// A set of least bytes D under the limit C, with a largest segment B <= C, costs D + B. Any set with
// a largest segment in [B, C] costs as much; and D only grows as C falls, so any with one above
// best - D costs at least what is known already. The next limit worth trying is thus the smaller of
// the two, less one: no list of candidates is needed.
//
// There may be as many limits worth trying as there are sums of sizes. Once they have taken long, the
// limits left are halved where they promise most: sets with a largest segment in (A, C] cost D + A
// + 1 at least, which bounds what is not looked at.
#ifndef STOWAGE_SOLVERS_GRAPH_LIMIT_SWEEP_H_
#define STOWAGE_SOLVERS_GRAPH_LIMIT_SWEEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/division_search.h"
#include "solvers/solver.h"

namespace stowage {

struct SweepResult {
  std::vector<int> checkpoints;
  int64_t objective = 0;    // theirs, as the search counts
  int64_t lower_bound = 0;  // of all sets, so counted; the objective if the work sufficed
  int64_t limits_tried = 0;
};

// `most` is a limit under which everything fits, `work` the steps of the search after which no limit
// is tried any more, but for the first samples. Of the options, progress counts; fails as the
// search's token says.
absl::StatusOr<SweepResult> SweepLimits(int64_t most, int64_t work, DivisionSearch* search,
                                        const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LIMIT_SWEEP_H_

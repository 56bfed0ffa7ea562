// The best of all limits: Feng & Huang 2018, algorithm 6, without trying all sums of sizes.
//
// A set of least bytes D under the limit C, with a largest segment B <= C, costs D + B. Any set with
// a largest segment in [B, C] costs as much; and D only grows as C falls, so any with one above
// best - D costs at least what is known already. The next limit worth trying is thus the smaller of
// the two, less one: no list of candidates is needed.
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
  int64_t objective = 0;  // the least of all sets, as the search counts
  int64_t limits_tried = 0;
};

// `most` is a limit under which everything fits. CANCELLED or DEADLINE_EXCEEDED by the options'
// token.
absl::StatusOr<SweepResult> SweepLimits(int64_t most, DivisionSearch* search,
                                        const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LIMIT_SWEEP_H_

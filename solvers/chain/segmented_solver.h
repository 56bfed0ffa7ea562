// What the comparison strategies that cut a chain into segments have in common: a list of
// candidates, store-all among them, of which the fastest that fits is the plan and those that no
// other one beats are the frontier. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_SEGMENTED_SOLVER_H_
#define STOWAGE_SOLVERS_CHAIN_SEGMENTED_SOLVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/segments.h"
#include "solvers/solver.h"

namespace stowage {

class SegmentedSolver : public ChainSolver {
 public:
  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const final;
  // Compact (solvers/plan/frontier.h).
  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const final;
  absl::StatusOr<Bytes> LeastBudget(const Chain& chain, const SolveOptions& options) const final;

 protected:
  struct Candidate {
    int64_t parameter;  // the strategy's own: what it is made from
    SegmentedCost cost;
  };

  // Every candidate whose recomputed stages may all be; store-all is the first. CANCELLED,
  // DEADLINE_EXCEEDED.
  virtual absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                            const SolveOptions& options) const = 0;
  // The segments of a candidate.
  virtual SegmentEnds Segments(const Chain& chain, int64_t parameter) const = 0;
  // "12 segments": for people.
  virtual std::string Describe(int64_t parameter) const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_SEGMENTED_SOLVER_H_

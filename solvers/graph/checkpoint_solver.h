// What every solver of the checkpoint objective is: a graph in, a set of checkpoints out.
#ifndef STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/solver.h"

namespace stowage {

struct CheckpointAnswer {
  CheckpointSet set;  // as JudgeCheckpoints says
  Bytes lower_bound;  // no set that the solver's rule allows has a smaller objective; 0 if unknown
  bool optimal = false;  // none has
};

// Stateless and thread-safe: one object serves any number of concurrent solves.
class CheckpointSolver {
 public:
  virtual ~CheckpointSolver() = default;
  virtual const SolverInfo& info() const = 0;
  virtual SegmentRule rule() const = 0;

  // Of the options, stop counts, and progress for those solvers that take long; there is one thread,
  // whatever the options allow. Errors: CANCELLED, DEADLINE_EXCEEDED,
  // INVALID_ARGUMENT for options; FAILED_PRECONDITION where a solver is only for some graphs (the
  // message says which). There is always an answer: source and target alone, and what must be kept,
  // with whatever the rule asks for beside it.
  virtual absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                                 const SolveOptions& options) const = 0;
};

// All there are, in the order they are listed to people. Lives as long as the process.
const std::vector<const CheckpointSolver*>& AllCheckpointSolvers();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVER_H_

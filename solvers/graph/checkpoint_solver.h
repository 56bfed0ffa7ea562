// What every solver of the checkpoint objective is: a graph in, a set of checkpoints out.
#ifndef STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVER_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/solver.h"

namespace stowage {

struct CheckpointAnswer {
  CheckpointSet set;  // as ValidateCheckpoints says
  Bytes lower_bound;  // no set that the solver's rule allows has a smaller objective; 0 if unknown
  bool optimal = false;  // none has
};

// Stateless and thread-safe: one object serves any number of concurrent solves.
class CheckpointSolver {
 public:
  virtual ~CheckpointSolver() = default;
  const SolverInfo& info() const { return info_; }
  SegmentRule rule() const { return rule_; }

  // Of the options, stop counts, and progress for those solvers that take long; there is one thread,
  // whatever the options allow. Errors: CANCELLED, DEADLINE_EXCEEDED,
  // INVALID_ARGUMENT for options; FAILED_PRECONDITION where a solver is only for some graphs (the
  // message says which). There is always an answer: source and target alone, and what must be kept,
  // with whatever the rule asks for beside it.
  virtual absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                                 const SolveContext& context) const = 0;

 protected:
  CheckpointSolver(SegmentRule rule, SolverInfo info) : rule_(rule), info_(std::move(info)) {}

 private:
  const SegmentRule rule_;
  const SolverInfo info_;
};

// All there are, in the order they are listed to people. Lives as long as the process.
const std::vector<const CheckpointSolver*>& AllCheckpointSolvers();

// The solvers of the checkpoint objective. Each lives as long as the process; see
// checkpoint_solver.h for the interface.

// Keeps every vertex. O(V + E).
const CheckpointSolver& StoreAllCheckpointSolver();

// Chen et al. 2016 on the splitting vertices (R "Chen manual" of Feng & Huang): sqrt(n) segments of
// equally many of them; or segments that end where their bytes exceed a bound (their Algorithm 3),
// the best of 257 bounds, fewer where vertices and edges are more than some 60,000. What must be kept
// is added, and what the two-endpoint rule asks for then. O(V + E) for each bound.
const CheckpointSolver& ChenSqrtCheckpointSolver();
const CheckpointSolver& ChenGreedyCheckpointSolver();

// The best of 10 valid draws of 1 to 5 vertices that are neither end points nor kept anyway, as far
// as there are so many, each beside these; redrawn until valid or
// after 10,000 tries in all, fewer on graphs of more than some 10,000 vertices and edges. The same
// draws for the same graph. Where no draw is valid, the end points alone, and what must be kept.
const CheckpointSolver& RandomCheckpointSolver();

// Feng & Huang 2018, algorithms 2 to 6: the optimum of sets whose segments have two end points, for
// any graph. Where ops need their inputs, the better of two searches that count too little and too
// much, and optimal only if that meets the bound of the first. Of equally good sets that the search
// meets, the one with fewer checkpoints; equal graphs have equal answers, but another as good and
// as small may exist. O((V + E) log V) and, for each limit tried, what changes under it, at most
// O(V): as a rule some hundred limits. There may be as many as there are sums of sizes; after a
// fixed amount of work, some seconds, the rest is bounded: then a very long path whose checkpoints
// and segments trade evenly gets a set not proven optimal (paths of 40,000 vertices are).
const CheckpointSolver& DivisionTreeSolver();

// Feng & Huang 2018, algorithm 1: the same for graphs that are one path; FAILED_PRECONDITION for
// others.
const CheckpointSolver& LinearCheckpointSolver();

// Any segments whose graph has no cycle: a search along a topological order of the graph
// (CutSearch) from the best set of the other solvers. Optimal where it says so: on any graph
// of up to some 20 vertices, and on larger ones that are narrow; else as good as a fixed amount of
// work made it, and never worse than those sets. The lower bound is that of a path (CheckpointPathBound).
// Beside what the others take, about half a second up to some 20,000 vertices and a second and a
// half at 100,000; graphs of more than 64 vertices open at once, or of more than 100,000, get the
// best set of the other solvers.
const CheckpointSolver& AcyclicQuotientSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVER_H_

// The solvers made for graphs within a budget. Each lives as long as the process; see
// solvers/solver.h for the interface.
#ifndef STOWAGE_SOLVERS_GRAPH_SOLVERS_H_
#define STOWAGE_SOLVERS_GRAPH_SOLVERS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/solver.h"

namespace stowage {

// Least time within a budget on any graph or compute DAG, by search over the orders in which forwards, backwards and
// repeated forwards run (algorithms.md, "order_search").
//   - Exact, the least budget too, for graphs without aliases of up to some 16 vertices. Plans for others come with a
//     lower bound.
//   - Never slower than plain training, than the chain solver's frontier on the graph as a chain, nor than training by
//     the division tree's checkpoints (exceptions: algorithms.md).
//   - All budgets cost as much as one: a budget gets the fastest of all that was found and fits.
//   - Effort does not depend on the machine: some 3 s for 300 vertices, 15 s for 1,500 and more.
//   - PROVEN_INFEASIBLE below the least budget where that is exact, and below what one op alone needs; else NOT_FOUND.
// Of the options, slots are for the chain solver; table_limit is for the table of each chain solver, and the orders that
// the search keeps beside it take up to three eighths of that, what it prices them by not counted: some 400 bytes a vertex and thread. The
// search runs on as many threads as there are; the plan does not depend on how many.
const Solver& OrderSearchSolver();

// Trains with the checkpoints of DivisionTreeSolver (solvers/graph/checkpoint_solver.h): Feng & Huang
// 2018, Algorithm 6. Each segment runs forward again before its backward; the last one, whose backward
// comes first, stays where that takes no more memory than there is.
//   - One fixed set, whatever the budget: it has the least bytes of checkpoints and largest segment, not
//     the least time, nor, as those bytes count no gradients and no workspaces, the least peak.
//   - Plain training where that fits. Else PROVEN_INFEASIBLE below what one op alone needs and NOT_FOUND
//     below what training by the set takes, which is the least budget then.
//   - For graphs with values written over in place, where training by the set may be no schedule, there
//     is plain training alone then.
//   - What DivisionTreeSolver takes, and O((V + E) log V).
// Of the options, stop and progress count.
const Solver& DivisionTreeTrainingSolver();

// Everything that OrderSearchSolver() finds: its frontier, before points that gain little are left out. For solvers
// that search on from it. Errors as for SolveFrontier.
absl::StatusOr<Frontier> AllOrders(const Instance& instance, const SolveContext& context);

// A chain solver as a graph solver: it plans the graph cut at its splitting vertices (linearize.h)
// for all budgets, and its plans are carried over to the vertices (linearize.h), where they take no
// longer and need no more memory.
//
// PROVEN_INFEASIBLE below what one op alone needs (PeakLowerBound): what the chain solver proves holds
// for the chain only. INVALID_ARGUMENT for a graph of sizes whose chain, which counts some bytes more
// than once, is beyond the limits of chains.
class LinearizedSolver final : public Solver {
 public:
  // `chain_solver` outlives this object.
  explicit LinearizedSolver(const Solver* chain_solver);

  const SolverInfo& info() const override { return info_; }

 private:
  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override;
  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override;
  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override;

  // The points of the chain's frontier on the graph: all, or what a cache would want to keep.
  absl::StatusOr<Frontier> Expanded(const Instance& instance, const SolveContext& context,
                                    bool compact) const;

  // To expand and to replay, for each instruction; about.
  static constexpr int64_t kStepsPerVertex = 32;

  const Solver& chain_solver_;
  const SolverInfo info_;
};

// What one op alone needs at once: no schedule that the evaluator accepts has a lower peak. The most that any forward
// or backward runs with: inputs, output, extras and overhead; what the backward needs of them, its overhead, and the
// gradients of its inputs and its own. O(V + E log E).
Bytes PeakLowerBound(const Graph& graph);

// Budgets that are answered without a search, the same way by every solver of graphs: where no op fits,
// and where everything does.
//
// PROVEN_INFEASIBLE below what some op alone needs (PeakLowerBound), which is the least budget then;
// plain training where it fits, which nothing beats; nothing in between. O((V + E) log E).
absl::StatusOr<std::optional<Plan>> TrivialPlan(const Instance& instance, Bytes budget,
                                                const SolverInfo& solver);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_SOLVERS_H_

// Keeping, recomputing and offloading together, on chains: POFO's question (Beaumont et al. 2021).
//
// With a link a plan may do all three, stage by stage; without, or where the host takes
// nothing, it is the planner's choice of chain solver (solvers/chain/solvers.h). It is never
// slower than that choice, than offloading alone (Greedy and DynProg in solvers/transfer/strategies.h)
// or than offloading from any schedule on the choice's frontier, at the same budget.
//
// Of a schedule without transfers the tensors that are held around the turn from forwards to
// backwards may be on the host meanwhile (solvers/transfer/offload_solver.h). What is tried:
//   - store-all, a coarse table's schedules, and every point of the chain solver's frontier;
//   - what a recurrence over both questions at once proposes (joint_recurrence.h), with few states
//     and with many;
//   - local changes to the best of these (joint_search.h).
// At last the winner's copies are moved to where they hold up least (solvers/transfer/transfer_overlap.h):
// after a deadline, too, but then for some 20 ms only.
// All of it is bounded by work, not by the clock: equal options give equal plans, unless a deadline
// cuts the search short.
//
// Deadlines. Once a schedule that fits is known, a deadline that passes ends the search and the plan
// is the best one so far; its explanation says so. Before, and for frontiers and least budgets, it is
// DEADLINE_EXCEEDED. A stop by request is CANCELLED always.
//
// Bounds. The least budget is exact, of schedules of any kind, where the host takes all that leaves
// (peak_lower_bound.h). Where it does not, budgets below that bound are still PROVEN_INFEASIBLE, with it
// as the plan's least_budget; above it nothing is proven: NOT_FOUND, and the least budget is one for
// which a schedule is found, perhaps not the smallest. A plan that meets
// MakespanLowerBound (solvers/schedule/lower_bound.h) is proven optimal.
//
// Frontiers are made of the chain solver's and of a shorter search for each of 40 budgets, evenly
// spaced from the least on, with one table of costs for all: a single solve may be a little faster.
//
// All that grows faster than the chain stays within options.table_limit. Where that is little,
// tables are coarser, fewer states are kept, or there is no recurrence; what recomputing and
// offloading have alone within the same limit is tried in any case.
//
// On chains of more than 1,000 stages there is no recurrence, and of DynProg no promise: they are
// left with the frontier's points and Greedy. Bytes, nanoseconds. Thread-safe.
#ifndef STOWAGE_SOLVERS_TRANSFER_JOINT_SOLVER_H_
#define STOWAGE_SOLVERS_TRANSFER_JOINT_SOLVER_H_

#include "solvers/solver.h"

namespace stowage {

const Solver& JointSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_JOINT_SOLVER_H_

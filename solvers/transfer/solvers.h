// The solvers that move tensors to host memory and back (Instance::link). Each lives as long as the process, stateless
// and thread-safe; see solvers/solver.h for the interface. Bytes, nanoseconds.
#ifndef STOWAGE_SOLVERS_TRANSFER_SOLVERS_H_
#define STOWAGE_SOLVERS_TRANSFER_SOLVERS_H_

#include <vector>

#include "solvers/solver.h"

namespace stowage {

// Keeping, recomputing and offloading together, on chains: POFO's question (Beaumont et al. 2021; algorithms.md).
//
// With a link a plan may keep, recompute or offload, stage by stage; without, or where the host takes nothing, it is
// the chain solver's choice (solvers/chain/solvers.h).
//   - Never slower than that choice at the same budget. Offloading alone (Greedy and DynProg in strategies.h), and
//     from any schedule on the choice's frontier, is tried at the budgets of a grid (algorithms.md).
//   - Anytime: at a deadline the plan is the best one so far, and its explanation says so, and a frontier has the points so
//     far. Before there is one, and for least budgets, it is DEADLINE_EXCEEDED. Without one, equal options give equal plans.
//   - The least budget is exact where the host takes all that leaves; else budgets below that are PROVEN_INFEASIBLE,
//     and NOT_FOUND below one for which a schedule is found. Proven optimal where MakespanLowerBound is met.
//   - Tables stay within the context's memory.
const Solver& JointSolver();

// Least time within a budget on any graph where tensors and extras of single vertices may go to host
// memory and back: what other solvers do with more memory than there is,
// with the overflow on the host while it lies idle (README.md beside this file).
//   - Never slower than order_search at the same budget. Plain training with the overflow on the host, as Greedy or
//     DynProg choose it (solvers/transfer/strategies.h), is tried at 40 budgets (algorithms.md); a frontier is made of
//     the same schedules.
//   - Without a link it is order_search, whose name the plan has then.
//   - Anytime: at the deadline Solve has the best plan so far, and DEADLINE_EXCEEDED only before the
//     first. Without one, equal input gives equal plans.
//   - Takes up to four times as long as order_search.
//   - PROVEN_INFEASIBLE below what one op alone needs; else NOT_FOUND.
// Of the options, all count, as for order_search.
const Solver& JointGraphSolver();

// The strategies of offloading as chain solvers: plain training within less memory, its activations
// moved to the host as the strategy says.
//
// The class recomputes nothing and copies all that a stage saves at once; without a link
// (Instance::link) only plain training is left of it. A schedule is PROVEN_INFEASIBLE
// where nothing of the class fits; with a link, and a host that has less memory than all that may
// leave, least_budget may then be less than what such a schedule fits in. Where the strategy finds
// nothing, or copies take longer than times can say, NOT_FOUND.
//
// Plans for one budget and frontiers are made of the strategy's schedules for 64 budgets, evenly spaced from the least
// budget on, so that more budget is never slower (algorithms.md).
//
// One for each of AllOffloadStrategies(), of the same name. LeastBudget takes one solve of the strategy where that finds something within what the
// class needs at least, else the logarithm of the range of budgets: some forty. Solve takes as many, and one for each
// of the 64 budgets that may be faster by their lower bounds; SolveFrontier as many and 64 more.
const std::vector<const Solver*>& OffloadSolvers();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_SOLVERS_H_

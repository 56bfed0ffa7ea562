// Keeping, recomputing and offloading together, on chains: POFO's question (Beaumont et al. 2021; algorithms.md).
#ifndef STOWAGE_SOLVERS_TRANSFER_JOINT_SOLVER_H_
#define STOWAGE_SOLVERS_TRANSFER_JOINT_SOLVER_H_

#include "solvers/solver.h"

namespace stowage {

// With a link a plan may keep, recompute or offload, stage by stage; without, or where the host takes nothing, it is
// the chain solver's choice (solvers/chain/solvers.h).
//   - Never slower than that choice at the same budget. Offloading alone (Greedy and DynProg in strategies.h), and
//     from any schedule on the choice's frontier, is tried at the budgets of a grid (algorithms.md).
//   - Anytime: at a deadline the plan is the best one so far, and its explanation says so. Before there is one, and
//     for frontiers and least budgets, it is DEADLINE_EXCEEDED. Without one, equal options give equal plans.
//   - The least budget is exact where the host takes all that leaves; else budgets below that are PROVEN_INFEASIBLE,
//     and NOT_FOUND below one for which a schedule is found. Proven optimal where MakespanLowerBound is met.
//   - Tables stay within the context's memory.
// Bytes, nanoseconds. Thread-safe.
const Solver& JointSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_JOINT_SOLVER_H_

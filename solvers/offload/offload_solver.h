// The strategies of offloading as chain solvers: plain training within less memory, its activations
// moved to the host as the strategy says.
//
// The class recomputes nothing and copies all that a stage saves at once; without a link
// (SolveOptions::transfers) only plain training is left of it. A schedule is PROVEN_INFEASIBLE
// where nothing of the class fits; with a link, and a host that has less memory than all that may
// leave, least_budget may then be less than what such a schedule fits in. Where the strategy finds
// nothing, or copies take longer than times can say, NOT_FOUND.
//
// A plan for one budget is the strategy's for it, so it may be slower than one for less memory; a
// frontier has none that is. It is made of 64 budgets, evenly spaced.
#ifndef STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_SOLVER_H_
#define STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_SOLVER_H_

#include <vector>

#include "solvers/solver.h"

namespace stowage {

// One for each of AllOffloadStrategies(), of the same name. Live as long as the process; stateless
// and thread-safe. LeastBudget takes one solve where the strategy finds something within what the
// class needs at least, else the logarithm of the range of budgets: some forty. SolveFrontier takes
// as many and 64 more. Of any length, a solve of DynProg is bounded (strategies.h).
const std::vector<const ChainSolver*>& OffloadSolvers();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_SOLVER_H_

// The solvers that recompute and move tensors to host memory on graphs. Each lives as long as the
// process; see solvers/solver.h for the interface.
#ifndef STOWAGE_SOLVERS_TRANSFER_JOINT_GRAPH_SOLVER_H_
#define STOWAGE_SOLVERS_TRANSFER_JOINT_GRAPH_SOLVER_H_

#include "solvers/solver.h"

namespace stowage {

// Least time within a budget on any graph where tensors and extras of single vertices may go to host
// memory and back (Instance::link): what other solvers do with more memory than there is,
// with the overflow on the host while it lies idle (README.md beside this file).
//   - Never slower than order_search at the same budget. Plain training with the overflow on the host, as Greedy or
//     DynProg choose it (solvers/transfer/strategies.h), is tried at 40 budgets (algorithms.md); a frontier is made of
//     the same schedules.
//   - Without a link it is order_search, whose name the plan has then.
//   - Anytime: at the deadline Solve has the best plan so far, and DEADLINE_EXCEEDED only before the
//     first. Without one, equal input gives equal plans.
//   - Takes up to four times as long as order_search.
//   - PROVEN_INFEASIBLE below what one op alone needs; else NOT_FOUND.
// Of the options, all but threads count, slots and table_limit as for order_search.
const Solver& JointGraphSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_JOINT_GRAPH_SOLVER_H_

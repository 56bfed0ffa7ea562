// The solvers of graphs within a budget. Each lives as long as the process; see
// solvers/graph/graph_solver.h for the interface.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_SOLVERS_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_SOLVERS_H_

#include <vector>

#include "solvers/graph/graph_solver.h"

namespace stowage {

// TODO
const GraphSolver& OrderSearchSolver();

// All there are, in the order they are listed to people. Lives as long as the process.
const std::vector<const GraphSolver*>& AllGraphSolvers();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_SOLVERS_H_

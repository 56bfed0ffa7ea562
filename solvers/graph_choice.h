// The planner's own choice for graphs, as a solver: the chain solvers' choice on the chain that the
// graph is cut into.
#ifndef STOWAGE_SOLVERS_GRAPH_CHOICE_H_
#define STOWAGE_SOLVERS_GRAPH_CHOICE_H_

#include "solvers/graph/graph_solver.h"

namespace stowage {

const GraphSolver& ChosenGraphSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_CHOICE_H_

#include "solvers/graph_choice.h"

#include "solvers/chain/chain_choice.h"
#include "solvers/graph/linearized_solver.h"

namespace stowage {

const GraphSolver& ChosenGraphSolver() {
  static const auto* const kChoice = new LinearizedSolver(&ChosenChainSolver());
  return *kChoice;
}

}  // namespace stowage

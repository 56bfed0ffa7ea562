#include "solvers/graph/checkpoint_solver.h"

#include "solvers/graph/checkpoint_solvers.h"

namespace stowage {

const std::vector<const CheckpointSolver*>& AllCheckpointSolvers() {
  static const auto* const kSolvers = new std::vector<const CheckpointSolver*>{
      &DivisionTreeSolver(),
      &LinearCheckpointSolver(),
  };
  return *kSolvers;
}

}  // namespace stowage

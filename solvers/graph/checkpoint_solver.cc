#include "solvers/graph/checkpoint_solver.h"

namespace stowage {

const std::vector<const CheckpointSolver*>& AllCheckpointSolvers() {
  static const auto* const kAll = new std::vector<const CheckpointSolver*>{
      &StoreAllCheckpointSolver(),    //
      &RandomCheckpointSolver(),      //
      &ChenSqrtCheckpointSolver(),    //
      &ChenGreedyCheckpointSolver(),  //
      &LinearCheckpointSolver(),      //
      &DivisionTreeSolver(),          //
      &AcyclicQuotientSolver(),
  };
  return *kAll;
}

}  // namespace stowage

// The solvers of the checkpoint objective, by name. AllCheckpointSolvers (checkpoint_solver.h) lists
// them.
#ifndef STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVERS_H_
#define STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVERS_H_

#include "solvers/graph/checkpoint_solver.h"

namespace stowage {

// Feng & Huang 2018, algorithms 2 to 6: the optimum of sets whose segments have two end points, for
// any graph. Where ops need their inputs, the better of two searches that count too little and too
// much, and optimal only if that meets the bound of the first. Of equally good sets the one with
// fewer checkpoints is preferred among those that the search meets; equal graphs have equal
// answers. A limit costs O(V), and seldom more than some hundred are tried.
const CheckpointSolver& DivisionTreeSolver();
// Feng & Huang 2018, algorithm 1: the same for graphs that are one path; FAILED_PRECONDITION for
// others.
const CheckpointSolver& LinearCheckpointSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_CHECKPOINT_SOLVERS_H_

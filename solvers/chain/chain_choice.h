// The planner's own choice among the chain solvers, as a solver.
//
// Store-all whenever it fits; else beyond_persistent on chains of up to 128 stages,
// optimal_persistent on longer ones, checkpoint_sequential on those too long for it. Who asks for
// slots wants a table: then the refusal of optimal_persistent is the answer. Plans name the solver
// that made them.
#ifndef STOWAGE_SOLVERS_CHAIN_CHAIN_CHOICE_H_
#define STOWAGE_SOLVERS_CHAIN_CHAIN_CHOICE_H_

#include "solvers/solver.h"

namespace stowage {

const ChainSolver& ChosenChainSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_CHAIN_CHOICE_H_

// The solvers there are, by name. What a solver can do is in its SolverInfo: nobody needs to know one by its name.
#ifndef STOWAGE_SOLVERS_REGISTRY_H_
#define STOWAGE_SOLVERS_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/schedule/instance.h"
#include "solvers/solver.h"

namespace stowage {

// Every solver once, in the order in which people are told of them. Live as long as the process.
const std::vector<const Solver*>& AllSolvers();

// Those that take the kind.
std::vector<const Solver*> SolversOf(ProblemKind kind);

// The solver of that name, or if the name is empty the planner's choice: with a link joint (solvers/transfer/solvers.h);
// else for chains as ChosenChainSolver says (solvers/chain/solvers.h), for graphs order_search. INVALID_ARGUMENT made
// by FieldError unless there is one that takes the instance's kind.
absl::StatusOr<const Solver*> FindSolver(const Instance& instance, const std::string& name);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REGISTRY_H_

#include <iostream>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

int Run() {
  for (const ChainSolver* solver : AllSolvers()) {
    const SolverInfo& info = solver->info();
    std::cout << absl::StrFormat("%-22s %s\n%-22s least time among: %s\n", info.name,
                                 info.description, "", info.schedule_class);
  }
  return kExitOk;
}

}  // namespace

Command SolversCommand() { return {"solvers", "list the solvers there are", {}, Run}; }

}  // namespace stowage

#include <iostream>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

int Run() {
  for (const SolverInfo& info : SolverInfos()) {
    std::cout << absl::StrFormat("%-22s %s\n%-22s class: %s\n", info.name, info.description, "",
                                 info.schedule_class);
  }
  std::cout
      << "\nWithout --solver: store_all where everything fits. Else, for a chain, joint where "
         "the profile's device has a link\nto host memory (unless --recompute_only); without "
         "one, beyond_persistent up to 128 stages, optimal_persistent\non longer ones, "
         "checkpoint_sequential on those too long for it; for a graph, joint or order_search "
         "likewise.\n"
         "A chain solver that copies nothing, named for a graph, plans it cut at its splitting "
         "vertices.\n";
  return kExitOk;
}

}  // namespace

Command SolversCommand() { return {"solvers", "list the solvers there are", {}, Run}; }

}  // namespace stowage

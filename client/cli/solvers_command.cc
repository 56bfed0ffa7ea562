#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr char kForCheckpoints[] = "checkpoints";

// What a solver of plans takes.
const char* TakenBy(const SolverInfo& solver) {
  if (solver.dags) return "graphs and compute DAGs";
  if (!solver.chains) return "graphs";
  return solver.graphs ? "chains and graphs" : "chains";
}

void AppendSolver(const std::string& name, const std::string& description, const std::string& more,
                  std::string* text) {
  absl::StrAppendFormat(text, "  %-23s %s\n  %-23s %s\n", name, description, "", more);
}

std::string SolversText() {
  std::string text =
      "Solvers of plans, least time within a budget (--solver of plan, frontier, explain, report, "
      "run, ...):\n\n";
  for (const Solver* solver : AllSolvers()) {
    const SolverInfo& info = solver->info();
    AppendSolver(info.name, info.description,
                 absl::StrCat("plans ", TakenBy(info), "; chooses among ", info.schedule_class),
                 &text);
  }
  absl::StrAppend(
      &text,
      "\nWithout --solver: plain training (store_all) where it fits. Else joint, where the "
      "profile's device has a link to\nhost memory and --recompute_only is not set. Else for a "
      "graph order_search (for a compute DAG always), and for a chain non_persistent up to\n128 "
      "stages, "
      "optimal_persistent on longer ones, checkpoint_sequential on those too long for that.\nA "
      "solver of chains plans a graph as the chain that it is cut into wherever one tensor alone "
      "passes.\n\nSolvers of checkpoints, least bytes of what is kept and the largest segment, "
      "without times (--solver of checkpoints):\n\n");
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    AppendSolver(solver->info().name, solver->info().description,
                 absl::StrCat("rule ", ToString(solver->rule()), "; chooses among ",
                              solver->info().schedule_class),
                 &text);
  }
  return text;
}

Listing SolversListing() {
  Listing listing({{"name", "", "name"},
                   {"", "", "description"},
                   {"", "", "schedule_class"},
                   {"", "", "for"},
                   {"", "", "rule"}});
  for (const Solver* solver : AllSolvers()) {
    const SolverInfo& info = solver->info();
    listing.AddRow({Listing::Text(info.name), Listing::Text(info.description),
                    Listing::Text(info.schedule_class),
                    Listing::Text(absl::StrCat("plans of ", TakenBy(info))), Listing::Nothing()});
  }
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    listing.AddRow({Listing::Text(solver->info().name), Listing::Text(solver->info().description),
                    Listing::Text(solver->info().schedule_class), Listing::Text(kForCheckpoints),
                    Listing::Text(ToString(solver->rule()))});
  }
  return listing;
}

int RunSolvers() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  std::cout << (*format == Format::kText ? SolversText() : SolversListing().As(*format));
  return kExitOk;
}

}  // namespace

Command SolversCommand() {
  return {"solvers",
          "list the solvers there are, of plans and of checkpoints",
          {"format"},
          RunSolvers,
          {"solvers", "solvers --format=csv"}};
}

}  // namespace stowage

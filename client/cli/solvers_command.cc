#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

std::string Text() {
  std::string text;
  for (const SolverInfo& info : SolverInfos()) {
    absl::StrAppendFormat(&text, "%-22s %s\n%-22s class: %s\n", info.name, info.description, "",
                          info.schedule_class);
  }
  return absl::StrCat(
      text,
      "\nWithout --solver: store_all where everything fits. Else, for a chain, joint where "
      "the profile's device has a link\nto host memory (unless --recompute_only); without "
      "one, beyond_persistent up to 128 stages, optimal_persistent\non longer ones, "
      "checkpoint_sequential on those too long for it; for a graph, joint or order_search "
      "likewise.\n"
      "A chain solver that copies nothing, named for a graph, plans it cut at its splitting "
      "vertices.\n");
}

Listing List() {
  Listing listing({{"name", "", "name"}, {"", "", "description"}, {"", "", "schedule_class"}});
  for (const SolverInfo& info : SolverInfos()) {
    listing.AddRow({Listing::Text(info.name), Listing::Text(info.description),
                    Listing::Text(info.schedule_class)});
  }
  return listing;
}

int Run() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  std::cout << (*format == Format::kText ? Text() : List().As(*format));
  return kExitOk;
}

}  // namespace

Command SolversCommand() {
  return {"solvers",
          "list the solvers there are",
          {"format"},
          Run,
          {"solvers", "solvers --format=csv"}};
}

}  // namespace stowage

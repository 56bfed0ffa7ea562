#include "client/cli/flag_values.h"

#include <utility>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "solvers/planner.h"
#include "solvers/zoo/device_kinds.h"
#include "solvers/zoo/networks.h"

namespace stowage {
namespace {

std::vector<std::string> SolverNames() {
  std::vector<std::string> names;
  for (const Solver* solver : AllSolvers()) names.push_back(solver->info().name);
  return names;
}

std::vector<std::string> NetworkNames() {
  std::vector<std::string> names;
  for (const auto* list : {&AllNetworks(), &AllDecoders()}) {
    for (const NetworkInfo& info : *list) names.push_back(info.name);
  }
  return names;
}

// Those that costs are modelled on, and those that a command trains on.
std::vector<std::string> DeviceNames() {
  std::vector<std::string> names;
  for (const DeviceKind& kind : AllDeviceKinds()) names.push_back(kind.name);
  names.insert(names.end(), {"cpu", "cuda"});
  return names;
}

FlagValues Words(std::vector<std::string> words, bool list = false) {
  return {FlagValues::Kind::kWord, std::move(words), list};
}

bool IsFile(const std::string& flag) {
  for (const char* file : {"profile", "in", "out", "catalogue", "measured", "trace", "svg",
                           "graph_picture", "script"}) {
    if (flag == file) return true;
  }
  return absl::EndsWith(flag, "_file");
}

}  // namespace

FlagValues ValuesOf(const std::string& flag) {
  if (absl::FindCommandLineFlag(flag)->IsOfType<bool>()) return {FlagValues::Kind::kNothing, {}};
  if (flag == "format") return Words({"text", "json", "csv"});
  if (flag == "solver" || flag == "compare_solver") return Words(SolverNames());
  if (flag == "model") return Words(NetworkNames());
  if (flag == "action") {
    return Words({"pin", "unpin", "rollback", "promote", "freeze", "unfreeze"});
  }
  if (flag == "optimizer") return Words({"none", "sgd", "momentum", "adam"});
  if (flag == "device") return Words(DeviceNames());
  if (flag == "loss") return Words({"cross_entropy", "mse", "sum"});
  if (flag == "budget" || flag == "compare_budget") return Words({"80%", "60%", "40%", "least"});
  if (flag == "budgets") return Words({"80%", "60%", "40%", "least"}, true);
  if (flag == "solvers") {
    std::vector<std::string> names = SolverNames();
    names.emplace_back("planner");
    return Words(std::move(names), true);
  }
  if (flag == "profiles" || flag == "plans") return {FlagValues::Kind::kFile, {}, true};
  if (IsFile(flag)) return {FlagValues::Kind::kFile, {}};
  return {};
}

}  // namespace stowage

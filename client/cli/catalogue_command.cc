// stowage catalogue: plans of the reference networks that were solved beforehand.
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/catalogue_flags.h"
#include "client/cli/catalogue_text.h"
#include "client/cli/commands.h"
#include "client/cli/delivery.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/modelled_network.h"
#include "client/cli/network_flags.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"
#include "client/cli/script_flags.h"
#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/schedule/simulation.h"
#include "solvers/zoo/catalogue.h"
#include "solvers/zoo/generate.h"
#include "solvers/zoo/networks.h"

ABSL_FLAG(std::string, tenant, "", "tenant of the jobs; empty for none");

namespace stowage {
namespace {

absl::StatusOr<std::vector<NetworkCatalogue>> Networks() {
  if (CatalogueFolder().empty()) {
    return FieldError("--catalogue", absl::StrCat("\"", absl::GetFlag(FLAGS_catalogue), "\""),
                      "must name a folder: none is installed beside the command (the sources have "
                      "solvers/zoo/data)");
  }
  return CatalogueFromFlag();
}

int ListCatalogue() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<std::vector<NetworkCatalogue>> networks = Networks();
  if (!networks.ok()) return Fail(networks.status());
  std::cout << ListingOf(*networks).As(*format);
  return kExitOk;
}

// One frontier of the catalogue with all that it is of.
struct CatalogueEntry {
  NetworkCatalogue network;
  CatalogueFrontier one;
  Problem problem;
  Frontier frontier;
  Simulation plain;
};

std::string SizeFlags(const NetworkOptions& wanted) {
  if (IsDecoder(wanted.name)) return absl::StrCat("--length=", wanted.length);
  return absl::StrCat("--image_size=", wanted.image, " --classes=", wanted.classes);
}

absl::StatusOr<CatalogueEntry> EntryFromFlags() {
  const absl::StatusOr<std::vector<NetworkCatalogue>> networks = Networks();
  if (!networks.ok()) return networks.status();
  const NetworkOptions wanted{absl::GetFlag(FLAGS_model), absl::GetFlag(FLAGS_image_size),
                              absl::GetFlag(FLAGS_batch), absl::GetFlag(FLAGS_classes),
                              absl::GetFlag(FLAGS_length)};
  const std::string device = absl::GetFlag(FLAGS_device);
  const bool graph = absl::GetFlag(FLAGS_graph);
  const CatalogueHit hit = FindInCatalogue(*networks, wanted, device, graph);
  if (hit.frontier == nullptr) {
    return absl::NotFoundError(absl::StrCat("the catalogue has no ", wanted.name, " with ",
                                            SizeFlags(wanted), " --batch=", wanted.batch,
                                            " --device=", device, graph ? " --graph" : "",
                                            "; `stowage catalogue ls` lists what it has"));
  }
  absl::StatusOr<Problem> problem = ProblemFor(*hit.network, *hit.frontier);
  if (!problem.ok()) return problem.status();
  absl::StatusOr<Frontier> frontier = ValidatedFrontier(*hit.network, *hit.frontier, *problem);
  if (!frontier.ok()) return frontier.status();
  const absl::StatusOr<Simulation> plain = Instance(*problem).store_all();
  if (!plain.ok()) return plain.status();
  return CatalogueEntry{*hit.network, *hit.frontier, *std::move(problem), *std::move(frontier),
                        *plain};
}

int ShowEntry() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<CatalogueEntry> entry = EntryFromFlags();
  if (!entry.ok()) return Fail(entry.status());
  if (*format == Format::kText) std::cout << ProvenanceText(entry->network, entry->one) << "\n";
  std::cout << ListingOf(entry->frontier, entry->plain).As(*format);
  return kExitOk;
}

int Print(const std::string& json) {
  const absl::Status delivered = Deliver(json, "");
  return delivered.ok() ? kExitOk : Fail(delivered);
}

// The plan for --budget, else the profile that all plans are for.
int Export() {
  const absl::StatusOr<CatalogueEntry> entry = EntryFromFlags();
  if (!entry.ok()) return Fail(entry.status());
  const absl::StatusOr<DeviceKind> kind = FindDeviceKind(entry->one.device);
  if (!kind.ok()) return Fail(kind.status());
  const Profile profile = ModelledProfile(entry->problem, kind->model);
  const std::string text = absl::GetFlag(FLAGS_budget);
  if (text.empty()) return Print(ToJson(ToProto(profile)));
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return Fail(budget.status());
  const absl::StatusOr<Bytes> bytes = ResolveBudget(profile, *budget, PlanOptions());
  if (!bytes.ok()) return Fail(bytes.status());
  const absl::StatusOr<Plan> plan =
      ValidatedPlanAt(entry->network, entry->frontier, entry->problem, *bytes);
  if (!plan.ok()) return Fail(plan.status());
  const int written = Print(ToJson(ToProto(*plan)));
  return written == kExitOk ? ExitCodeOf(plan->status) : written;
}

// What is shipped, or --model of it.
std::vector<CatalogueWish> WishesFromFlag() {
  const std::string model = absl::GetFlag(FLAGS_model);
  std::vector<CatalogueWish> wishes;
  for (const CatalogueWish& wish : ShippedWishes()) {
    if (model.empty() || model == wish.network) wishes.push_back(wish);
  }
  return wishes;
}

// Before the solving, which takes minutes.
absl::Status MakeFolder(const std::string& folder) {
  if (folder.empty()) return FieldError("--out", "\"\"", "must name a folder");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return FieldError("--out", folder, "cannot be made a folder: " + error.message());
}

// Anew, into --out.
int MakeCatalogueFiles() {
  const std::vector<CatalogueWish> wishes = WishesFromFlag();
  if (wishes.empty()) {
    return Fail(
        FieldError("--model", absl::GetFlag(FLAGS_model), "is none of those that are shipped"));
  }
  const std::string folder = absl::GetFlag(FLAGS_out);
  if (absl::Status made = MakeFolder(folder); !made.ok()) return Fail(made);
  for (const CatalogueWish& wish : wishes) {
    const absl::StatusOr<NetworkCatalogue> made = Generate(wish);
    if (!made.ok()) return Fail(made.status());
    const std::string path = absl::StrCat(folder, "/", wish.network, kCatalogueEnding);
    const std::string text = FormatCatalogue(*made);
    if (absl::Status status = WriteFile(path, text); !status.ok()) return Fail(status);
    std::cout << path << ": " << made->frontiers.size() << " frontiers, " << made->schedules.size()
              << " schedules, " << text.size() << " bytes" << std::endl;
  }
  return kExitOk;
}

int Environment() {
  const absl::StatusOr<Profile> profile = ProfileFromFlag();
  if (!profile.ok()) return Fail(profile.status());
  const absl::StatusOr<DeviceKind> kind = FindDeviceKind(absl::GetFlag(FLAGS_device));
  if (!kind.ok()) return Fail(kind.status());
  const absl::StatusOr<std::string> line =
      EnvironmentLine(kind->name, absl::GetFlag(FLAGS_tenant), profile->device);
  if (!line.ok()) return Fail(line.status());
  std::cout << *line << "\n";
  return kExitOk;
}

}  // namespace

Command CatalogueCommand() {
  Command show{"show",
               "the frontier of a network: every budget's step and peak",
               {"model", "image_size", "batch", "classes", "length", "graph", "device", "catalogue",
                "format"},
               ShowEntry};
  Command written{"export",
                  "write the plan for a budget, or the profile that plans are for, as JSON",
                  {"model", "image_size", "batch", "classes", "length", "graph", "device", "budget",
                   "catalogue", "out"},
                  Export};
  for (Command* command : {&show, &written}) {
    command->operands = {"model"};
    command->defaults = {{"batch", "32"}};
  }
  Command make{"make",
               "solve what is shipped anew, or one network of it, into a folder",
               {"model", "out"},
               MakeCatalogueFiles};
  make.operands = {"model"};
  make.defaults = {{"model", ""}};
  Command command{
      "catalogue", "plans of reference networks that were solved beforehand", {}, nullptr};
  Command list{"ls", "list networks, sizes and devices", {"catalogue", "format"}, ListCatalogue};
  Command environment{
      "environment",
      "write the line of stowaged's --catalogue_environments for jobs like one with a profile",
      {"profile", "device", "tenant"},
      Environment};
  make.examples = {"catalogue make resnet18 --out=."};
  list.examples = {"catalogue ls --catalogue=."};
  show.examples = {"catalogue show resnet18 --batch=32 --catalogue=."};
  written.examples = {"catalogue export resnet18 --budget=95% --catalogue=. --out=plan.json"};
  environment.examples = {"catalogue environment --profile=p.json --device=a100"};
  command.commands = {std::move(make), std::move(list), std::move(show), std::move(written),
                      std::move(environment)};
  return command;
}

}  // namespace stowage

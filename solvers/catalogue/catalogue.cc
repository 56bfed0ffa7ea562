#include "solvers/catalogue/catalogue.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "solvers/model/canonical.h"
#include "solvers/networks/profiled_graph.h"
#include "solvers/plan/schedule_code.h"

namespace stowage {
namespace {

std::string Words(const NetworkCatalogue& catalogue, const CatalogueFrontier& frontier) {
  return absl::StrCat("catalogue of ", catalogue.network, " (", SizeText(frontier), ", ",
                      frontier.device, ")");
}

FrontierBuilder BuilderFor(const Problem& problem) {
  return std::visit([](const auto& kind) { return FrontierBuilder(kind); }, problem);
}

// Form and size.
bool SameSize(const CatalogueFrontier& a, const CatalogueFrontier& b) {
  return a.graph == b.graph && a.image == b.image && a.batch == b.batch && a.classes == b.classes &&
         a.length == b.length;
}

NetworkOptions OptionsOf(const NetworkCatalogue& catalogue, const CatalogueFrontier& frontier) {
  NetworkOptions options;
  options.name = catalogue.network;
  options.batch = frontier.batch;
  if (frontier.length > 0) {
    options.length = frontier.length;
  } else {
    options.image = frontier.image;
    options.classes = frontier.classes;
  }
  return options;
}

// Adds the frontier's schedules; `numbers` gets theirs.
absl::Status AddSchedules(const NetworkCatalogue& catalogue, const CatalogueFrontier& frontier,
                          FrontierBuilder* builder, std::map<std::string, size_t>* numbers) {
  for (const size_t index : frontier.schedules) {
    const std::string& code = catalogue.schedules[index];
    const absl::StatusOr<Schedule> schedule = DecodeSchedule(code, kMaxInstructions);
    const absl::Status added = schedule.ok() ? builder->Add(*schedule) : schedule.status();
    if (!added.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(Words(catalogue, frontier), ": ", added.message()));
    }
    numbers->emplace(code, index);
  }
  return absl::OkStatus();
}

// Those of all devices at the size of `one`; `numbers` as above.
absl::StatusOr<Frontier> Merged(const NetworkCatalogue& catalogue, const CatalogueFrontier& one,
                                const Problem& problem, std::map<std::string, size_t>* numbers) {
  FrontierBuilder builder = BuilderFor(problem);
  for (const CatalogueFrontier& other : catalogue.frontiers) {
    if (!SameSize(one, other)) continue;
    const absl::Status added = AddSchedules(catalogue, other, &builder, numbers);
    if (!added.ok()) return added;
  }
  return builder.Build(one.info);
}

absl::StatusOr<CatalogueFrontier> FromOthers(const NetworkCatalogue& catalogue,
                                             CatalogueFrontier one, const std::string& device) {
  one.device = device;
  one.info.exact = false;
  const absl::StatusOr<Problem> problem = ProblemFor(catalogue, one);
  if (!problem.ok()) return problem.status();
  std::map<std::string, size_t> numbers;
  const absl::StatusOr<Frontier> all = Merged(catalogue, one, *problem, &numbers);
  if (!all.ok()) return all.status();
  one.schedules.clear();
  for (const size_t i : ChooseCompact(all->points(), kMostCataloguePoints)) {
    one.schedules.push_back(numbers.at(all->points()[i].schedule));
  }
  return one;
}

}  // namespace

bool IsOfSize(const CatalogueFrontier& frontier, const NetworkOptions& options) {
  if (frontier.batch != options.batch) return false;
  if (frontier.length > 0) return frontier.length == options.length;
  return frontier.image == options.image && frontier.classes == options.classes;
}

std::string SizeText(const CatalogueFrontier& frontier) {
  const std::string form = frontier.graph ? ", op by op" : "";
  if (frontier.length > 0) {
    return absl::StrCat("length ", frontier.length, ", batch ", frontier.batch, form);
  }
  return absl::StrCat("image ", frontier.image, ", batch ", frontier.batch, ", ", frontier.classes,
                      " classes", form);
}

absl::StatusOr<Problem> FormOf(const Network& network, bool graph, const DeviceModel& device) {
  if (graph) {
    absl::StatusOr<Graph> made = ProfiledGraphOf(network, device);
    return made.ok() ? absl::StatusOr<Problem>(*std::move(made)) : made.status();
  }
  absl::StatusOr<Chain> made = ChainOf(network, device);
  return made.ok() ? absl::StatusOr<Problem>(*std::move(made)) : made.status();
}

Digest StructureDigest(const Problem& problem) {
  return Sha256(
      CanonicalBytes(Profile{"", Device(), problem, CostSource::kModelled}, KeyOptions()));
}

absl::StatusOr<Problem> ProblemFor(const NetworkCatalogue& catalogue,
                                   const CatalogueFrontier& frontier) {
  const absl::StatusOr<DeviceKind> kind = FindDeviceKind(frontier.device);
  if (!kind.ok()) return kind.status();
  const absl::StatusOr<Network> network = MakeNetwork(OptionsOf(catalogue, frontier));
  if (!network.ok()) return network.status();
  absl::StatusOr<Problem> problem = FormOf(*network, frontier.graph, kind->model);
  if (!problem.ok()) return problem;
  if (StructureDigest(*problem) == frontier.structure) return problem;
  return absl::FailedPreconditionError(
      absl::StrCat(Words(catalogue, frontier), ": this version describes another network"));
}

absl::StatusOr<Frontier> RefereedFrontier(const NetworkCatalogue& catalogue,
                                          const CatalogueFrontier& frontier,
                                          const Problem& problem) {
  FrontierBuilder builder = BuilderFor(problem);
  std::map<std::string, size_t> numbers;
  const absl::Status added = AddSchedules(catalogue, frontier, &builder, &numbers);
  if (!added.ok()) return added;
  Frontier refereed = builder.Build(frontier.info);
  if (refereed.points().size() == frontier.schedules.size()) return refereed;
  return absl::FailedPreconditionError(absl::StrCat(
      Words(catalogue, frontier), ": ", frontier.schedules.size() - refereed.points().size(),
      " of its schedules are no faster than others that take less memory"));
}

absl::StatusOr<CatalogueFrontier> FrontierFor(const NetworkCatalogue& catalogue,
                                              const CatalogueFrontier& one,
                                              const std::string& device) {
  const auto& all = catalogue.frontiers;
  const auto own = std::find_if(all.begin(), all.end(), [&](const CatalogueFrontier& other) {
    return SameSize(one, other) && other.device == device;
  });
  return own != all.end() ? *own : FromOthers(catalogue, one, device);
}

absl::StatusOr<Frontier> FrontierOn(const NetworkCatalogue& catalogue, CatalogueFrontier one,
                                    const Problem& problem) {
  one.info.exact = false;
  one.info.least_budget = Bytes(0);  // workspaces are the problem's own
  std::map<std::string, size_t> numbers;
  return Merged(catalogue, one, problem, &numbers);
}

absl::StatusOr<std::vector<CatalogueFrontier>> FrontiersFor(const NetworkCatalogue& catalogue,
                                                            const std::string& device) {
  std::vector<CatalogueFrontier> frontiers;
  for (const CatalogueFrontier& one : catalogue.frontiers) {
    const auto is_size = [&one](const CatalogueFrontier& other) { return SameSize(one, other); };
    if (std::any_of(frontiers.begin(), frontiers.end(), is_size)) continue;
    absl::StatusOr<CatalogueFrontier> found = FrontierFor(catalogue, one, device);
    if (!found.ok()) return found.status();
    frontiers.push_back(*std::move(found));
  }
  return frontiers;
}

}  // namespace stowage

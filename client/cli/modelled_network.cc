#include "client/cli/modelled_network.h"

#include <utility>

#include "solvers/planner.h"
#include "solvers/zoo/catalogue.h"
#include "solvers/zoo/roofline.h"

namespace stowage {

absl::StatusOr<Profile> ModelledNetwork::At(int64_t batch_size) const {
  NetworkOptions options = network_;
  options.batch = batch_size;
  absl::StatusOr<Chain> chain = NetworkChain(options, kind_.model);
  if (!chain.ok()) return chain.status();
  Profile profile = ModelledProfile(*std::move(chain), kind_.model);
  profile.device = DescribeKind(kind_);
  return profile;
}

absl::StatusOr<ModelBytes> ModelledNetwork::ModelSize() const {
  NetworkOptions options = network_;
  options.batch = 1;
  const absl::StatusOr<Network> network = MakeNetwork(options);
  if (!network.ok()) return network.status();
  return BytesOfModel(*network);
}

absl::StatusOr<Plan> ValidatedPlanAt(const NetworkCatalogue& network, const Frontier& frontier,
                                     const Problem& problem, Bytes budget) {
  Plan plan = frontier.PlanAt(budget);
  plan.stage_vertices = StepVertices(problem);
  const absl::Status accepted =
      plan.status == PlanStatus::kFound ? ValidatePlan(problem, &plan) : absl::OkStatus();
  if (!accepted.ok()) return accepted;
  plan.provenance.solver_version = network.solver_version;
  return plan;
}

namespace {

// Where a catalogue has a structure.
CatalogueHit FindStructure(const std::vector<NetworkCatalogue>& networks, const Digest& structure) {
  for (const NetworkCatalogue& network : networks) {
    for (const CatalogueFrontier& one : network.frontiers) {
      if (one.structure == structure) return {&network, &one};
    }
  }
  return {};
}

absl::StatusOr<Frontier> FrontierOf(const CatalogueHit& hit, const std::string& device,
                                    const Problem& problem) {
  if (device.empty()) return FrontierOn(*hit.network, *hit.frontier, problem);
  const auto one = FrontierFor(*hit.network, *hit.frontier, device);
  if (!one.ok()) return one.status();
  return ValidatedFrontier(*hit.network, *one, problem);
}

}  // namespace

absl::StatusOr<std::optional<Plan>> PlanFromCatalogue(const std::vector<NetworkCatalogue>& networks,
                                                      const std::string& device,
                                                      const Profile& profile, Bytes budget) {
  const bool timeless = profile.cost_source == CostSource::kBytesOnly;
  if (device.empty() && !timeless) return std::optional<Plan>();
  const CatalogueHit hit = FindStructure(networks, StructureDigest(profile.problem));
  if (hit.frontier == nullptr) return std::optional<Plan>();
  const absl::StatusOr<Frontier> frontier = FrontierOf(hit, device, profile.problem);
  if (!frontier.ok()) return frontier.status();
  absl::StatusOr<Plan> plan = ValidatedPlanAt(*hit.network, *frontier, profile.problem, budget);
  if (!plan.ok()) return plan.status();
  if (plan->status == PlanStatus::kNotFound) return std::optional<Plan>();
  return std::optional<Plan>(*std::move(plan));
}

}  // namespace stowage

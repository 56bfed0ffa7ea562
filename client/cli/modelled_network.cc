#include "client/cli/modelled_network.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "solvers/networks/network_bytes.h"

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

absl::StatusOr<Plan> RefereedPlanAt(const NetworkCatalogue& network, const Frontier& frontier,
                                    const Chain& chain, Bytes budget) {
  absl::StatusOr<Plan> plan = frontier.PlanAt(budget);
  const absl::Status status = plan.ok() ? Referee(chain, &*plan) : plan.status();
  if (!status.ok()) return status;
  plan->provenance.solver_version = network.solver_version;
  return plan;
}

absl::StatusOr<std::optional<Plan>> PlanFromCatalogue(const std::vector<NetworkCatalogue>& networks,
                                                      const std::string& device,
                                                      const Profile& profile, Bytes budget) {
  const Chain* chain = std::get_if<Chain>(&profile.problem);
  if (chain == nullptr || networks.empty() || device.empty()) return std::optional<Plan>();
  const Digest structure = StructureDigest(*chain);
  for (const NetworkCatalogue& network : networks) {
    const auto has = [&structure](const CatalogueFrontier& one) {
      return one.structure == structure;
    };
    if (std::none_of(network.frontiers.begin(), network.frontiers.end(), has)) continue;
    const auto frontiers = FrontiersFor(network, device);
    if (!frontiers.ok()) return frontiers.status();
    const auto one = std::find_if(frontiers->begin(), frontiers->end(), has);
    const absl::StatusOr<Frontier> frontier = RefereedFrontier(network, *one, *chain);
    if (!frontier.ok()) return frontier.status();
    if (frontier->At(budget) == nullptr) return std::optional<Plan>();
    absl::StatusOr<Plan> plan = RefereedPlanAt(network, *frontier, *chain, budget);
    if (!plan.ok()) return plan.status();
    return std::optional<Plan>(*std::move(plan));
  }
  return std::optional<Plan>();
}

}  // namespace stowage

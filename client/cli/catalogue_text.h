// A catalogue for people and for programs.
#ifndef STOWAGE_CLIENT_CLI_CATALOGUE_TEXT_H_
#define STOWAGE_CLIENT_CLI_CATALOGUE_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/listing.h"
#include "solvers/model/device.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/simulation.h"
#include "solvers/zoo/catalogue.h"

namespace stowage {

// One row per network and image size.
Listing ListingOf(const std::vector<NetworkCatalogue>& networks);

// One row per point; `plain` is a step without a budget.
Listing ListingOf(const Frontier& frontier, const Simulation& plain);

// What the frontier is of, who made it, and that it is modelled.
std::string ProvenanceText(const NetworkCatalogue& network, const CatalogueFrontier& frontier);

// A line of stowaged's --catalogue_environments (server/catalogue/environment_file.h). INVALID_ARGUMENT for what
// such a line cannot say: quotes and ends of lines.
absl::StatusOr<std::string> EnvironmentLine(const std::string& kind, const std::string& tenant,
                                            const Device& device);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_CATALOGUE_TEXT_H_

// What the flags say about plans that were solved beforehand.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_CATALOGUE_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_CATALOGUE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/catalogue/environment_file.h"
#include "server/config/config_sources.h"
#include "solvers/zoo/catalogue.h"

namespace stowage {

// Both empty where there is no catalogue.
struct CatalogueConfig {
  std::vector<NetworkCatalogue> networks;
  std::vector<CatalogueEnvironment> environments;
};

// All that is in the folder and in the file. INVALID_ARGUMENT that names flag, value and what is wrong: one is
// set without the other, cannot be read, or has a mistake.
absl::StatusOr<CatalogueConfig> CatalogueConfigFromFlags(const ConfigSources& sources);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_CATALOGUE_H_

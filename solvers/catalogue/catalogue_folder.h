// All networks of a catalogue: a folder of files NETWORK.catalogue.
#ifndef STOWAGE_SOLVERS_CATALOGUE_CATALOGUE_FOLDER_H_
#define STOWAGE_SOLVERS_CATALOGUE_CATALOGUE_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/catalogue/catalogue.h"

namespace stowage {

inline constexpr char kCatalogueEnding[] = ".catalogue";

// By name of the file. INVALID_ARGUMENT that names the file: it cannot be read, or ParseCatalogue refuses it,
// or its network is not the one of its name; or there is no such folder, or none of these files in it.
absl::StatusOr<std::vector<NetworkCatalogue>> ReadCatalogue(const std::string& folder);

// The frontier of a network at a size on a device, as a chain or as a graph, and what it is in; null where there is
// none. O(frontiers).
struct CatalogueHit {
  const NetworkCatalogue* network = nullptr;
  const CatalogueFrontier* frontier = nullptr;
};
CatalogueHit FindInCatalogue(const std::vector<NetworkCatalogue>& networks,
                             const NetworkOptions& wanted, const std::string& device,
                             bool graph = false);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CATALOGUE_CATALOGUE_FOLDER_H_

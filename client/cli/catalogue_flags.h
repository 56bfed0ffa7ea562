// Where the command finds a catalogue.
#ifndef STOWAGE_CLIENT_CLI_CATALOGUE_FLAGS_H_
#define STOWAGE_CLIENT_CLI_CATALOGUE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "solvers/zoo/catalogue.h"

ABSL_DECLARE_FLAG(std::string, catalogue);

namespace stowage {

// --catalogue; if that is empty, the one that is installed beside the command; "" if there is none, or the flag is
// "none".
std::string CatalogueFolder();

// What is in that folder; empty without one. Errors: ReadCatalogue.
absl::StatusOr<std::vector<NetworkCatalogue>> CatalogueFromFlag();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_CATALOGUE_FLAGS_H_

// Makes a catalogue: solves the frontiers, chooses their points, numbers the schedules.
#ifndef STOWAGE_SOLVERS_CATALOGUE_GENERATE_H_
#define STOWAGE_SOLVERS_CATALOGUE_GENERATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/catalogue/catalogue.h"

namespace stowage {

// What the catalogue has of one network.
struct CatalogueWish {
  std::string network;
  std::vector<int64_t> sizes;  // pixels on a side; of decoders tokens of a sequence
  std::vector<int64_t> batches;
};

// What is shipped: each on each of these.
const std::vector<CatalogueWish>& ShippedWishes();
const std::vector<std::string>& ShippedDevices();

// Solved on the calling thread, by the planner's choice of a solver, which for chains is the same from run
// to run. Errors: those of FindDeviceKind, NetworkChain and MakeChainFrontier.
absl::StatusOr<NetworkCatalogue> Generate(const CatalogueWish& wish,
                                          const std::vector<std::string>& devices);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CATALOGUE_GENERATE_H_

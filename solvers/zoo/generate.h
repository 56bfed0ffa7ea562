// Makes a catalogue: solves the frontiers, chooses their points, numbers the schedules.
#ifndef STOWAGE_SOLVERS_ZOO_GENERATE_H_
#define STOWAGE_SOLVERS_ZOO_GENERATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/zoo/catalogue.h"

namespace stowage {

// What the catalogue has of one network.
struct CatalogueWish {
  std::string network;
  std::vector<int64_t> sizes;  // pixels on a side; of decoders tokens of a sequence
  std::vector<int64_t> batches;
  std::vector<std::string> devices;
  int64_t classes = 1000;
  // Op by op. What is solved is the first batch on the first device alone, a search of seconds: the others take its
  // schedules, replayed. Memory and times of all ops grow with the batch much alike.
  bool graph = false;
};

// What is shipped.
const std::vector<CatalogueWish>& ShippedWishes();

// Solved on the calling thread, by the planner's choice of a solver, which counts its effort and looks at no clock: it
// is the same from run to run, for chains and for graphs. Errors: those of FindDeviceKind, MakeNetwork, FormOf and
// MakeFrontier.
absl::StatusOr<NetworkCatalogue> Generate(const CatalogueWish& wish);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_GENERATE_H_

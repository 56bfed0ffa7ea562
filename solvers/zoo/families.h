// The networks of images by family. Internal to solvers/zoo.
#ifndef STOWAGE_SOLVERS_ZOO_FAMILIES_H_
#define STOWAGE_SOLVERS_ZOO_FAMILIES_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/zoo/networks.h"

namespace stowage {

struct ImageNetwork {
  NetworkInfo info;
  // Of options whose name is the network's. Errors: see MakeNetwork (networks.h).
  std::function<absl::StatusOr<Network>(const NetworkOptions&)> make;
};

// In the order of AllNetworks.
const std::vector<ImageNetwork>& ImageNetworks();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_FAMILIES_H_

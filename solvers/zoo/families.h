// The families of networks. Every function returns NOT_FOUND for a name that is none
// of its own; see MakeNetwork (networks.h) for the other errors.
#ifndef STOWAGE_SOLVERS_ZOO_FAMILIES_H_
#define STOWAGE_SOLVERS_ZOO_FAMILIES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/zoo/networks.h"

namespace stowage {

std::vector<NetworkInfo> ResNets();
absl::StatusOr<Network> MakeResNet(const NetworkOptions& options);

std::vector<NetworkInfo> DenseNets();
absl::StatusOr<Network> MakeDenseNet(const NetworkOptions& options);

std::vector<NetworkInfo> Inceptions();
absl::StatusOr<Network> MakeInception(const NetworkOptions& options);

std::vector<NetworkInfo> Vggs();
absl::StatusOr<Network> MakeVgg(const NetworkOptions& options);

std::vector<NetworkInfo> AlexNets();
absl::StatusOr<Network> MakeAlexNet(const NetworkOptions& options);

std::vector<NetworkInfo> CellNetworks();
absl::StatusOr<Network> MakeCellNetwork(const NetworkOptions& options);

// Of AllDecoders().
absl::StatusOr<Network> MakeNamedDecoder(const NetworkOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_FAMILIES_H_

// A catalogue: frontiers that were solved beforehand, of the reference networks as chains or as graphs,
// at usual sizes, on modelled devices. It holds no environments: who puts a catalogue into a
// store chooses the keys, and so the environments that get these plans.
//
// Decoders are there with their output layer tied to the embedding or not: the same problem. Only
// schedules are kept, each once per network; their memory and time are always computed by the evaluator,
// under costs that are modelled anew (solvers/zoo/roofline.h). Within a frontier peaks rise and
// makespans fall. The format of the files is in README.md. The same generator, solvers and networks
// make the same bytes.
#ifndef STOWAGE_SOLVERS_ZOO_CATALOGUE_H_
#define STOWAGE_SOLVERS_ZOO_CATALOGUE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/digest.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/frontier.h"
#include "solvers/zoo/device_kinds.h"
#include "solvers/zoo/networks.h"

namespace stowage {

inline constexpr int64_t kGeneratorVersion = 1;

// Of one frontier at most: entries of caches hold few plans.
inline constexpr size_t kMostCataloguePoints = 48;

struct CatalogueFrontier {
  bool graph = false;  // op by op (solvers/zoo/network_graph.h), not a chain of stages
  int64_t image = 0;   // pixels on a side; 0 for a decoder
  int64_t batch = 0;
  int64_t classes = 0;  // 0 for a decoder
  int64_t length = 0;   // tokens of a sequence of a decoder; 0 for a network of images
  std::string device;   // a kind of solvers/zoo/device_kinds.h
  FrontierInfo info;
  Digest structure;               // StructureDigest of the chain
  std::vector<size_t> schedules;  // of NetworkCatalogue::schedules
};

struct NetworkCatalogue {
  std::string network;
  int64_t generator = kGeneratorVersion;
  std::string solver_version;
  std::vector<std::string> schedules;
  std::vector<CatalogueFrontier> frontiers;
};

// Whether a frontier is of that size; name and form are not looked at.
bool IsOfSize(const CatalogueFrontier& frontier, const NetworkOptions& options);

// "image 224, batch 32, 1000 classes", "length 1024, batch 8", and ", op by op" of a graph.
std::string SizeText(const CatalogueFrontier& frontier);

// The network as a graph of all ops (ProfiledGraphOf), or as a chain of stages (ChainOf).
absl::StatusOr<Problem> FormOf(const Network& network, bool graph, const DeviceModel& device);

// FormOf the network that MakeNetwork makes, on the device of FindDeviceKind; with their errors.
absl::StatusOr<Problem> ModelledProblem(const NetworkOptions& options, bool graph,
                                        const std::string& device);

// What of a problem a catalogue's schedules are for: all that a key takes of it, of no tenant and no device.
Digest StructureDigest(const Problem& problem);

std::string FormatCatalogue(const NetworkCatalogue& catalogue);
// Takes only what FormatCatalogue writes; INVALID_ARGUMENT that names the line and the rule. Whether the schedules are
// valid for the network is not looked at. O(bytes).
absl::StatusOr<NetworkCatalogue> ParseCatalogue(const std::string& text);

// The network at that size, with costs modelled on that device. FAILED_PRECONDITION when it is not the
// one that the frontier was made for: this version describes the network in another way. Else the errors of
// FindDeviceKind, MakeNetwork and FormOf.
absl::StatusOr<Problem> ProblemFor(const NetworkCatalogue& catalogue,
                                   const CatalogueFrontier& frontier);

// Its points, each replayed by the evaluator on `problem`, that of ProblemFor. FAILED_PRECONDITION if it refuses
// one, or if peaks do not rise or makespans do not fall. O(points x instructions).
absl::StatusOr<Frontier> ValidatedFrontier(const NetworkCatalogue& catalogue,
                                           const CatalogueFrontier& frontier,
                                           const Problem& problem);

// The frontier for a kind of device at the size of `one`: the one that was made for it; else of all schedules that
// were made for other kinds those that are the fastest on this one, which its own may beat. Errors: those of ProblemFor
// and ValidatedFrontier. O(points of all kinds x instructions).
absl::StatusOr<CatalogueFrontier> FrontierFor(const NetworkCatalogue& catalogue,
                                              const CatalogueFrontier& one,
                                              const std::string& device);

// Of all schedules that were made at the size of `one` those that are the fastest on `problem`, one of the same
// structure with costs of its own: nothing is proven for it. Errors and complexity as above.
absl::StatusOr<Frontier> FrontierOn(const NetworkCatalogue& catalogue, CatalogueFrontier one,
                                    const Problem& problem);

// FrontierFor for every size that the catalogue has, each once.
absl::StatusOr<std::vector<CatalogueFrontier>> FrontiersFor(const NetworkCatalogue& catalogue,
                                                            const std::string& device);

// All networks of a catalogue: a folder of files NETWORK.catalogue.

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

#endif  // STOWAGE_SOLVERS_ZOO_CATALOGUE_H_

// The reference networks of the checkpointing literature as planning problems, without a framework
// and without a device: exact bytes from shapes, times modelled.
//
// Bytes are those that the profiler of client/torch measures on the same network with LibTorch 1.13
// on the CPU, in float32 and in training mode, up to the workspace of convolutions
// (solvers/zoo/network_builder.h). Times are modelled (solvers/zoo/roofline.h) and never
// anything else.
#ifndef STOWAGE_SOLVERS_ZOO_NETWORKS_H_
#define STOWAGE_SOLVERS_ZOO_NETWORKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/problem.h"
#include "solvers/zoo/network.h"
#include "solvers/zoo/roofline.h"

namespace stowage {

struct NetworkInfo {
  std::string name;         // "resnet50"
  std::string description;  // one line
  bool chain = true;        // it has several stages of like size: worth planning as a chain
};

// All networks of images of fixed depth, in the order in which they are listed to people.
const std::vector<NetworkInfo>& AllNetworks();

// The decoders that have a name: those of GPT-2, without its embedding of positions and its dropout.
const std::vector<NetworkInfo>& AllDecoders();
bool IsDecoder(const std::string& name);

struct NetworkOptions {
  std::string name;     // one of AllNetworks() or AllDecoders()
  int64_t image = 224;  // pixels on a side; not looked at for decoders, nor are classes
  int64_t batch = 1;
  int64_t classes = 1000;
  int64_t length = 1024;  // tokens of a sequence; not looked at for networks of images
};

// Decoders by name have their output layer tied to the embedding (Network::tied_embedding).
// INVALID_ARGUMENT: unknown name (the message lists all), an argument < 1, an image too small for
// the network, tensors too large to count. O(ops).
absl::StatusOr<Network> MakeNetwork(const NetworkOptions& options);

// A decoder as in GPT-2: embedding, `layers` equal stages of causal attention and a feed-forward
// part four times as wide, then norm and output layer over the vocabulary. No dropout.
struct DecoderOptions {
  int64_t layers = 24;
  int64_t width = 1600;
  int64_t heads = 25;  // divides width
  int64_t length = 1024;
  int64_t vocabulary = 50257;
  int64_t batch = 8;
  // Attention in one kernel, which keeps no matrix of scores (OpKind::kAttention); else op by op.
  bool fused_attention = false;
};

// What a named decoder is at that length and batch. NOT_FOUND for a name that is none of AllDecoders().
absl::StatusOr<DecoderOptions> NamedDecoder(const NetworkOptions& options);

// INVALID_ARGUMENT: an argument < 1, heads that do not divide the width, tensors too large to
// count.
absl::StatusOr<Network> MakeDecoder(const DecoderOptions& options);

// The network as a chain: its stages one by one. Errors: those of ValidateDeviceModel and of
// Chain::Create.
absl::StatusOr<Chain> ChainOf(const Network& network, const DeviceModel& device);

// MakeNetwork and ChainOf in one.
absl::StatusOr<Chain> NetworkChain(const NetworkOptions& options, const DeviceModel& device);

// The chain or graph as a profile whose costs are marked as modelled.
Profile ModelledProfile(Problem problem, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_NETWORKS_H_

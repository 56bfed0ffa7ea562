// The reference networks by name.
#ifndef STOWAGE_CLIENT_MODELS_MODELS_H_
#define STOWAGE_CLIENT_MODELS_MODELS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "solvers/zoo/networks.h"

namespace stowage {

struct ModelOptions {
  int64_t classes = 1000;
  uint64_t seed = 0;      // of the parameters: equal seeds, equal models
  int64_t image = 224;    // pixels on a side
  int64_t length = 1024;  // tokens of a sequence, of decoders
  c10::Device device = c10::kCPU;
};

// Those of AllNetworks() in solvers/zoo; MakeModel takes those of AllDecoders(), too.
const std::vector<std::string>& ModelNames();

// In training mode, with cross-entropy as its loss. LibTorch's random state is left as it was.
// INVALID_ARGUMENT: unknown name (the message lists all), classes < 1, an image too small.
absl::StatusOr<ChainModel> MakeModel(const std::string& name, const ModelOptions& options = {});

// The same op by op.
absl::StatusOr<GraphModel> MakeGraphModel(const std::string& name,
                                          const ModelOptions& options = {});

// A decoder as in GPT-2, each position sees those before it. `tied_embedding`: the head's weight is
// that of the embedding. INVALID_ARGUMENT: as MakeDecoder.
absl::StatusOr<ChainModel> MakeDecoderModel(const DecoderOptions& options,
                                            bool tied_embedding = false, uint64_t seed = 0,
                                            c10::Device device = c10::kCPU);

struct Sample {
  at::Tensor input;   // [batch, 3, side, side], normal; or [batch, length], tokens
  at::Tensor target;  // [batch], class indices; or [batch, length], tokens
};

// Random images and labels for any of the networks; the same for the same arguments, on any device.
// LibTorch's random state is left as it was. INVALID_ARGUMENT that names it: an argument < 1.
absl::StatusOr<Sample> MakeImageSample(int64_t batch, int64_t side, int64_t classes, uint64_t seed,
                                       c10::Device device = c10::kCPU);

// Random tokens, [batch, length], each of which is to be followed by a random one.
absl::StatusOr<Sample> MakeTokenSample(int64_t batch, int64_t length, int64_t vocabulary,
                                       uint64_t seed, c10::Device device = c10::kCPU);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_MODELS_H_

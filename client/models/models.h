// The reference networks by name.
#ifndef STOWAGE_CLIENT_MODELS_MODELS_H_
#define STOWAGE_CLIENT_MODELS_MODELS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/chain_model.h"

namespace stowage {

struct ModelOptions {
  int64_t classes = 1000;
  uint64_t seed = 0;  // of the parameters: equal seeds, equal models
};

// "resnet18", ..., in the order in which they are listed to people.
const std::vector<std::string>& ModelNames();

// In training mode, with cross-entropy as its loss. LibTorch's random state is left as it was.
// INVALID_ARGUMENT: unknown name (the message lists all), classes < 1.
absl::StatusOr<ChainModel> MakeModel(const std::string& name, const ModelOptions& options = {});

struct Sample {
  at::Tensor input;   // [batch, 3, side, side], normal
  at::Tensor target;  // [batch], class indices
};

// Random images and labels for any of the networks; the same for the same arguments. LibTorch's
// random state is left as it was. INVALID_ARGUMENT: an argument < 1.
absl::StatusOr<Sample> MakeImageSample(int64_t batch, int64_t side, int64_t classes, uint64_t seed);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_MODELS_H_

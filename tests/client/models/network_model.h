// A described network (solvers/networks) run by LibTorch: every op becomes the call of the function
// that it stands for.
#ifndef STOWAGE_TESTS_CLIENT_MODELS_NETWORK_MODEL_H_
#define STOWAGE_TESTS_CLIENT_MODELS_NETWORK_MODEL_H_

#include <ATen/core/Tensor.h>

#include "client/torch/chain_model.h"
#include "solvers/networks/network.h"

namespace stowage {

enum class Convolutions {
  kReal,
  // Zeros in the memory of a convolution: allocates and saves what a convolution must and no
  // workspace.
  kHollow,
};

// Frees a tensor after its last reader in the stage. The last stage becomes the loss.
ChainModel ModelOf(const Network& network, Convolutions convolutions);

// Random images or, for a network that starts with an embedding, token numbers.
at::Tensor InputOf(const Network& network);
// Class indices for the loss.
at::Tensor TargetOf(const Network& network);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_MODELS_NETWORK_MODEL_H_

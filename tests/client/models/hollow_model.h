// Described networks whose convolutions take no workspace, and tensors to run them on.
#ifndef STOWAGE_TESTS_CLIENT_MODELS_HOLLOW_MODEL_H_
#define STOWAGE_TESTS_CLIENT_MODELS_HOLLOW_MODEL_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/models/network_model.h"

namespace stowage {

// RunOp, but zeros in place of convolutions: allocates and saves what a convolution must and no more.
at::Tensor RunHollow(const NetworkOp& op, const OpState& state, std::vector<at::Tensor> inputs);
ChainModel HollowModelOf(const Network& network);

// Random images or, for a network that starts with an embedding, token numbers.
at::Tensor InputOf(const Network& network);
// Class indices for the loss.
at::Tensor TargetOf(const Network& network);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_MODELS_HOLLOW_MODEL_H_

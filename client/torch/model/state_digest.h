// Digests of a model's tensors: two runs are equal bit for bit when these are.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_STATE_DIGEST_H_
#define STOWAGE_CLIENT_TORCH_MODEL_STATE_DIGEST_H_

#include "client/torch/model/model_tensors.h"
#include "solvers/model/digest.h"

namespace stowage {

// SHA-256 over the bytes of all tensors in the order of the model. An undefined gradient counts as
// one of no bytes.
Digest ParameterDigest(const ModelTensors& model);
Digest GradientDigest(const ModelTensors& model);
Digest BufferDigest(const ModelTensors& model);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_STATE_DIGEST_H_

// What the parts of a model use that its caller has not listed: found by running each of them once and looking at its
// operations.
//
//   ChainModel model("mlp");
//   model.AddFunction("fc1", "", [fc1](const at::Tensor& x) mutable { return fc1->forward(x).relu(); });
//   model.SetLoss("", [](const at::Tensor& y, const at::Tensor& t) { return at::mse_loss(y, t); });
//   absl::Status found = FindState(input, target, &model);
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_FOUND_STATE_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_FOUND_STATE_H_

#include "absl/status/status.h"
#include "client/torch/base/tensors.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"

namespace stowage {

// Adds to each stage or node, and nothing to what it lists already:
// - parameters: leaves that ask for a gradient and that an operation of it reads;
// - buffers: other tensors from outside of it that it writes to;
// - op_kind, where it is empty: a digest of its operations and their numbers. Sizes that a view is given are left out, so
//   that it is the same for batches of other sizes. Two that compute different things by the same operations, on
//   constants of their own say, need names of their own.
//
// Runs one forward on the sample, in the modes that the caller's modules are in, then puts random state and buffers back. Of a
// chain's loss that cannot do without targets and has none, nothing is found.
//
// INVALID_ARGUMENT, and a model as it was, for a part that reads a tensor with a graph from outside of its inputs (whose
// gradients no plan could give), or that throws; the message names the part. Not thread-safe. O(operations + bytes of what
// is read from outside).
absl::Status FindState(const Tensors& inputs, const Tensors& targets, ChainModel* model);
absl::Status FindState(const Tensors& inputs, const Tensors& targets, GraphModel* model);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_FOUND_STATE_H_

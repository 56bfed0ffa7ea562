#include "solvers/networks/network_bytes.h"

#include <algorithm>

namespace stowage {
namespace {

// Of the weight that the last linear layer shares with the embedding.
Bytes TiedBytes(const Network& network) {
  if (!network.tied_embedding) return Bytes(0);
  const auto is_embedding = [](const NetworkOp& op) { return op.kind == OpKind::kEmbedding; };
  return std::find_if(network.ops.begin(), network.ops.end(), is_embedding)->parameter_bytes();
}

}  // namespace

ModelBytes BytesOfModel(const Network& network) {
  ModelBytes bytes;
  for (const NetworkOp& op : network.ops) {
    bytes.parameters += op.parameter_bytes();
    // A mean and a variance per channel.
    if (op.kind == OpKind::kBatchNorm) bytes.buffers += Bytes(2 * op.shape[1] * kFloatBytes);
  }
  bytes.tied = TiedBytes(network);
  bytes.parameters -= bytes.tied;
  bytes.trained = bytes.parameters;
  return bytes;
}

}  // namespace stowage

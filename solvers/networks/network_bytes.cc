#include "solvers/networks/network_bytes.h"

namespace stowage {

ModelBytes BytesOfModel(const Network& network) {
  ModelBytes bytes;
  for (const NetworkOp& op : network.ops) {
    bytes.parameters += op.parameter_bytes();
    // A mean and a variance per channel.
    if (op.kind == OpKind::kBatchNorm) bytes.buffers += Bytes(2 * op.shape[1] * kFloatBytes);
  }
  bytes.trained = bytes.parameters;
  return bytes;
}

}  // namespace stowage

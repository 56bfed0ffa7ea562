// Counts one call: started when made, handled once.
#ifndef STOWAGE_SERVER_RPC_RPC_RECORD_H_
#define STOWAGE_SERVER_RPC_RPC_RECORD_H_

#include <grpcpp/support/status.h>

#include <chrono>

#include "server/metrics/server_metrics.h"

namespace stowage {

class RpcRecord {
 public:
  // `metrics` outlives this object.
  RpcRecord(Rpc rpc, ServerMetrics* metrics);

  // Returns `status`, counted. Call it once.
  grpc::Status Handled(grpc::Status status) const;

 private:
  const Rpc rpc_;
  ServerMetrics* const metrics_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_RPC_RECORD_H_

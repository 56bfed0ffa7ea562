// Errors of the server as statuses on the wire: google.rpc.Status with the details of proto/codec/grpc_status.h
// in the trailer grpc-status-details-bin. Every error of this server takes this way.
#ifndef STOWAGE_SERVER_RPC_RPC_STATUS_H_
#define STOWAGE_SERVER_RPC_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace stowage {

// Every error carries a reason, its own (PLAN_NOT_CACHED, QUEUE_FULL, DRAINING) or else the name of its
// code, and the figures that planning gave it.
grpc::Status ToWireStatus(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_RPC_STATUS_H_

// Whether a server serves, as its health service (grpc.health.v1) says: what supervisors ask.
#ifndef STOWAGE_CLIENT_RPC_HEALTH_PROBE_H_
#define STOWAGE_CLIENT_RPC_HEALTH_PROBE_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "client/rpc/grpc_options.h"

namespace stowage {

// OK if `service` is SERVING; "" stands for the whole server. UNAVAILABLE if it is not, or the server cannot be reached within
// `patience`; NOT_FOUND if the server knows no such service; UNIMPLEMENTED if it has no health service; INVALID_ARGUMENT for options
// that CheckGrpcOptions refuses and files that cannot be read. Blocks. Thread-safe.
absl::Status ProbeHealth(const GrpcOptions& server, const std::string& service,
                         std::chrono::nanoseconds patience);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_HEALTH_PROBE_H_

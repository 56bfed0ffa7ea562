// How to reach a server. Insecure credentials only: keep it on loopback, a unix socket or a trusted
// network.
#ifndef STOWAGE_CLIENT_RPC_GRPC_OPTIONS_H_
#define STOWAGE_CLIENT_RPC_GRPC_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "solvers/model/units.h"

namespace stowage {

struct GrpcOptions {
  // "host:port", "unix:/path", "dns:///name:port".
  std::string address;
  // Of one message, either way; RESOURCE_EXHAUSTED beyond it. The server has its own limit.
  Bytes message_limit{int64_t{64} << 20};
  // How long to wait for a connection; of a call with a deadline at most half of what is left, so
  // that time remains to plan without the server.
  std::chrono::milliseconds connect_timeout{2000};
  // For each attempt of a call without a deadline.
  std::chrono::milliseconds default_timeout{120000};
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_OPTIONS_H_

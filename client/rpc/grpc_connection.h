// Plans from a server, over gRPC.
#ifndef STOWAGE_CLIENT_RPC_GRPC_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_GRPC_CONNECTION_H_

#include <memory>

#include "client/rpc/grpc_options.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

// Opens no connection and creates nothing of gRPC before the first call. A process that forks after
// that call must not use the connection in the child: calls there answer FAILED_PRECONDITION at
// once, where gRPC itself would hang. An address that stands for several servers is a routed connection
// (routed_connection.h): a name is looked up when first used and every 5 s while there are calls, by a thread of its
// own; UNAVAILABLE with the reason while it is unknown. TLS certificates are checked for the name.
std::unique_ptr<PlanConnection> MakeGrpcConnection(const GrpcOptions& options);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_CONNECTION_H_

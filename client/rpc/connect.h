// The connection that most callers want, put together: a server behind retries, and this process
// when it stays away, or would be first.
#ifndef STOWAGE_CLIENT_RPC_CONNECT_H_
#define STOWAGE_CLIENT_RPC_CONNECT_H_

#include <functional>
#include <memory>
#include <string>

#include "client/rpc/fallback_connection.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/plan_connection.h"
#include "client/rpc/retrying_connection.h"

namespace stowage {

// With an empty address, local planning alone. Otherwise `said` is told once when planning falls
// back to this process.
std::unique_ptr<PlanConnection> Connect(const GrpcOptions& options,
                                        std::function<void(const std::string&)> said,
                                        const RetryPolicy& policy = {},
                                        const FallbackPolicy& fallback = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_CONNECT_H_

#include "client/rpc/connect.h"

#include <utility>

#include "client/rpc/local_connection.h"

namespace stowage {

std::unique_ptr<PlanConnection> Connect(const GrpcOptions& options,
                                        std::function<void(const std::string&)> said,
                                        const RetryPolicy& policy, const FallbackPolicy& fallback) {
  if (options.address.empty()) return MakeLocalConnection();
  return MakeFallbackConnection(MakeRetryingConnection(MakeGrpcConnection(options), policy),
                                MakeLocalConnection(), std::move(said), fallback);
}

}  // namespace stowage

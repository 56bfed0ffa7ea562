#include "client/rpc/connect.h"

#include <utility>

#include "client/rpc/fallback_connection.h"
#include "client/rpc/local_connection.h"

namespace stowage {

std::unique_ptr<PlanConnection> Connect(const GrpcOptions& options,
                                        std::function<void(const std::string&)> said,
                                        const RetryPolicy& policy) {
  if (options.address.empty()) return MakeLocalConnection();
  return MakeFallbackConnection(MakeRetryingConnection(MakeGrpcConnection(options), policy),
                                MakeLocalConnection(), std::move(said));
}

}  // namespace stowage

// The gRPC server: PlanService, grpc.health.v1.Health and reflection on one address.
#ifndef STOWAGE_SERVER_RPC_RPC_SERVER_H_
#define STOWAGE_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/server.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/plan_rpc_service.h"

namespace stowage {

struct RpcServerOptions {
  std::string listen = "127.0.0.1:7070";  // or "unix:PATH"; port 0 for any
  std::string version;
  RequestLimits limits;
};

class RpcServer {
 public:
  // Serving when it returns. UNAVAILABLE when the address cannot be bound. Both pointers outlive
  // the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options,
                                                          PlanningService* planning,
                                                          ServerMetrics* metrics);
  ~RpcServer();

  // As bound: a port of 0 has become a number.
  const std::string& address() const { return address_; }

  // Health says NOT_SERVING from now on; calls are still answered.
  void SetNotServing();

  // Refuses new calls, cancels what is open at `deadline`, waits for the handlers. Idempotent.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  explicit RpcServer(std::unique_ptr<PlanRpcService> service) : service_(std::move(service)) {}

  std::unique_ptr<PlanRpcService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_RPC_SERVER_H_

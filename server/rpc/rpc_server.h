// The gRPC server: PlanService, PlanAdminService, grpc.health.v1.Health and reflection on one address.
#ifndef STOWAGE_SERVER_RPC_RPC_SERVER_H_
#define STOWAGE_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/server.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/auth/server_certificates.h"
#include "server/auth/tls_credentials.h"
#include "server/rpc/plan_admin_rpc_service.h"
#include "server/rpc/plan_rpc_service.h"
#include "server/rpc/unknown_methods.h"

namespace stowage {

// Of the health service, beside "" and stowage.v1.PlanService: whether new work should be sent here. Not
// while the server drains. A full queue is no reason: what is cached is answered, and what is shed says
// when to come again, where an address that is gone says nothing.
inline constexpr char kReadyService[] = "stowage.v1.PlanService/ready";

struct RpcServerOptions {
  std::string listen = "127.0.0.1:7070";  // or "unix:PATH"; port 0 for any
  std::string version;
  RequestLimits limits;
  ServerTlsOptions tls;
  mode_t unix_socket_mode = 0600;
  // Memory that gRPC may take for all connections and what comes and goes on them; beyond it calls are
  // refused. 0: no bound.
  size_t transport_bytes = 0;
  // Calls that one connection may have open; more of them wait at the client. Else one peer has as many
  // as it likes in memory before any of them is looked at. A proxy has many clients behind a connection.
  int max_connection_calls = 1000;
  // After it, and up to a tenth more or less, a connection takes no new calls: clients that balance
  // find servers that came later. Zero: never.
  std::chrono::milliseconds max_connection_age{0};
  Log* log = nullptr;  // null: nothing is logged
  // Null: everyone may do everything. Needs TLS or an address of this machine, and a log.
  const Authenticator* authenticator = nullptr;
  AuditLog* audit = nullptr;  // null: there is none
  ReportedSteps* reported_steps =
      nullptr;                        // of the servers that share the store; null: it is this one's
  DecisionBook* decisions = nullptr;  // null: none can be exported or imported
  Tracer* tracer = nullptr;           // null: no call is traced
  double trace_share = 0;  // of calls without a traceparent, those that begin a trace; in [0, 1]
};

class RpcServer {
 public:
  // Serving when it returns. UNAVAILABLE when the address cannot be bound, FAILED_PRECONDITION when
  // callers could not be told apart there, else as ServerCertificates::Make. `store` is that of `planning`. All pointers outlive the
  // server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options,
                                                          PlanningService* planning,
                                                          PlanStore* store, ServerMetrics* metrics);
  ~RpcServer();

  // As bound: a port of 0 has become a number.
  const std::string& address() const { return address_; }

  // Health says NOT_SERVING from now on, of every service; calls are still answered.
  void SetNotServing();

  // Tells connections to take no new calls and takes no new ones, cancels what is open at `deadline`,
  // waits for the handlers. Idempotent.
  void Shutdown(std::chrono::system_clock::time_point deadline);

  // Cancels what is open. Only while another thread is in Shutdown.
  void CancelCalls();

 private:
  RpcServer(std::unique_ptr<PlanRpcService> service,
            std::unique_ptr<PlanAdminRpcService> admin_service,
            std::unique_ptr<UnknownMethods> unknown_methods)
      : service_(std::move(service)),
        admin_service_(std::move(admin_service)),
        unknown_methods_(std::move(unknown_methods)) {}

  std::unique_ptr<PlanRpcService> service_;
  std::unique_ptr<PlanAdminRpcService> admin_service_;
  std::unique_ptr<UnknownMethods> unknown_methods_;
  std::unique_ptr<ServerCertificates> certificates_;  // null without TLS
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_RPC_SERVER_H_

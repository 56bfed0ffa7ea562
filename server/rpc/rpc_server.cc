#include "server/rpc/rpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/auth/auth_processor.h"

namespace stowage {
namespace {

std::string BoundAddress(const std::string& listen, int port) {
  if (absl::StartsWith(listen, "unix:")) return listen;
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

// A client that vanished without a word is noticed in 25 s, and its solve stopped; one that it watched
// waits for it first (PlanningOptions::watch_grace). Clients may ping as often as every 10 s, also
// between calls: gRPC's default would end such a connection.
void KeepAlive(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10000);
}

std::shared_ptr<grpc::ServerCredentials> Credentials(const RpcServerOptions& options,
                                                     const ServerCertificates* certificates,
                                                     ServerMetrics* metrics) {
  const bool identified = options.authenticator != nullptr;
  auto credentials = MakeServerCredentials(options.tls, certificates, options.listen, identified);
  if (identified) {
    credentials->SetAuthMetadataProcessor(
        std::make_shared<AuthProcessor>(options.authenticator, metrics, options.log));
  }
  return credentials;
}

void LimitAge(std::chrono::milliseconds age, grpc::ServerBuilder* builder) {
  if (age.count() == 0) return;
  // Calls that are open then go on for as long as they take.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, static_cast<int>(age.count()));
}

void LimitMemory(size_t bytes, grpc::ServerBuilder* builder) {
  if (bytes == 0) return;
  grpc::ResourceQuota quota("stowaged");
  quota.Resize(bytes);
  builder->SetResourceQuota(quota);
}

// A socket is never there with more permissions than it is going to have.
class SocketMode {
 public:
  explicit SocketMode(mode_t mode) : before_(umask(~mode & 0777)) {}
  ~SocketMode() { umask(before_); }
  SocketMode(const SocketMode&) = delete;
  SocketMode& operator=(const SocketMode&) = delete;

 private:
  const mode_t before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            PlanningService* planning,
                                                            PlanStore* store,
                                                            ServerMetrics* metrics) {
  if (options.authenticator && !options.tls.enabled() && !IsLocalAddress(options.listen)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "callers of ", options.listen, " cannot be told apart without TLS"));  // gRPC would abort
  }
  // Both are switches of the process; a second call changes nothing.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  const RpcMonitor monitor{metrics,
                           options.log,
                           options.authenticator,
                           options.audit,
                           options.reported_steps,
                           options.tracer,
                           options.trace_share};
  std::unique_ptr<RpcServer> server(new RpcServer(
      std::make_unique<PlanRpcService>(options.limits, options.version, planning, store, monitor),
      std::make_unique<PlanAdminRpcService>(options.limits, planning, store, options.decisions,
                                            monitor),
      std::make_unique<UnknownMethods>(options.version)));
  if (options.tls.enabled()) {
    auto certificates = ServerCertificates::Make(options.tls, metrics, options.log);
    if (!certificates.ok()) return certificates.status();
    server->certificates_ = *std::move(certificates);
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen,
                           Credentials(options, server->certificates_.get(), metrics), &port);
  builder.RegisterService(server->service_.get());
  builder.RegisterService(server->admin_service_.get());
  builder.RegisterCallbackGenericService(server->unknown_methods_.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.limits.max_message_bytes));
  // Else the kernel lets two servers share one port, and neither would notice.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_connection_calls);
  KeepAlive(&builder);
  LimitAge(options.max_connection_age, &builder);
  LimitMemory(options.transport_bytes, &builder);
  {
    const SocketMode mode(options.unix_socket_mode);
    server->server_ = builder.BuildAndStart();
  }
  if (!server->server_) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen, ": port in use or address not valid"));
  }
  server->address_ = BoundAddress(options.listen, port);
  auto* const health = server->server_->GetHealthCheckService();
  health->SetServingStatus(v1::PlanService::service_full_name(), true);
  health->SetServingStatus(v1::PlanAdminService::service_full_name(), true);
  health->SetServingStatus(kReadyService, true);
  return server;
}

RpcServer::~RpcServer() { Shutdown(std::chrono::system_clock::now()); }

void RpcServer::SetNotServing() { server_->GetHealthCheckService()->SetServingStatus(false); }

void RpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (!server_) return;
  server_->Shutdown(deadline);
  server_->Wait();
}

void RpcServer::CancelCalls() { grpc_server_cancel_all_calls(server_->c_server()); }

}  // namespace stowage

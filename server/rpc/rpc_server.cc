#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

std::string BoundAddress(const std::string& listen, int port) {
  if (absl::StartsWith(listen, "unix:")) return listen;
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

// A client that vanished without a word is noticed in 25 s, and its solve stopped. Clients may ping
// as often as every 10 s, also between calls: gRPC's default would end such a connection.
void KeepAlive(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            PlanningService* planning,
                                                            ServerMetrics* metrics) {
  // Both are switches of the process; a second call changes nothing.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  std::unique_ptr<RpcServer> server(new RpcServer(
      std::make_unique<PlanRpcService>(options.limits, options.version, planning, metrics)));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(server->service_.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.limits.max_message_bytes));
  // Else the kernel lets two servers share one port, and neither would notice.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  KeepAlive(&builder);
  server->server_ = builder.BuildAndStart();
  if (!server->server_) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen, ": port in use or address not valid"));
  }
  server->address_ = BoundAddress(options.listen, port);
  server->server_->GetHealthCheckService()->SetServingStatus(v1::PlanService::service_full_name(),
                                                             true);
  return server;
}

RpcServer::~RpcServer() { Shutdown(std::chrono::system_clock::now()); }

void RpcServer::SetNotServing() { server_->GetHealthCheckService()->SetServingStatus(false); }

void RpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (!server_) return;
  server_->Shutdown(deadline);
  server_->Wait();
}

}  // namespace stowage

#include "tests/client/rpc/fake_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

void HangUntilCancelled(const grpc::ServerContext& context) {
  while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

template <class Function, class Request, class Response>
grpc::Status Answer(const Function& function, const Request& request, Response* response) {
  if (!function) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no answer was set");
  return ToGrpcStatus(function(request, response));
}

}  // namespace

SocketAddress::SocketAddress() {
  std::string pattern = "/tmp/stowage_rpc_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) abort();
  folder_ = pattern;
}

SocketAddress::~SocketAddress() {
  unlink(path().c_str());
  rmdir(folder_.c_str());
}

FakeServer::FakeServer(const std::string& address, int max_receive_bytes) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  if (max_receive_bytes > 0) builder.SetMaxReceiveMessageSize(max_receive_bytes);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_) abort();
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
}

grpc::Status FakeServer::GetPlan(grpc::ServerContext* context, const v1::GetPlanRequest* request,
                                 v1::GetPlanResponse* response) {
  ++calls;
  if (hangs) HangUntilCancelled(*context);
  return Answer(get_plan, *request, response);
}

grpc::Status FakeServer::ComputePlan(grpc::ServerContext* context,
                                     const v1::ComputePlanRequest* request,
                                     v1::ComputePlanResponse* response) {
  ++calls;
  if (hangs) HangUntilCancelled(*context);
  return Answer(compute_plan, *request, response);
}

grpc::Status FakeServer::GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                                         v1::GetCapabilitiesResponse* response) {
  ++calls;
  response->set_server_version("9.8.7");
  response->set_key_encoding_version(1);
  v1::SolverInfo* solver = response->add_solvers();
  solver->set_name("a");
  solver->set_description("b");
  solver->set_schedule_class("c");
  response->set_max_message_bytes(1);
  response->set_max_stages(2);
  response->set_max_vertices(3);
  response->add_implemented_rpcs("GetPlan");
  return grpc::Status::OK;
}

Profile SmallProfile(int stages, int name_length) {
  ChainSpec spec;
  spec.input = Bytes(100);
  for (int i = 0; i < stages; ++i) {
    Stage stage;
    stage.name = std::string(static_cast<size_t>(name_length), 'n');
    stage.op_kind = "linear";
    stage.forward_time = Nanos(10);
    stage.backward_time = Nanos(20);
    stage.output = stage.output_gradient = Bytes(100);
    stage.saved = Bytes(300);
    stage.backward_overhead = Bytes(100);
    spec.stages.push_back(std::move(stage));
  }
  return Profile{"small", Device(), *Chain::Create(std::move(spec)), CostSource::kModelled};
}

}  // namespace stowage

#include "tests/client/rpc/fake_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "client/rpc/local_connection.h"
#include "proto/codec/codec.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

void HangUntilCancelled(const grpc::ServerContext& context) {
  while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

SilentListener::SilentListener(const SocketAddress& address)
    : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  address.path().copy(name.sun_path, sizeof(name.sun_path) - 1);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
      listen(fd_, 8) != 0) {
    std::abort();
  }
}

SilentListener::~SilentListener() { close(fd_); }

// Hands all changes to one function.
class FakeServer::Admin final : public v1::PlanAdminService::Service {
 public:
  explicit Admin(FakeServer* server) : server_(server) {}

 private:
  template <class Request>
  static AskedChange OfKey(const char* method, const Request& request) {
    return {method, request.key(), 0, 0, request.etag(), request.request_id()};
  }
  template <class Request>
  static AskedChange OfRevision(const char* method, const Request& request) {
    AskedChange asked = OfKey(method, request);
    asked.budget_bytes = request.budget_bytes();
    asked.revision = request.revision();
    return asked;
  }

  grpc::Status Answer(const AskedChange& asked, bool* deleted = nullptr) {
    ++server_->calls;
    if (!server_->change) {
      return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no answer was set");
    }
    bool ignored = false;
    return ToGrpcStatus(server_->change(asked, deleted != nullptr ? deleted : &ignored));
  }

  grpc::Status PinPlan(grpc::ServerContext*, const v1::PinPlanRequest* request,
                       v1::PinPlanResponse*) override {
    return Answer(OfRevision("PinPlan", *request));
  }
  grpc::Status UnpinPlan(grpc::ServerContext*, const v1::UnpinPlanRequest* request,
                         v1::UnpinPlanResponse*) override {
    return Answer(OfRevision("UnpinPlan", *request));
  }
  grpc::Status RollBackPlan(grpc::ServerContext*, const v1::RollBackPlanRequest* request,
                            v1::RollBackPlanResponse*) override {
    return Answer(OfRevision("RollBackPlan", *request));
  }
  grpc::Status PromotePlan(grpc::ServerContext*, const v1::PromotePlanRequest* request,
                           v1::PromotePlanResponse*) override {
    return Answer(OfRevision("PromotePlan", *request));
  }
  grpc::Status FreezePlan(grpc::ServerContext*, const v1::FreezePlanRequest* request,
                          v1::FreezePlanResponse*) override {
    return Answer(OfKey("FreezePlan", *request));
  }
  grpc::Status UnfreezePlan(grpc::ServerContext*, const v1::UnfreezePlanRequest* request,
                            v1::UnfreezePlanResponse*) override {
    return Answer(OfKey("UnfreezePlan", *request));
  }
  grpc::Status DeletePlan(grpc::ServerContext*, const v1::DeletePlanRequest* request,
                          v1::DeletePlanResponse* response) override {
    bool deleted = false;
    const grpc::Status status = Answer(OfKey("DeletePlan", *request), &deleted);
    response->set_deleted(deleted);
    return status;
  }
  grpc::Status ExportDecisions(grpc::ServerContext* context,
                               const v1::ExportDecisionsRequest* request,
                               v1::ExportDecisionsResponse* response) override {
    return server_->Answer(context, server_->export_decisions, *request, response);
  }
  grpc::Status ImportDecisions(grpc::ServerContext* context,
                               const v1::ImportDecisionsRequest* request,
                               v1::ImportDecisionsResponse* response) override {
    return server_->Answer(context, server_->import_decisions, *request, response);
  }

  FakeServer* const server_;
};

FakeServer::FakeServer(const std::string& address, int max_receive_bytes,
                       std::shared_ptr<grpc::ServerCredentials> credentials)
    : admin_(std::make_unique<Admin>(this)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, credentials ? credentials : grpc::InsecureServerCredentials(),
                           &port_);
  if (max_receive_bytes > 0) builder.SetMaxReceiveMessageSize(max_receive_bytes);
  builder.RegisterService(this);
  builder.RegisterService(admin_.get());
  server_ = builder.BuildAndStart();
  if (!server_) abort();
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
}

template <class Request, class Response>
grpc::Status FakeServer::Answer(grpc::ServerContext* context,
                                const Reply<Request, Response>& function, const Request& request,
                                Response* response) {
  ++calls;
  if (hangs) HangUntilCancelled(*context);
  if (!function) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no answer was set");
  return ToGrpcStatus(function(request, response));
}

grpc::Status FakeServer::GetPlan(grpc::ServerContext* context, const v1::GetPlanRequest* request,
                                 v1::GetPlanResponse* response) {
  return Answer(context, get_plan, *request, response);
}

grpc::Status FakeServer::ComputePlan(grpc::ServerContext* context,
                                     const v1::ComputePlanRequest* request,
                                     v1::ComputePlanResponse* response) {
  return Answer(context, compute_plan, *request, response);
}

grpc::Status FakeServer::GetFrontier(grpc::ServerContext* context,
                                     const v1::GetFrontierRequest* request,
                                     v1::GetFrontierResponse* response) {
  return Answer(context, get_frontier, *request, response);
}

grpc::Status FakeServer::FitBatch(grpc::ServerContext* context, const v1::FitBatchRequest* request,
                                  v1::FitBatchResponse* response) {
  return Answer(context, fit_batch, *request, response);
}

grpc::Status FakeServer::ExplainPlan(grpc::ServerContext* context,
                                     const v1::ExplainPlanRequest* request,
                                     v1::ExplainPlanResponse* response) {
  return Answer(context, explain_plan, *request, response);
}

grpc::Status FakeServer::ReportExecution(grpc::ServerContext* context,
                                         const v1::ReportExecutionRequest* request,
                                         v1::ReportExecutionResponse* response) {
  return Answer(context, report_execution, *request, response);
}

grpc::Status FakeServer::ListPlans(grpc::ServerContext* context,
                                   const v1::ListPlansRequest* request,
                                   v1::ListPlansResponse* response) {
  return Answer(context, list_plans, *request, response);
}

grpc::Status FakeServer::WatchPlan(grpc::ServerContext* context,
                                   const v1::WatchPlanRequest* request,
                                   grpc::ServerWriter<v1::WatchPlanResponse>* writer) {
  ++calls;
  const absl::Status status =
      watch_plan ? watch_plan(*request, writer) : absl::UnimplementedError("no answer was set");
  if (hangs) HangUntilCancelled(*context);
  return ToGrpcStatus(status);
}

grpc::Status FakeServer::GetCapabilities(grpc::ServerContext* context,
                                         const v1::GetCapabilitiesRequest*,
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
  return capabilities ? ToGrpcStatus(capabilities(*context, response)) : grpc::Status::OK;
}

// What the solvers of this process say, as a server's answer.
absl::Status SolveFor(const v1::ComputePlanRequest& request, v1::ComputePlanResponse* response) {
  const auto profile = FromProto(request.profile());
  const auto budget = FromProto(request.budget());
  const auto options = FromProto(request.options(), "tenant of the caller");
  if (!profile.ok()) return profile.status();
  if (!budget.ok()) return budget.status();
  if (!options.ok()) return options.status();
  const auto reply = MakeLocalConnection()->ComputePlan(*profile, *budget, *options, {});
  if (!reply.ok()) return reply.status();
  *response->mutable_plan() = ToProto(reply->plan);
  *response->mutable_key() = ToProto(reply->key);
  response->set_source(v1::PLAN_SOURCE_SHARED);
  return absl::OkStatus();
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

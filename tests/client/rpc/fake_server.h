// A PlanService on a unix socket whose answers a test decides: the real transport, nothing of the
// real server.
#ifndef STOWAGE_TESTS_CLIENT_RPC_FAKE_SERVER_H_
#define STOWAGE_TESTS_CLIENT_RPC_FAKE_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/rpc/plan_connection.h"
#include "stowage/v1/plan_admin_service.grpc.pb.h"
#include "stowage/v1/plan_service.grpc.pb.h"
#include "tests/support/temporary_folder.h"

namespace stowage {

// A unix socket's address in a new folder, which goes away with this object.
class SocketAddress {
 public:
  std::string path() const { return folder_ / "socket"; }
  std::string uri() const { return "unix:" + path(); }

 private:
  const TemporaryFolder folder_;
};

// Takes connections and never says a word, like a server that waits for TLS.
class SilentListener {
 public:
  explicit SilentListener(const SocketAddress& address);
  ~SilentListener();
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;

 private:
  const int fd_;
};

// A request of PlanAdminService; what it has not is 0.
struct AskedChange {
  std::string method;
  v1::PlanKey key;
  int64_t budget_bytes = 0;
  int64_t revision = 0;
  std::string etag;
  std::string request_id;
};

class FakeServer final : public v1::PlanService::Service {
 public:
  // Serves from construction to destruction. 0 leaves gRPC's own limit for messages; null
  // credentials are insecure ones.
  explicit FakeServer(const std::string& address, int max_receive_bytes = 0,
                      std::shared_ptr<grpc::ServerCredentials> credentials = nullptr);
  ~FakeServer() override;

  int port() const { return port_; }  // of an address with port 0

  // Set before the first call; a call without its function answers UNIMPLEMENTED.
  std::function<absl::Status(const v1::GetPlanRequest&, v1::GetPlanResponse*)> get_plan;
  std::function<absl::Status(const v1::ComputePlanRequest&, v1::ComputePlanResponse*)> compute_plan;
  std::function<absl::Status(const v1::WatchPlanRequest&,
                             grpc::ServerWriter<v1::WatchPlanResponse>*)>
      watch_plan;
  std::function<absl::Status(const v1::GetFrontierRequest&, v1::GetFrontierResponse*)> get_frontier;
  std::function<absl::Status(const v1::FitBatchRequest&, v1::FitBatchResponse*)> fit_batch;
  std::function<absl::Status(const v1::ExplainPlanRequest&, v1::ExplainPlanResponse*)> explain_plan;
  std::function<absl::Status(const v1::ReportExecutionRequest&, v1::ReportExecutionResponse*)>
      report_execution;
  std::function<absl::Status(const v1::ListPlansRequest&, v1::ListPlansResponse*)> list_plans;
  std::function<absl::Status(const v1::ExportDecisionsRequest&, v1::ExportDecisionsResponse*)>
      export_decisions;
  std::function<absl::Status(const v1::ImportDecisionsRequest&, v1::ImportDecisionsResponse*)>
      import_decisions;
  // Every other method of PlanAdminService. What DeletePlan says was there is `deleted`.
  std::function<absl::Status(const AskedChange&, bool* deleted)> change;
  // Changes what GetCapabilities says, or refuses; may be empty.
  std::function<absl::Status(const grpc::ServerContext&, v1::GetCapabilitiesResponse*)>
      capabilities;
  // Calls hang until their client gives up.
  std::atomic<bool> hangs{false};
  std::atomic<int> calls{0};

 private:
  template <class Request, class Response>
  using Reply = std::function<absl::Status(const Request&, Response*)>;

  template <class Request, class Response>
  grpc::Status Answer(grpc::ServerContext* context, const Reply<Request, Response>& function,
                      const Request& request, Response* response);

  grpc::Status GetPlan(grpc::ServerContext* context, const v1::GetPlanRequest* request,
                       v1::GetPlanResponse* response) override;
  grpc::Status ComputePlan(grpc::ServerContext* context, const v1::ComputePlanRequest* request,
                           v1::ComputePlanResponse* response) override;
  grpc::Status WatchPlan(grpc::ServerContext* context, const v1::WatchPlanRequest* request,
                         grpc::ServerWriter<v1::WatchPlanResponse>* writer) override;
  grpc::Status GetFrontier(grpc::ServerContext* context, const v1::GetFrontierRequest* request,
                           v1::GetFrontierResponse* response) override;
  grpc::Status FitBatch(grpc::ServerContext* context, const v1::FitBatchRequest* request,
                        v1::FitBatchResponse* response) override;
  grpc::Status ExplainPlan(grpc::ServerContext* context, const v1::ExplainPlanRequest* request,
                           v1::ExplainPlanResponse* response) override;
  grpc::Status ReportExecution(grpc::ServerContext* context,
                               const v1::ReportExecutionRequest* request,
                               v1::ReportExecutionResponse* response) override;
  grpc::Status ListPlans(grpc::ServerContext* context, const v1::ListPlansRequest* request,
                         v1::ListPlansResponse* response) override;
  grpc::Status GetCapabilities(grpc::ServerContext* context,
                               const v1::GetCapabilitiesRequest* request,
                               v1::GetCapabilitiesResponse* response) override;

  class Admin;

  int port_ = 0;
  const std::unique_ptr<Admin> admin_;
  std::unique_ptr<grpc::Server> server_;
};

// What the solvers of this process say, as a server's answer.
absl::Status SolveFor(const v1::ComputePlanRequest& request, v1::ComputePlanResponse* response);

// A chain of `stages` equal stages with names of `name_length` bytes.
Profile SmallProfile(int stages = 4, int name_length = 1);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_FAKE_SERVER_H_

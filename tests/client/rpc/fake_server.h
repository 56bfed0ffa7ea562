// A PlanService on a unix socket whose answers a test decides: the real transport, nothing of the
// real server.
#ifndef STOWAGE_TESTS_CLIENT_RPC_FAKE_SERVER_H_
#define STOWAGE_TESTS_CLIENT_RPC_FAKE_SERVER_H_

#include <grpcpp/server.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "client/rpc/plan_connection.h"
#include "stowage/v1/plan_service.grpc.pb.h"

namespace stowage {

// A unix socket's address in a new folder, which goes away with this object.
class SocketAddress {
 public:
  SocketAddress();
  ~SocketAddress();
  SocketAddress(const SocketAddress&) = delete;
  SocketAddress& operator=(const SocketAddress&) = delete;

  std::string path() const { return folder_ + "/socket"; }
  std::string uri() const { return "unix:" + path(); }

 private:
  std::string folder_;
};

class FakeServer final : public v1::PlanService::Service {
 public:
  // Serves from construction to destruction. 0 leaves gRPC's own limit for messages.
  explicit FakeServer(const std::string& address, int max_receive_bytes = 0);
  ~FakeServer() override;

  // Set before the first call; a call without its function answers UNIMPLEMENTED.
  std::function<absl::Status(const v1::GetPlanRequest&, v1::GetPlanResponse*)> get_plan;
  std::function<absl::Status(const v1::ComputePlanRequest&, v1::ComputePlanResponse*)> compute_plan;
  // Calls hang until their client gives up.
  std::atomic<bool> hangs{false};
  std::atomic<int> calls{0};

 private:
  grpc::Status GetPlan(grpc::ServerContext* context, const v1::GetPlanRequest* request,
                       v1::GetPlanResponse* response) override;
  grpc::Status ComputePlan(grpc::ServerContext* context, const v1::ComputePlanRequest* request,
                           v1::ComputePlanResponse* response) override;
  grpc::Status GetCapabilities(grpc::ServerContext* context,
                               const v1::GetCapabilitiesRequest* request,
                               v1::GetCapabilitiesResponse* response) override;

  std::unique_ptr<grpc::Server> server_;
};

// A chain of `stages` equal stages with names of `name_length` bytes.
Profile SmallProfile(int stages = 4, int name_length = 1);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_FAKE_SERVER_H_

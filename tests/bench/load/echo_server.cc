#include "tests/bench/load/echo_server.h"

#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "stowage/v1/plan_service.grpc.pb.h"
#include "tests/bench/load/call_driver.h"

namespace stowage {
namespace {

class Echo final : public v1::PlanService::WithRawCallbackMethod_GetPlan<v1::PlanService::Service> {
 public:
  explicit Echo(size_t reply_bytes) : reply_(ToByteBuffer(std::string(reply_bytes, 'x'))) {}

  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                    grpc::ByteBuffer* response) override {
    *response = reply_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const grpc::ByteBuffer reply_;
};

}  // namespace

void RunEchoServer(size_t reply_bytes) {
  // As in stowaged (server/rpc/lock_order.h): with this check of Debian's Abseil an echo answers three quarters of the calls.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Echo echo(reply_bytes);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::cout << "listening on 127.0.0.1:" << port << std::endl;
  server->Wait();
  std::abort();
}

}  // namespace stowage

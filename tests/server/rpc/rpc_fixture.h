// A real server on a unix socket, with a solver that the test holds, and a client.
#ifndef STOWAGE_TESTS_SERVER_RPC_RPC_FIXTURE_H_
#define STOWAGE_TESTS_SERVER_RPC_RPC_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "proto/codec/codec.h"
#include "proto/codec/grpc_status.h"
#include "server/rpc/rpc_server.h"
#include "server/service/planning_service.h"
#include "server/store/memory_plan_store.h"
#include "server/store/metrics_plan_store.h"
#include "solvers/model/field_error.h"
#include "tests/server/rpc/raw_call.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/fake_solver.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {

// A budget below plain training of the profiles of tests.
inline constexpr int64_t kTightBytes = kTight.value();

// Measured with one and with four samples, on a device that takes twenty.
inline v1::FitBatchRequest TwoBatches() {
  v1::FitBatchRequest request;
  for (const int batch : {1, 4}) {
    ProfileShape shape;
    shape.output = 100 * batch;
    shape.forward_time = 500 + 10 * batch;
    v1::BatchProfile* measured = request.add_profiles();
    measured->set_batch_size(batch);
    *measured->mutable_profile() = ToProto(ChainProfile(shape));
  }
  request.set_device_budget_bytes(20 * LeastPeak(ChainProfile({})).value());
  return request;
}

class RpcFixture {
 public:
  explicit RpcFixture(bool held = false, const RequestLimits& limits = RequestLimits(),
                      const PlanningOptions& planning = PlanningOptions(),
                      std::unique_ptr<PlanStore> plans = nullptr,
                      RpcServerOptions options = RpcServerOptions())
      : solver(held),
        store(plans ? std::move(plans) : std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
              CacheTier::kMemory, &metrics),
        service(planning, &store, &solver, &metrics) {
    static std::atomic<int> next{0};
    options.listen = std::string("unix:/tmp/stowage_rpc_") + std::to_string(getpid()) + "_" +
                     std::to_string(next++);
    options.version = "9.8.7";
    options.limits = limits;
    options.transport_bytes = size_t{256} << 20;
    auto started = RpcServer::Start(options, &service, &store, &metrics);
    if (!started.ok()) {
      ADD_FAILURE() << started.status();
      return;
    }
    server = *std::move(started);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel =
        grpc::CreateCustomChannel(server->address(), grpc::InsecureChannelCredentials(), arguments);
    stub = v1::PlanService::NewStub(channel);
  }

  absl::Status Compute(const v1::ComputePlanRequest& request, v1::ComputePlanResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return FromGrpcStatus(stub->ComputePlan(&context, request, response));
  }

  absl::Status Get(const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return FromGrpcStatus(stub->GetPlan(&context, request, response));
  }

  CountingMetrics metrics;
  FakeSolver solver;
  MetricsPlanStore store;
  PlanningService service;
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::PlanService::Stub> stub;
};

// grpc.health.v1 by hand: field 1 of request is the service, field 1 of the answer its status.
inline std::string HealthOf(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& service) {
  std::string request;
  if (!service.empty()) {
    request = std::string("\x0a") + static_cast<char>(service.size()) + service;
  }
  grpc::ByteBuffer response;
  const grpc::Status status = RawCall(channel, "/grpc.health.v1.Health/Check", request, &response);
  if (!status.ok()) return "error " + status.error_message();
  grpc::Slice answer;
  if (!response.DumpToSingleSlice(&answer).ok() || answer.size() < 2) return "UNKNOWN";
  return answer.begin()[1] == 1 ? "SERVING" : "NOT_SERVING";
}

inline v1::ComputePlanRequest ComputeRequestFor(const Profile& profile, int64_t budget_bytes) {
  v1::ComputePlanRequest request;
  *request.mutable_profile() = ToProto(profile);
  request.mutable_budget()->set_bytes(budget_bytes);
  return request;
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_RPC_RPC_FIXTURE_H_

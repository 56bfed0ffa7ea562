// Deadlines, cancellation, health, drain.
#include <algorithm>
#include <future>
#include <thread>

#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(CallLife, ADeadlineStopsTheSolve) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(150), [](milliseconds time) {
    RpcFixture fixture(true);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + time);
    v1::ComputePlanResponse response;
    const grpc::Status status = fixture.stub->ComputePlan(
        &context, ComputeRequestFor(ChainProfile({}), kTightBytes), &response);
    EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED);
    return fixture.solver.started() == 1 && fixture.solver.WaitUntilStopped(1);
  }));
}

TEST(CallLife, ACancelledCallStopsTheSolve) {
  RpcFixture fixture(true);
  grpc::ClientContext context;
  v1::ComputePlanResponse response;
  auto call = std::async(std::launch::async, [&] {
    return fixture.stub->ComputePlan(&context, ComputeRequestFor(ChainProfile({}), kTightBytes),
                                     &response);
  });
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  context.TryCancel();
  EXPECT_EQ(call.get().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(fixture.solver.WaitUntilStopped(1));
  // The server is as it was.
  fixture.solver.Release();
  EXPECT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &response).ok());
}

TEST(CallLife, LargeRequestsAreConvertedElsewhereAndMayBeCancelled) {
  ProfileShape shape;
  shape.stages = 4000;
  v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile(shape), 100000);
  ASSERT_GT(request.ByteSizeLong(), size_t{64} << 10);
  RpcFixture fixture;
  v1::ComputePlanResponse response;
  request.mutable_budget()->set_share_of_store_all(1.0);
  ASSERT_TRUE(fixture.Compute(request, &response).ok());
  EXPECT_EQ(response.source(), v1::PLAN_SOURCE_SOLVED);
  ASSERT_TRUE(fixture.Compute(request, &response).ok());
  EXPECT_EQ(response.source(), v1::PLAN_SOURCE_CACHE);
  for (int i = 0; i < 30; ++i) {
    grpc::ClientContext context;
    auto call = std::async(std::launch::async,
                           [&] { return fixture.stub->ComputePlan(&context, request, &response); });
    std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    context.TryCancel();
    const grpc::Status status = call.get();
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::CANCELLED) << status.error_message();
  }
}

TEST(CallLife, OpenRequestsAreBoundedInBytesWhateverTheyAskFor) {
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  // Room for the request, or for what is kept of it, but not for the one beside the other.
  const Bytes came(static_cast<int64_t>(request.ByteSizeLong()));
  const auto problem = MakePlanningProblem(ChainProfile({}), KeyOptions(), Sha256);
  ASSERT_TRUE(problem.ok());
  const Bytes kept(MemoryOf(**problem).value() / static_cast<int64_t>(kMemoryPerRequestByte));
  PlanningOptions options;
  options.request_bytes = std::max(came, kept) + Bytes(std::min(came, kept).value() / 2);
  options.request_reserve = Bytes(64);
  RpcFixture fixture(true, RequestLimits(), options);
  v1::ComputePlanResponse first, second;
  auto open = std::async(std::launch::async, [&] { return fixture.Compute(request, &first); });
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  const auto expect_refused = [](const absl::Status& status) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(GetReason(status), "REQUEST_BYTES");
    EXPECT_TRUE(GetRetryDelay(status).has_value());
  };
  expect_refused(fixture.Compute(request, &second));
  v1::WatchPlanRequest watch;
  *watch.mutable_profile() = request.profile();
  grpc::ClientContext watch_context;
  expect_refused(FromGrpcStatus(fixture.stub->WatchPlan(&watch_context, watch)->Finish()));
  v1::ReportExecutionRequest report;
  report.set_plan_digest(request.SerializeAsString());
  v1::ReportExecutionResponse verdict;
  grpc::ClientContext report_context;
  expect_refused(FromGrpcStatus(fixture.stub->ReportExecution(&report_context, report, &verdict)));
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kRequestBytes), 3);
  fixture.solver.Release();
  EXPECT_TRUE(open.get().ok());
  // There is room again, a moment after the answer.
  absl::Status again = absl::UnknownError("");
  for (int i = 0; i < 1000 && !again.ok(); ++i) {
    again = fixture.Compute(request, &second);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(again.ok()) << again;
}

TEST(CallLife, AConnectionHasNoMoreOpenCallsThanItMay) {
  RpcServerOptions options;
  options.max_connection_calls = 2;
  RpcFixture fixture(true, RequestLimits(), PlanningOptions(), nullptr, options);
  std::vector<std::future<absl::Status>> open;
  for (const int64_t budget : {kTightBytes, kTightBytes + 1}) {
    open.push_back(std::async(std::launch::async, [&fixture, budget] {
      v1::ComputePlanResponse response;
      return fixture.Compute(ComputeRequestFor(ChainProfile({}), budget), &response);
    }));
  }
  while (fixture.metrics.rpcs_started < 2) std::this_thread::sleep_for(milliseconds(1));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(300));
  v1::GetCapabilitiesResponse response;
  EXPECT_EQ(fixture.stub->GetCapabilities(&context, {}, &response).error_code(),
            grpc::DEADLINE_EXCEEDED);
  EXPECT_EQ(fixture.metrics.rpcs_started, 2) << "it waited at the client";
  fixture.solver.Release();
  for (auto& call : open) EXPECT_TRUE(call.get().ok());
  grpc::ClientContext later;
  EXPECT_TRUE(fixture.stub->GetCapabilities(&later, {}, &response).ok());
}

TEST(CallLife, OneOfTwoWaitersCancels) {
  RpcFixture fixture(true);
  grpc::ClientContext cancelled_context;
  v1::ComputePlanResponse cancelled_response;
  v1::ComputePlanResponse response;
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  auto cancelled = std::async(std::launch::async, [&] {
    return fixture.stub->ComputePlan(&cancelled_context, request, &cancelled_response);
  });
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  auto stays = std::async(std::launch::async, [&] { return fixture.Compute(request, &response); });
  while (fixture.metrics.flights_joined < 1) std::this_thread::sleep_for(milliseconds(1));
  cancelled_context.TryCancel();
  EXPECT_EQ(cancelled.get().error_code(), grpc::CANCELLED);
  fixture.solver.Release();
  EXPECT_TRUE(stays.get().ok());
  EXPECT_EQ(response.source(), v1::PLAN_SOURCE_SHARED);
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(CallLife, CancelsThatRaceWithAnswersNeverBreakTheServer) {
  RpcFixture fixture;
  for (int i = 0; i < 60; ++i) {
    grpc::ClientContext context;
    v1::ComputePlanResponse response;
    auto call = std::async(std::launch::async, [&] {
      return fixture.stub->ComputePlan(
          &context, ComputeRequestFor(ChainProfile({}), kTightBytes - i), &response);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(20 * i));
    context.TryCancel();
    const grpc::Status status = call.get();
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::CANCELLED) << status.error_message();
  }
  v1::ComputePlanResponse response;
  EXPECT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &response).ok());
}

TEST(CallLife, HealthSaysServingUntilTheDrain) {
  RpcFixture fixture;
  EXPECT_EQ(HealthOf(fixture.channel, ""), "SERVING");
  EXPECT_EQ(HealthOf(fixture.channel, "stowage.v1.PlanService"), "SERVING");
  EXPECT_EQ(HealthOf(fixture.channel, kReadyService), "SERVING");
  fixture.server->SetNotServing();
  EXPECT_EQ(HealthOf(fixture.channel, ""), "NOT_SERVING");
  EXPECT_EQ(HealthOf(fixture.channel, "stowage.v1.PlanService"), "NOT_SERVING");
  EXPECT_EQ(HealthOf(fixture.channel, kReadyService), "NOT_SERVING");
}

TEST(CallLife, ADrainAnswersOpenCallsAndRefusesNewOnes) {
  RpcFixture fixture(true);
  v1::ComputePlanResponse open_response;
  auto open = std::async(std::launch::async, [&] {
    return fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &open_response);
  });
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  auto drained = std::async(std::launch::async, [&] {
    return fixture.service.Drain(PlanningService::Clock::now() + seconds(20));
  });
  absl::Status refused;
  while (!absl::IsUnavailable(refused)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + milliseconds(200));
    v1::ComputePlanResponse response;
    refused = FromGrpcStatus(fixture.stub->ComputePlan(
        &context, ComputeRequestFor(ChainProfile({}), kTightBytes - 1), &response));
  }
  EXPECT_EQ(GetReason(refused), "DRAINING");
  fixture.solver.Release();
  EXPECT_TRUE(open.get().ok());
  EXPECT_GE(drained.get().finished, 1);
  fixture.server->Shutdown(std::chrono::system_clock::now() + seconds(1));
}

TEST(CallLife, AnAddressThatCannotBeBoundIsAnError) {
  RpcFixture fixture;
  RpcServerOptions options;
  options.listen = "unix:/nonexistent/directory/socket";
  const auto started =
      RpcServer::Start(options, &fixture.service, &fixture.store, &fixture.metrics);
  EXPECT_TRUE(absl::IsUnavailable(started.status()));
}

}  // namespace
}  // namespace stowage::testing

// Callers of several tenants at one server: what one does holds no other one up.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/store/tiered_plan_store.h"
#include "tests/server/auth/auth_fixture.h"
#include "tests/server/rpc/admin_calls.h"
#include "tests/server/support/held_list_store.h"

namespace stowage::testing {
namespace {

constexpr size_t kLargest = size_t{16} << 20;

// A request of 16 MiB, of which the chain is but a small part.
v1::ComputePlanRequest LargeRequest(int stages) {
  ProfileShape shape;
  shape.stages = stages;
  v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile(shape), kTightBytes);
  constexpr int kUnknownField = 1000;
  constexpr size_t kRoom = 1024;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      kUnknownField, std::string(kLargest - kRoom - request.ByteSizeLong(), 'x'));
  return request;
}

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return holds();
}

// With callers of two tenants, vision and speech, whose solves wait for the test.
struct TwoTenants {
  static PlanningOptions Room(int64_t request_bytes, double share) {
    PlanningOptions options;
    options.request_bytes = Bytes(request_bytes);
    options.limits.share.of_each = share;
    return options;
  }

  explicit TwoTenants(int64_t request_bytes, double share = 0.5)
      : fixture(AuthFixture::WithTokens(folder.Write("tokens", TokenLines())), {}, true,
                Room(request_bytes, share)) {}
  ~TwoTenants() {
    fixture.base.solver.Release();
    for (auto& call : calls) call.wait();
  }

  void Open(const std::string& token, const v1::ComputePlanRequest& request) {
    calls.push_back(std::async(std::launch::async, [this, token, request] {
      v1::ComputePlanResponse response;
      return fixture.Compute(token, request, &response);
    }));
  }

  CredentialFolder folder;
  AuthFixture fixture;
  std::list<std::future<grpc::Status>> calls;
};

// Four such calls were all that a server with 64 MiB for requests could have open.
TEST(SharedService, ATenantsStuckCallsOf16MiBLeaveTheOthersTheirs) {
  TwoTenants service(4 * kLargest);
  for (int i = 0; i < 4; ++i) service.Open(kPlannerToken, LargeRequest(6 + i));
  ASSERT_TRUE(service.fixture.base.solver.WaitUntilStarted(1));
  // They wait for solves, or were refused.
  ASSERT_TRUE(Eventually([&] {
    return service.fixture.base.metrics.queue_depth +
               service.fixture.base.metrics.Sheds(Shed::kQuota) >=
           3;
  }));
  service.Open(kOtherToken, LargeRequest(20));
  EXPECT_TRUE(service.fixture.base.solver.WaitUntilStarted(2)) << "the other tenant's";
  EXPECT_EQ(service.fixture.base.metrics.Sheds(Shed::kRequestBytes), 0);
  AdminCalls other(service.fixture.channel, kOtherToken);
  EXPECT_TRUE(other.List().ok());
}

// What waits for a solve no longer holds what came.
TEST(SharedService, ARequestIsFreedOnceItIsConverted) {
  TwoTenants service(3 * kLargest / 2, 0.9);
  service.Open(kPlannerToken, LargeRequest(6));
  ASSERT_TRUE(service.fixture.base.solver.WaitUntilStarted(1));
  // There is no room for a second one beside the bytes of the first.
  service.Open(kPlannerToken, LargeRequest(7));
  ASSERT_TRUE(Eventually([&] { return service.fixture.base.metrics.queue_depth == 1; }));
  service.fixture.base.solver.Release();
  for (auto& call : service.calls) {
    const grpc::Status status = call.get();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  service.calls.clear();
}

// Of what a tenant keeps for calls that wait for solves, too, there is only its share.
TEST(SharedService, WhatIsKeptOfRequestsIsCountedByTenant) {
  ProfileShape shape;
  shape.stages = 2000;
  const auto request = [&shape](int64_t output) {
    shape.output = output;
    constexpr int64_t kAmple = int64_t{1} << 40;
    return ComputeRequestFor(ChainProfile(shape), kAmple);
  };
  const auto each = static_cast<int64_t>(request(100).ByteSizeLong());
  TwoTenants service(20 * each);
  absl::Status refused;
  for (int i = 0; i < 100 && refused.ok(); ++i) {
    service.Open(kPlannerToken, request(100 + i));
    ASSERT_TRUE(Eventually([&] {
      const CountingMetrics& metrics = service.fixture.base.metrics;
      return service.fixture.base.solver.started() + metrics.queue_depth +
                 metrics.Sheds(Shed::kQuota) ==
             i + 1;
    }));
    if (service.fixture.base.metrics.Sheds(Shed::kQuota) == 0) continue;
    refused = FromGrpcStatus(service.calls.back().get());
    service.calls.pop_back();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(GetReason(refused), "TENANT_QUOTA");
  EXPECT_NE(refused.message().find("bytes"), absl::string_view::npos) << refused;
  EXPECT_TRUE(GetRetryDelay(refused).has_value());
  const int started = service.fixture.base.solver.started();
  service.Open(kOtherToken, request(1000));
  EXPECT_TRUE(service.fixture.base.solver.WaitUntilStarted(started + 1));
}

TEST(SharedService, ReportsAndAdministrationHaveAReserve) {
  // A budget that one request fills, and what came of it, too.
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  PlanningOptions options;
  options.request_bytes = Bytes(static_cast<int64_t>(request.ByteSizeLong()));
  RpcFixture fixture(false, RequestLimits(), options);
  const auto taken =
      fixture.service.HoldRequest(Account::Of("greedy", ""), RequestUse::kPlans,
                                  static_cast<size_t>(options.request_bytes.value()));
  ASSERT_TRUE(taken.ok()) << taken.status();
  v1::ComputePlanResponse response;
  const absl::Status refused = fixture.Compute(request, &response);
  EXPECT_EQ(GetReason(refused), "REQUEST_BYTES") << refused;
  AdminCalls calls(fixture.channel);
  EXPECT_TRUE(calls.List().ok());
  v1::ReportExecutionRequest report;
  *report.mutable_key() = ToProto(PlanKey{kEncodingVersion, Sha256("unknown")});
  report.set_plan_digest(std::string(32, 'd'));
  report.set_revision(1);
  report.set_steps(1);
  EXPECT_EQ(GetReason(calls.Report(report).status()), kReasonPlanNotCached);
}

// A reader's page of all plans may take a slow store seconds.
TEST(SharedService, ListsThatWaitForASlowStoreHoldUpNoLookup) {
  auto shared = std::make_unique<HeldListStore>();
  HeldListStore* const slow = shared.get();
  // Every copy is stale when it is asked for.
  RpcFixture fixture(
      false, RequestLimits(), PlanningOptions(),
      std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
                                        std::move(shared), std::chrono::nanoseconds(1)));
  v1::ComputePlanResponse computed;
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  ASSERT_TRUE(fixture.Compute(request, &computed).ok());
  const int lists = PlanningOptions().intake.threads[static_cast<size_t>(Lane::kAdministration)];
  std::vector<std::future<bool>> listed;
  for (int i = 0; i < lists + 1; ++i) {
    listed.push_back(std::async(std::launch::async,
                                [&fixture] { return AdminCalls(fixture.channel).List().ok(); }));
  }
  EXPECT_TRUE(slow->WaitUntilHeld(lists));
  v1::GetPlanRequest get;
  *get.add_keys() = computed.key();
  get.mutable_budget()->set_bytes(kTightBytes);
  v1::GetPlanResponse got;
  EXPECT_TRUE(fixture.Get(get, &got).ok());
  EXPECT_TRUE(fixture.Compute(request, &computed).ok());
  EXPECT_EQ(computed.source(), v1::PLAN_SOURCE_CACHE);
  for (auto& list : listed)
    EXPECT_NE(list.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  slow->Release();
  for (auto& list : listed) EXPECT_TRUE(list.get());
}

}  // namespace
}  // namespace stowage::testing

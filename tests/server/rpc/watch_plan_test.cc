// Progress and the best plan so far, then the answer.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "solvers/planner.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

v1::WatchPlanRequest WatchRequestFor(const Profile& profile, int64_t budget_bytes) {
  v1::WatchPlanRequest request;
  *request.mutable_profile() = ToProto(profile);
  request.mutable_budget()->set_bytes(budget_bytes);
  return request;
}

Schedule TightSchedule() {
  return MakePlan(ChainProfile({}), Bytes(kTightBytes), PlanOptions())->schedule;
}

struct Watch {
  explicit Watch(RpcFixture* fixture, milliseconds deadline = seconds(20),
                 const Profile& profile = ChainProfile({})) {
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    stream = fixture->stub->WatchPlan(&context, WatchRequestFor(profile, kTightBytes));
  }

  // Reads to the end.
  std::vector<v1::WatchPlanResponse> Rest() {
    std::vector<v1::WatchPlanResponse> all;
    for (v1::WatchPlanResponse message; stream->Read(&message);) all.push_back(message);
    status = FromGrpcStatus(stream->Finish());
    return all;
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchPlanResponse>> stream;
  absl::Status status;
};

TEST(WatchPlan, TheLastMessageIsTheAnswerOfComputePlan) {
  RpcFixture fixture;
  Watch solved(&fixture);
  const auto messages = solved.Rest();
  ASSERT_TRUE(solved.status.ok()) << solved.status;
  ASSERT_FALSE(messages.empty());
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].done(), i + 1 == messages.size());
    EXPECT_GE(messages[i].progress(), messages[i > 0 ? i - 1 : 0].progress());
  }
  EXPECT_EQ(messages.back().source(), v1::PLAN_SOURCE_SOLVED);
  EXPECT_TRUE(messages.back().plan().search_complete());
  EXPECT_EQ(messages.back().progress(), 1.0);
  v1::ComputePlanResponse computed;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &computed).ok());
  EXPECT_EQ(computed.source(), v1::PLAN_SOURCE_CACHE);
  EXPECT_EQ(messages.back().plan().digest(), computed.plan().digest());
  EXPECT_EQ(messages.back().key().digest(), computed.key().digest());
  Watch cached(&fixture);
  const auto at_once = cached.Rest();
  ASSERT_EQ(at_once.size(), 1u);
  EXPECT_EQ(at_once[0].source(), v1::PLAN_SOURCE_CACHE);
}

TEST(WatchPlan, TheBestPlanSoFarComesWhileTheSolveGoesOn) {
  RpcFixture fixture(true);
  fixture.solver.TellOf(TightSchedule());
  Watch first(&fixture);
  v1::WatchPlanResponse message;
  ASSERT_TRUE(first.stream->Read(&message));
  EXPECT_FALSE(message.done());
  EXPECT_EQ(message.plan().status(), v1::PLAN_STATUS_FOUND);
  EXPECT_LE(message.plan().prediction().peak_bytes(), kTightBytes);
  EXPECT_FALSE(message.plan().search_complete());
  EXPECT_EQ(fixture.metrics.Solves(SolveOutcome::kFound), 0);
  fixture.solver.Release();
  const auto rest = first.Rest();
  ASSERT_TRUE(first.status.ok()) << first.status;
  ASSERT_FALSE(rest.empty());
  EXPECT_TRUE(rest.back().done());
}

TEST(WatchPlan, WhoDoesNotReadHoldsNobodyUp) {
  RpcFixture fixture(true);
  fixture.solver.TellOf(TightSchedule());
  Watch silent(&fixture);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  v1::ComputePlanResponse computed;
  fixture.solver.Release();
  EXPECT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &computed).ok());
  const auto messages = silent.Rest();
  ASSERT_FALSE(messages.empty());
  EXPECT_TRUE(messages.back().done());
}

TEST(WatchPlan, WhoLeavesStopsTheSolveUnlessOthersWait) {
  PlanningOptions options;
  options.watch_grace = milliseconds(0);
  RpcFixture fixture(true, RequestLimits(), options);
  fixture.solver.TellOf(TightSchedule());
  Watch leaves(&fixture);
  v1::WatchPlanResponse message;
  ASSERT_TRUE(leaves.stream->Read(&message));
  Watch stays(&fixture);
  while (fixture.metrics.flights_joined < 1) std::this_thread::sleep_for(milliseconds(1));
  leaves.context.TryCancel();
  leaves.Rest();
  EXPECT_TRUE(absl::IsCancelled(leaves.status));
  EXPECT_EQ(fixture.solver.stopped(), 0);
  stays.context.TryCancel();
  stays.Rest();
  EXPECT_TRUE(absl::IsCancelled(stays.status));
  EXPECT_TRUE(fixture.solver.WaitUntilStopped(1));
}

TEST(WatchPlan, WhoComesBackAfterALostConnectionIsShownWhatThereIsAndGetsTheAnswer) {
  RpcFixture fixture(true);
  fixture.solver.TellOf(TightSchedule());
  Watch lost(&fixture);
  v1::WatchPlanResponse message;
  ASSERT_TRUE(lost.stream->Read(&message));
  lost.context.TryCancel();
  lost.Rest();
  while (fixture.metrics.rpcs_handled[grpc::CANCELLED] < 1) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  Watch back(&fixture);
  ASSERT_TRUE(back.stream->Read(&message));
  EXPECT_FALSE(message.done());
  EXPECT_TRUE(message.has_plan());
  EXPECT_EQ(fixture.metrics.flights_joined, 1);
  fixture.solver.Release();
  const auto rest = back.Rest();
  ASSERT_TRUE(back.status.ok()) << back.status;
  ASSERT_FALSE(rest.empty());
  EXPECT_TRUE(rest.back().done());
  EXPECT_EQ(rest.back().source(), v1::PLAN_SOURCE_SHARED);
  EXPECT_TRUE(rest.back().plan().search_complete());
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(WatchPlan, ADeadlineGetsTheBestPlanSoFarAsTheLastMessage) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(600), [](milliseconds time) {
    RpcFixture fixture(true);
    fixture.solver.TellOf(TightSchedule());
    Watch watch(&fixture, time);
    const auto messages = watch.Rest();
    if (absl::IsDeadlineExceeded(watch.status)) return false;
    EXPECT_TRUE(watch.status.ok()) << watch.status;
    if (messages.empty()) return false;
    EXPECT_TRUE(messages.back().done());
    EXPECT_EQ(messages.back().plan().status(), v1::PLAN_STATUS_FOUND);
    EXPECT_FALSE(messages.back().plan().search_complete());
    return true;
  }));
}

TEST(WatchPlan, ErrorsAreThoseOfComputePlan) {
  RpcFixture fixture;
  grpc::ClientContext context;
  auto request = WatchRequestFor(ChainProfile({}), kTightBytes);
  request.mutable_options()->set_solver("no such solver");
  const auto stream = fixture.stub->WatchPlan(&context, request);
  v1::WatchPlanResponse message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_TRUE(absl::IsInvalidArgument(FromGrpcStatus(stream->Finish())));
}

TEST(WatchPlan, CancelsThatRaceWithAnswersNeverBreakTheServer) {
  RpcFixture fixture;
  for (int i = 0; i < 60; ++i) {
    ProfileShape shape;
    shape.stages = 6 + i;
    Watch watch(&fixture, seconds(20), ChainProfile(shape));
    std::this_thread::sleep_for(std::chrono::microseconds(40 * i));
    watch.context.TryCancel();
    watch.Rest();
    EXPECT_TRUE(watch.status.ok() || absl::IsCancelled(watch.status)) << watch.status;
  }
}

}  // namespace
}  // namespace stowage::testing

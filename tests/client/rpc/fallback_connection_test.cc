#include "client/rpc/fallback_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "client/rpc/connect.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/mock_plan_connection.h"
#include "client/rpc/retrying_connection.h"
#include "proto/codec/grpc_status.h"
#include "tests/client/rpc/fake_server.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::NiceMock;
using testing::Return;

using Clock = CallOptions::Clock;

class FallbackConnectionTest : public testing::Test {
 protected:
  FallbackConnectionTest() {
    auto primary = std::make_unique<NiceMock<MockPlanConnection>>();
    auto second = std::make_unique<NiceMock<MockPlanConnection>>();
    primary_ = primary.get();
    second_ = second.get();
    ON_CALL(*primary_, name).WillByDefault(Return("P"));
    ON_CALL(*second_, name).WillByDefault(Return("S"));
    FallbackPolicy policy;
    policy.now = [this] { return now_; };
    connection_ = MakeFallbackConnection(
        std::move(primary), std::move(second),
        [this](const std::string& words) { said_.push_back(words); }, policy);
  }

  absl::StatusOr<PlanReply> Compute() {
    return connection_->ComputePlan(SmallProfile(), Budget(LeastBudget{}), {}, {});
  }

  // The primary has been left alone long enough to be asked again.
  void Pass() { now_ += std::chrono::minutes(2); }

  MockPlanConnection* primary_;
  MockPlanConnection* second_;
  Clock::time_point now_ = Clock::now();
  std::vector<std::string> said_;
  std::unique_ptr<PlanConnection> connection_;
};

PlanReply LocalReply() { return PlanReply{Plan(), PlanKey(), PlanSource::kLocal}; }

// Who is left alone because another call found it away is away all the same.
TEST_F(FallbackConnectionTest, WhatGetCapabilitiesFoundOutIsSaidAtTheFirstFallBack) {
  EXPECT_CALL(*primary_, GetCapabilities)
      .WillOnce(Return(absl::UnavailableError("connection refused")));
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_TRUE(absl::IsUnavailable(connection_->GetCapabilities({}).status()));
  EXPECT_TRUE(said_.empty());
  EXPECT_TRUE(Compute().ok());
  EXPECT_EQ(said_.size(), 1u);
}

TEST_F(FallbackConnectionTest, UnavailableFallsBackAndIsSaidOnce) {
  EXPECT_CALL(*primary_, ComputePlan)
      .Times(3)
      .WillRepeatedly(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, ComputePlan).Times(3).WillRepeatedly(Return(LocalReply()));
  for (int i = 0; i < 3; ++i) {
    const auto reply = Compute();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->source, PlanSource::kLocal);
    Pass();
  }
  EXPECT_THAT(said_, ElementsAre("P is not reachable (away): falling back to S"));
}

TEST_F(FallbackConnectionTest, WhatTheServerIsNobodyElseSays) {
  EXPECT_CALL(*primary_, GetCapabilities).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, GetCapabilities).Times(0);
  EXPECT_TRUE(absl::IsUnavailable(connection_->GetCapabilities({}).status()));
}

TEST_F(FallbackConnectionTest, CallsThatPlanFallBack) {
  EXPECT_CALL(*primary_, GetPlan).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, GetPlan).WillOnce(Return(absl::NotFoundError("no cache")));
  EXPECT_TRUE(
      absl::IsNotFound(connection_->GetPlan({PlanKey()}, Budget(LeastBudget{}), {}).status()));
  Pass();
  EXPECT_CALL(*primary_, GetFrontier).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, GetFrontier).WillOnce(Return(FrontierReply()));
  EXPECT_CALL(*primary_, FitBatch).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, FitBatch).WillOnce(Return(BatchReply()));
  EXPECT_TRUE(connection_->GetFrontier(SmallProfile(), {}, 0, {}).ok());
  Pass();
  EXPECT_TRUE(connection_->FitBatch({}, {}).ok());
}

TEST_F(FallbackConnectionTest, WatchingGoesOnHereAndItsProgressNeverFalls) {
  const auto tells = [](std::vector<double> shares, absl::StatusOr<PlanReply> end) {
    return [shares, end](const Profile&, const Budget&, const KeyOptions&,
                         const ProgressCallback& progress, const CallOptions&) {
      for (const double share : shares) progress({share, nullptr});
      return end;
    };
  };
  EXPECT_CALL(*primary_, WatchPlan).WillOnce(tells({0.1, 0.5}, absl::UnavailableError("away")));
  EXPECT_CALL(*second_, WatchPlan).WillOnce(tells({0.2, 0.7}, LocalReply()));
  std::vector<double> seen;
  EXPECT_TRUE(connection_
                  ->WatchPlan(SmallProfile(), LeastBudget{}, {},
                              [&seen](const PlanProgress& so_far) { seen.push_back(so_far.share); },
                              {})
                  .ok());
  EXPECT_THAT(seen, ElementsAre(0.1, 0.5, 0.5, 0.7));
}

// What a server keeps, this process has not: its error is the answer.
TEST_F(FallbackConnectionTest, WhatAServerKeepsIsThePrimarysAlone) {
  ON_CALL(*primary_, ExplainPlan).WillByDefault(Return(absl::UnavailableError("away")));
  ON_CALL(*primary_, ReportExecution).WillByDefault(Return(absl::UnavailableError("away")));
  ON_CALL(*primary_, ListPlans).WillByDefault(Return(absl::UnavailableError("away")));
  ON_CALL(*primary_, ChangePlan).WillByDefault(Return(absl::UnavailableError("away")));
  ON_CALL(*primary_, DeletePlan).WillByDefault(Return(absl::UnavailableError("away")));
  for (const absl::Status& status :
       {connection_->ExplainPlan({}, LeastBudget{}, {}).status(),
        connection_->ReportExecution({}, {}).status(), connection_->ListPlans({}, {}).status(),
        connection_->ChangePlan({}, RevisionAction::kPin, {}, {}),
        connection_->DeletePlan({}, {}, {}).status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  EXPECT_TRUE(said_.empty());
}

TEST_F(FallbackConnectionTest, AnswersOfThePrimaryStand) {
  EXPECT_CALL(*second_, ComputePlan).Times(0);
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}))
      .WillOnce(Return(absl::InvalidArgumentError("no")))
      .WillOnce(Return(absl::ResourceExhaustedError("busy")))
      .WillOnce(Return(absl::DeadlineExceededError("late")))
      .WillOnce(Return(absl::InternalError("bug")));
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
  EXPECT_TRUE(absl::IsInvalidArgument(Compute().status()));
  EXPECT_TRUE(absl::IsResourceExhausted(Compute().status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Compute().status()));
  EXPECT_TRUE(absl::IsInternal(Compute().status()));
  EXPECT_TRUE(said_.empty());
}

// It has shed the call; the job plans here, and asks it again the next time.
TEST_F(FallbackConnectionTest, ABusyServerFallsBackAndIsNotTakenForAway) {
  const absl::Status busy = WithRetryDelay(absl::ResourceExhaustedError("queue full"), seconds(1));
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(busy))
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}));
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
  EXPECT_THAT(said_, ElementsAre("P is busy (queue full): falling back to S"));
}

// A server that sheds all calls for longer than they may take.
TEST(Fallback, WhatABusyServerLeavesOfTheTimeIsForPlanningHere) {
  Clock::time_point now = Clock::now();
  auto primary = std::make_unique<NiceMock<MockPlanConnection>>();
  ON_CALL(*primary, ComputePlan).WillByDefault([](auto&&...) -> absl::StatusOr<PlanReply> {
    return WithRetryDelay(absl::ResourceExhaustedError("busy"), seconds(9));
  });
  RetryEnvironment environment = RetryEnvironment::Real();
  environment.now = [&now] { return now; };
  environment.sleep = [&now](std::chrono::nanoseconds wait, const CancelToken*) { now += wait; };
  auto second = std::make_unique<NiceMock<MockPlanConnection>>();
  Clock::duration left{};
  ON_CALL(*second, ComputePlan).WillByDefault([&](auto&, auto&, auto&, const CallOptions& call) {
    left = call.deadline - now;
    return absl::StatusOr<PlanReply>(LocalReply());
  });
  FallbackPolicy policy;
  policy.now = environment.now;
  const auto connection =
      MakeFallbackConnection(MakeRetryingConnection(std::move(primary), {}, environment),
                             std::move(second), nullptr, policy);
  CallOptions options;
  options.deadline = now + seconds(60);
  EXPECT_TRUE(connection->ComputePlan(SmallProfile(), LeastBudget{}, {}, options).ok());
  EXPECT_GE(left, seconds(45));
}

TEST_F(FallbackConnectionTest, ServerThatIsBackIsUsedAgain) {
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}));
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
  Pass();
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
}

TEST_F(FallbackConnectionTest, OneThatIsAwayIsAskedAfterPausesThatGrow) {
  EXPECT_CALL(*second_, ComputePlan).WillRepeatedly(Return(LocalReply()));
  std::vector<int64_t> asked;
  const Clock::time_point start = now_;
  ON_CALL(*primary_, ComputePlan).WillByDefault([&](auto&&...) {
    asked.push_back((now_ - start) / seconds(1));
    return absl::StatusOr<PlanReply>(absl::UnavailableError("away"));
  });
  for (int second = 0; second < 200; ++second) {
    EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
    now_ += seconds(1);
  }
  EXPECT_THAT(asked, ElementsAre(0, 5, 15, 35, 75, 135, 195));
  // Once it is back, all calls are its own, and its next absence begins with a short pause.
  Pass();
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}))
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}))
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}));
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
  now_ += seconds(5);
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
}

TEST_F(FallbackConnectionTest, OneCallAtATimeFindsOutWhetherItIsBack) {
  EXPECT_CALL(*second_, ComputePlan).Times(2).WillRepeatedly(Return(LocalReply()));
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce([&](auto&&...) {
        EXPECT_EQ(Compute().value().source, PlanSource::kLocal);  // another one meanwhile
        return absl::StatusOr<PlanReply>(PlanReply{Plan(), PlanKey(), PlanSource::kCache});
      });
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
  Pass();
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
}

TEST_F(FallbackConnectionTest, AQuarterOfTheTimeIsForReachingThePrimaryAndAMomentOnceItIsAway) {
  std::vector<Clock::duration> within;
  ON_CALL(*primary_, ComputePlan)
      .WillByDefault([&](auto&, auto&, auto&, const CallOptions& options) {
        within.push_back(options.reach_by - now_);
        EXPECT_EQ(options.deadline, now_ + seconds(60));
        return absl::StatusOr<PlanReply>(absl::UnavailableError("away"));
      });
  EXPECT_CALL(*second_, ComputePlan)
      .Times(2)
      .WillRepeatedly([&](auto&, auto&, auto&, const CallOptions& options) {
        EXPECT_EQ(options.reach_by, Clock::time_point::max());
        return absl::StatusOr<PlanReply>(LocalReply());
      });
  for (int i = 0; i < 2; ++i) {
    CallOptions options;
    options.deadline = now_ + seconds(60);
    EXPECT_TRUE(connection_->ComputePlan(SmallProfile(), LeastBudget{}, {}, options).ok());
    Pass();
  }
  EXPECT_THAT(within, ElementsAre(seconds(15), seconds(1)));
}

TEST_F(FallbackConnectionTest, WhatAServerKeepsIsAskedForWhetherOrNotItIsAway) {
  EXPECT_CALL(*primary_, ComputePlan).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
  EXPECT_CALL(*primary_, GetCapabilities).Times(0);
  EXPECT_TRUE(absl::IsUnavailable(connection_->GetCapabilities({}).status()));
  // Its answer says that it is back.
  EXPECT_CALL(*primary_, ReportExecution).WillOnce(Return(ExecutionVerdict::kAccepted));
  EXPECT_TRUE(connection_->ReportExecution({}, {}).ok());
  EXPECT_CALL(*primary_, GetCapabilities).WillOnce(Return(Capabilities()));
  EXPECT_TRUE(connection_->GetCapabilities({}).ok());
}

TEST_F(FallbackConnectionTest, ACallInAHurrySaysNothingOfThePrimary) {
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce([&](auto&, auto&, auto&, const CallOptions& options) {
        EXPECT_EQ(options.reach_by, now_ + milliseconds(100));
        now_ += milliseconds(100);
        return absl::StatusOr<PlanReply>(absl::UnavailableError("no connection within 100 ms"));
      })
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}));
  CallOptions hurry;
  hurry.deadline = now_ + milliseconds(400);
  EXPECT_TRUE(connection_->ComputePlan(SmallProfile(), LeastBudget{}, {}, hurry).ok());
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
}

TEST_F(FallbackConnectionTest, ACallThatIsCancelledSaysNothingOfThePrimary) {
  EXPECT_CALL(*second_, ComputePlan).Times(2).WillRepeatedly(Return(LocalReply()));
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(absl::CancelledError("enough")));
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
  now_ += seconds(5);
  EXPECT_TRUE(absl::IsCancelled(Compute().status()));
  EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
}

TEST_F(FallbackConnectionTest, NameTellsBoth) { EXPECT_EQ(connection_->name(), "P, or else S"); }

TEST(Connect, PlansHereAfterBoundedRetriesWhenTheServerIsAway) {
  SocketAddress address;
  std::vector<std::string> said;
  GrpcOptions options;
  options.address = address.uri();
  const auto connection =
      Connect(options, [&said](const std::string& words) { said.push_back(words); });
  std::vector<Clock::duration> took;
  for (int i = 0; i < 2; ++i) {
    const auto start = Clock::now();
    const auto reply = connection->ComputePlan(SmallProfile(), Budget(ShareOfStoreAll{0.8}), {},
                                               CallOptions::Within(seconds(20)));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->source, PlanSource::kLocal);
    EXPECT_EQ(reply->plan.status, PlanStatus::kFound);
    took.push_back(Clock::now() - start);
  }
  EXPECT_GE(took[0], milliseconds(7 * 70));  // three waits, at the least of their jitter
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], testing::HasSubstr("falling back to local planning"));
  EXPECT_THAT(said[0], testing::HasSubstr(address.uri()));
}

TEST(Connect, AServerThatDoesNotAnswerLeavesTimeToPlanHere) {
  SocketAddress address;
  const SilentListener silent(address);
  GrpcOptions options;
  options.address = address.uri();
  auto second = std::make_unique<NiceMock<MockPlanConnection>>();
  Clock::duration left{};
  ON_CALL(*second, ComputePlan).WillByDefault([&](auto&, auto&, auto&, const CallOptions& call) {
    left = call.deadline - Clock::now();
    return absl::StatusOr<PlanReply>(LocalReply());
  });
  const auto connection = MakeFallbackConnection(
      MakeRetryingConnection(MakeGrpcConnection(options)), std::move(second), nullptr);
  EXPECT_TRUE(
      connection->ComputePlan(SmallProfile(), LeastBudget{}, {}, CallOptions::Within(seconds(4)))
          .ok());
  EXPECT_GT(left, seconds(2));  // 3, but for the time that waking up takes on a busy machine
}

TEST(Connect, WithoutAnAddressPlansHereAndSaysNothing) {
  bool said = false;
  const auto connection = Connect(GrpcOptions(), [&said](const std::string&) { said = true; });
  const auto reply = connection->ComputePlan(SmallProfile(), Budget(ShareOfStoreAll{0.8}), {}, {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->source, PlanSource::kLocal);
  EXPECT_FALSE(said);
}

TEST(PlanSource, Names) {
  EXPECT_STREQ(ToString(PlanSource::kCache), "cache");
  EXPECT_STREQ(ToString(PlanSource::kSolved), "solved");
  EXPECT_STREQ(ToString(PlanSource::kShared), "shared");
  EXPECT_STREQ(ToString(PlanSource::kLocal), "local");
}

}  // namespace
}  // namespace stowage

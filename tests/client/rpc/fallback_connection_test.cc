#include "client/rpc/fallback_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "client/rpc/connect.h"
#include "client/rpc/local_connection.h"
#include "client/rpc/mock_plan_connection.h"
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
    connection_ =
        MakeFallbackConnection(std::move(primary), std::move(second),
                               [this](const std::string& words) { said_.push_back(words); });
  }

  absl::StatusOr<PlanReply> Compute() {
    return connection_->ComputePlan(SmallProfile(), Budget(LeastBudget{}), {}, {});
  }

  MockPlanConnection* primary_;
  MockPlanConnection* second_;
  std::vector<std::string> said_;
  std::unique_ptr<PlanConnection> connection_;
};

PlanReply LocalReply() { return PlanReply{Plan(), PlanKey(), PlanSource::kLocal}; }

TEST_F(FallbackConnectionTest, UnavailableFallsBackAndIsSaidOnce) {
  EXPECT_CALL(*primary_, ComputePlan)
      .Times(3)
      .WillRepeatedly(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, ComputePlan).Times(3).WillRepeatedly(Return(LocalReply()));
  for (int i = 0; i < 3; ++i) {
    const auto reply = Compute();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->source, PlanSource::kLocal);
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
  EXPECT_CALL(*primary_, GetFrontier).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, GetFrontier).WillOnce(Return(FrontierReply()));
  EXPECT_CALL(*primary_, FitBatch).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, FitBatch).WillOnce(Return(BatchReply()));
  EXPECT_TRUE(connection_->GetFrontier(SmallProfile(), {}, 0, {}).ok());
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
  ON_CALL(*primary_, PinPlan).WillByDefault(Return(absl::UnavailableError("away")));
  ON_CALL(*primary_, DeletePlan).WillByDefault(Return(absl::UnavailableError("away")));
  for (const absl::Status& status :
       {connection_->ExplainPlan({}, LeastBudget{}, {}).status(),
        connection_->ReportExecution({}, {}).status(), connection_->ListPlans({}, {}).status(),
        connection_->PinPlan({}, RevisionAction::kPin, {}),
        connection_->DeletePlan({}, {}).status()}) {
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
  EXPECT_EQ(Compute()->source, PlanSource::kCache);
  EXPECT_TRUE(absl::IsInvalidArgument(Compute().status()));
  EXPECT_TRUE(absl::IsResourceExhausted(Compute().status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Compute().status()));
  EXPECT_TRUE(absl::IsInternal(Compute().status()));
  EXPECT_TRUE(said_.empty());
}

TEST_F(FallbackConnectionTest, ServerThatIsBackIsUsedAgain) {
  EXPECT_CALL(*primary_, ComputePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(PlanReply{Plan(), PlanKey(), PlanSource::kCache}));
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_EQ(Compute()->source, PlanSource::kLocal);
  EXPECT_EQ(Compute()->source, PlanSource::kCache);
}

TEST_F(FallbackConnectionTest, NameTellsBoth) { EXPECT_EQ(connection_->name(), "P, or else S"); }

TEST(Connect, PlansHereAfterBoundedRetriesWhenTheServerIsAway) {
  SocketAddress address;
  std::vector<std::string> said;
  GrpcOptions options;
  options.address = address.uri();
  const auto connection =
      Connect(options, [&said](const std::string& words) { said.push_back(words); });
  const auto start = Clock::now();
  for (int i = 0; i < 2; ++i) {
    const auto reply = connection->ComputePlan(SmallProfile(), Budget(ShareOfStoreAll{0.8}), {},
                                               CallOptions::Within(seconds(20)));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->source, PlanSource::kLocal);
    EXPECT_EQ(reply->plan.status, PlanStatus::kFound);
  }
  const auto took = Clock::now() - start;
  EXPECT_GE(took, milliseconds(2 * 7 * 70));  // three waits each, at the least of their jitter
  EXPECT_LT(took, seconds(5));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], testing::HasSubstr("falling back to local planning"));
  EXPECT_THAT(said[0], testing::HasSubstr(address.uri()));
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

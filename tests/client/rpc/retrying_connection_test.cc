#include "client/rpc/retrying_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "client/rpc/mock_plan_connection.h"
#include "proto/codec/grpc_status.h"
#include "tests/client/rpc/fake_server.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::_;
using testing::ElementsAre;
using testing::NiceMock;
using testing::Return;

using Clock = CallOptions::Clock;

// Time that passes by sleeping only.
class RetryingConnectionTest : public testing::Test {
 protected:
  void Make(const RetryPolicy& policy = {}) {
    auto inner = std::make_unique<NiceMock<MockPlanConnection>>();
    inner_ = inner.get();
    RetryEnvironment environment;
    environment.now = [this] { return now_; };
    environment.sleep = [this](nanoseconds wait) {
      waits_.push_back(wait);
      now_ += wait;
    };
    environment.uniform = [this] { return uniform_; };
    connection_ = MakeRetryingConnection(std::move(inner), policy, std::move(environment));
  }

  absl::Status Get(const CallOptions& options = {}) {
    return connection_->GetPlan({PlanKey()}, Budget(LeastBudget{}), options).status();
  }

  Clock::time_point now_ = Clock::time_point() + std::chrono::hours(1);
  double uniform_ = 0.5;  // the middle of the jitter: none
  std::vector<nanoseconds> waits_;
  MockPlanConnection* inner_ = nullptr;
  std::unique_ptr<PlanConnection> connection_;
};

TEST_F(RetryingConnectionTest, UnavailableIsTriedAgainWithGrowingWaits) {
  RetryPolicy policy;
  policy.max_attempts = 7;
  policy.max_backoff = milliseconds(700);
  Make(policy);
  EXPECT_CALL(*inner_, GetPlan).Times(7).WillRepeatedly(Return(absl::UnavailableError("away")));
  EXPECT_EQ(Get(), absl::UnavailableError("away"));
  EXPECT_THAT(waits_, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                  milliseconds(700), milliseconds(700), milliseconds(700)));
}

TEST_F(RetryingConnectionTest, FourAttemptsAreTheDefault) {
  Make();
  EXPECT_CALL(*inner_, GetPlan).Times(4).WillRepeatedly(Return(absl::UnavailableError("away")));
  EXPECT_TRUE(absl::IsUnavailable(Get()));
}

TEST_F(RetryingConnectionTest, JitterSpreadsTheWaits) {
  for (const auto& [uniform, wait] :
       {std::pair<double, nanoseconds>(0.0, milliseconds(70)), {1.0, milliseconds(130)}}) {
    uniform_ = uniform;
    Make();
    waits_.clear();
    EXPECT_CALL(*inner_, GetPlan).WillRepeatedly(Return(absl::UnavailableError("away")));
    EXPECT_TRUE(absl::IsUnavailable(Get()));
    EXPECT_NEAR(static_cast<double>(waits_[0].count()), static_cast<double>(wait.count()), 1.0);
  }
}

TEST_F(RetryingConnectionTest, StopsAtTheFirstAnswer) {
  Make();
  EXPECT_CALL(*inner_, GetPlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(PlanReply()));
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(waits_.size(), 1u);
}

TEST_F(RetryingConnectionTest, EveryCallIsRetried) {
  Make();
  const Profile profile = SmallProfile();
  EXPECT_CALL(*inner_, ComputePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(PlanReply()));
  EXPECT_CALL(*inner_, GetCapabilities)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(Capabilities()));
  EXPECT_TRUE(connection_->ComputePlan(profile, Budget(LeastBudget{}), {}, {}).ok());
  EXPECT_TRUE(connection_->GetCapabilities({}).ok());
}

TEST_F(RetryingConnectionTest, OtherErrorsStand) {
  for (const auto code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kCancelled,
        absl::StatusCode::kInternal, absl::StatusCode::kUnimplemented,
        absl::StatusCode::kFailedPrecondition, absl::StatusCode::kResourceExhausted}) {
    Make();
    EXPECT_CALL(*inner_, GetPlan).WillOnce(Return(absl::Status(code, "no")));
    EXPECT_EQ(Get().code(), code);
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RetryingConnectionTest, BusyServerIsAskedAgainWhenItSaid) {
  Make();
  EXPECT_CALL(*inner_, GetPlan)
      .WillOnce(Return(WithRetryDelay(absl::ResourceExhaustedError("busy"), milliseconds(1234))))
      .WillOnce(Return(PlanReply()));
  uniform_ = 0;
  EXPECT_TRUE(Get().ok());
  EXPECT_THAT(waits_, ElementsAre(milliseconds(1234)));
}

// A server gives all whom it sheds the same delay; they must not come back in step, nor wait a day.
TEST_F(RetryingConnectionTest, AskedWaitsAreSpreadAndBounded) {
  RetryPolicy policy;
  policy.jitter = 0.5;
  policy.max_server_delay = milliseconds(4000);
  Make(policy);
  EXPECT_CALL(*inner_, GetPlan)
      .WillOnce(Return(WithRetryDelay(absl::ResourceExhaustedError("busy"), milliseconds(1000))))
      .WillOnce(
          Return(WithRetryDelay(absl::ResourceExhaustedError("busy"), std::chrono::hours(24))))
      .WillOnce(Return(PlanReply()));
  uniform_ = 0.5;
  EXPECT_TRUE(Get().ok());
  EXPECT_THAT(waits_, ElementsAre(milliseconds(1250), milliseconds(5000)));
}

TEST_F(RetryingConnectionTest, BusyServerIsNotAskedForEver) {
  Make();
  EXPECT_CALL(*inner_, GetPlan)
      .Times(4)
      .WillRepeatedly(
          Return(WithRetryDelay(absl::ResourceExhaustedError("busy"), milliseconds(5))));
  EXPECT_TRUE(absl::IsResourceExhausted(Get()));
}

TEST_F(RetryingConnectionTest, NeverWaitsPastTheDeadline) {
  Make();
  CallOptions options;
  options.deadline = now_ + milliseconds(350);
  EXPECT_CALL(*inner_, GetPlan).Times(3).WillRepeatedly(Return(absl::UnavailableError("away")));
  EXPECT_TRUE(absl::IsUnavailable(Get(options)));
  // 400 ms more would pass it.
  EXPECT_THAT(waits_, ElementsAre(milliseconds(100), milliseconds(200)));
}

TEST_F(RetryingConnectionTest, DeadlineReachesTheCalls) {
  Make();
  CallOptions options;
  options.deadline = now_ + milliseconds(350);
  EXPECT_CALL(*inner_, GetPlan(_, _, testing::Field(&CallOptions::deadline, options.deadline)))
      .WillOnce(Return(PlanReply()));
  EXPECT_TRUE(Get(options).ok());
}

TEST(RetryEnvironment, RealOneSleepsAndDraws) {
  const RetryEnvironment real = RetryEnvironment::Real();
  const auto start = real.now();
  real.sleep(milliseconds(20));
  EXPECT_GE(real.now() - start, milliseconds(20));
  bool differs = false;
  const double first = real.uniform();
  for (int i = 0; i < 100; ++i) {
    const double drawn = real.uniform();
    EXPECT_GE(drawn, 0.0);
    EXPECT_LT(drawn, 1.0);
    differs |= drawn != first;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace stowage

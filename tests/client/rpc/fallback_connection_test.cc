#include "client/rpc/fallback_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/rpc/connect.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/mock_plan_connection.h"
#include "client/rpc/plan_client.h"
#include "client/rpc/retrying_connection.h"
#include "proto/codec/grpc_status.h"
#include "tests/client/rpc/fake_server.h"
#include "tests/client/rpc/plan_client_fixture.h"

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
  ON_CALL(*primary_, ExportDecisions).WillByDefault(Return(absl::UnavailableError("away")));
  ON_CALL(*primary_, ImportDecisions).WillByDefault(Return(absl::UnavailableError("away")));
  EXPECT_CALL(*second_, ExportDecisions).Times(0);
  EXPECT_CALL(*second_, ImportDecisions).Times(0);
  for (const absl::Status& status :
       {connection_->ExplainPlan({}, LeastBudget{}, {}).status(),
        connection_->ReportExecution({}, {}).status(), connection_->ListPlans({}, {}).status(),
        connection_->ChangePlan({}, RevisionAction::kPin, {}, {}),
        connection_->DeletePlan({}, {}, {}).status(),
        connection_->ExportDecisions("", 0, {}).status(),
        connection_->ImportDecisions({}, {}).status()}) {
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

// What threads wait for. For a minute at most: a test that fails must end.
class Moment {
 public:
  void Come() { come_.Cancel(); }
  void Wait() const { come_.SleepFor(std::chrono::minutes(1)); }

 private:
  CancelToken come_;
};

absl::Status UntilItIsEnded(const CallOptions& call) {
  if (call.cancel == nullptr) return absl::InternalError("a call that nobody can end");
  call.cancel->SleepFor(std::chrono::minutes(1));
  if (!call.cancel->cancelled()) return absl::InternalError("nobody has ended it");
  return absl::CancelledError("ended");
}

PlanReply PlanFoundBy(PlanSource source) {
  PlanReply reply;
  reply.plan.status = PlanStatus::kFound;
  reply.source = source;
  return reply;
}

class SlowPrimaryTest : public testing::Test {
 protected:
  using Answer = absl::StatusOr<PlanReply>;
  using Planning = std::function<Answer(const CallOptions&)>;

  SlowPrimaryTest() { Make(milliseconds(20)); }

  void Make(milliseconds patience, std::function<Clock::time_point()> now = Clock::now) {
    auto primary = std::make_unique<NiceMock<MockPlanConnection>>();
    auto second = std::make_unique<NiceMock<MockPlanConnection>>();
    primary_ = primary.get();
    second_ = second.get();
    ON_CALL(*primary_, name).WillByDefault(Return("P"));
    ON_CALL(*second_, name).WillByDefault(Return("S"));
    said_.clear();
    FallbackPolicy policy;
    policy.patience = patience;
    policy.now = std::move(now);
    connection_ = MakeFallbackConnection(
        std::move(primary), std::move(second),
        [this](const std::string& words) { said_.push_back(words); }, policy);
  }

  static void Plans(MockPlanConnection* connection, Planning planning) {
    ON_CALL(*connection, ComputePlan)
        .WillByDefault(
            [planning = std::move(planning)](auto&, auto&, auto&, const CallOptions& call) {
              return planning(call);
            });
  }

  Answer Compute(const CallOptions& options = {}) {
    return connection_->ComputePlan(SmallProfile(), LeastBudget{}, {}, options);
  }

  MockPlanConnection* primary_;
  MockPlanConnection* second_;
  std::vector<std::string> said_;
  std::unique_ptr<PlanConnection> connection_;
};

TEST_F(SlowPrimaryTest, ThePlanMadeHereIsFirstAndTheOtherCallGoesOn) {
  std::atomic<int> solved{0};
  Moment all_asked;
  Plans(primary_, [&](const CallOptions&) {
    all_asked.Wait();
    ++solved;
    return Answer(PlanFoundBy(PlanSource::kSolved));
  });
  Plans(second_, [](const CallOptions&) { return Answer(PlanFoundBy(PlanSource::kLocal)); });
  for (int call = 1; call <= 2; ++call) {
    const Answer reply = Compute();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->source,
              PlanSource::kLocal);  // one that thinks is not away: it is asked the next time
  }
  all_asked.Come();
  connection_.reset();  // waits for what it ends
  EXPECT_EQ(solved, 2);
  EXPECT_THAT(said_, ElementsAre("P has not answered yet: falling back to S"));
}

TEST_F(SlowPrimaryTest, FewCallsGoOnAndEndWithTheConnection) {
  std::atomic<int> asked{0}, ended{0};
  Plans(primary_, [&](const CallOptions& call) {
    ++asked;
    const absl::Status status = UntilItIsEnded(call);
    if (absl::IsCancelled(status)) ++ended;
    return Answer(status);
  });
  Plans(second_, [](const CallOptions&) { return Answer(PlanFoundBy(PlanSource::kLocal)); });
  constexpr int kCalls = 7, kMost = 4;
  for (int call = 1; call <= kCalls; ++call) {
    EXPECT_EQ(Compute().value().source, PlanSource::kLocal);
    EXPECT_EQ(ended, std::max(0, call - kMost));
  }
  connection_.reset();
  EXPECT_EQ(asked, kCalls);
  EXPECT_EQ(ended, kCalls);
}

TEST_F(SlowPrimaryTest, TheCallersTokenEndsACallThatGoesOn) {
  Moment ended;
  Plans(primary_, [&](const CallOptions& call) {
    const absl::Status status = UntilItIsEnded(call);
    ended.Come();
    return Answer(status);
  });
  Plans(second_, [](const CallOptions&) { return Answer(PlanFoundBy(PlanSource::kLocal)); });
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  EXPECT_EQ(Compute(options).value().source, PlanSource::kLocal);
  options.cancel->Cancel();
  ended.Wait();
  connection_.reset();
}

TEST_F(SlowPrimaryTest, WhoAnswersWithinThePatienceIsAlone) {
  Make(std::chrono::hours(1));
  EXPECT_CALL(*second_, ComputePlan).Times(0);
  Plans(primary_, [](const CallOptions&) { return Answer(PlanFoundBy(PlanSource::kSolved)); });
  EXPECT_EQ(Compute().value().source, PlanSource::kSolved);
  EXPECT_TRUE(said_.empty());
}

// Whatever it says, as long as it says something.
TEST_F(SlowPrimaryTest, AnAnswerOfThePrimaryEndsTheSolveHere) {
  for (const Answer& answer :
       {Answer(PlanFoundBy(PlanSource::kSolved)), Answer(absl::InvalidArgumentError("no")),
        Answer(absl::PermissionDeniedError("not you")),
        Answer(absl::ResourceExhaustedError("too large")), Answer(absl::InternalError("bug"))}) {
    Moment begun;
    bool ended = false;
    Plans(primary_, [&](const CallOptions&) {
      begun.Wait();
      return answer;
    });
    Plans(second_, [&](const CallOptions& call) {
      begun.Come();
      const absl::Status status = UntilItIsEnded(call);
      ended = absl::IsCancelled(status);
      return Answer(status);
    });
    const Answer reply = Compute();
    EXPECT_EQ(reply.status(), answer.status());
    if (reply.ok()) {
      EXPECT_EQ(reply->source, PlanSource::kSolved);
    }
    EXPECT_TRUE(ended) << answer.status();
  }
  EXPECT_TRUE(said_.empty());
}

TEST_F(SlowPrimaryTest, WhereThePrimaryHasNoneThePlanMadeHereIsTheAnswer) {
  const std::vector<std::pair<absl::Status, std::string>> failures = {
      {absl::UnavailableError("away"), "P is not reachable (away): falling back to S"},
      {WithRetryDelay(absl::ResourceExhaustedError("queue full"), seconds(1)),
       "P is busy (queue full): falling back to S"},
      {absl::DeadlineExceededError("late"), "P has not answered yet: falling back to S"}};
  for (const auto& [failure, words] : failures) {
    Make(milliseconds(20));
    Moment begun, failed;
    Plans(primary_, [&, &status = failure](const CallOptions&) {
      begun.Wait();
      failed.Come();
      return Answer(status);
    });
    Plans(second_, [&](const CallOptions&) {
      begun.Come();
      failed.Wait();
      std::this_thread::sleep_for(milliseconds(20));  // mostly it is seen to have failed by then
      return Answer(PlanFoundBy(PlanSource::kLocal));
    });
    const Answer reply = Compute();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->source, PlanSource::kLocal);
    EXPECT_THAT(said_, ElementsAre(words));
  }
}

// An error, or a search that has neither found nor proven anything.
TEST_F(SlowPrimaryTest, WhereNothingComesOfPlanningHereThePrimaryIsWaitedFor) {
  for (const Answer& nothing : {Answer(absl::InternalError("bug")), Answer(LocalReply())}) {
    Moment failed;
    Plans(primary_, [&](const CallOptions&) {
      failed.Wait();
      std::this_thread::sleep_for(milliseconds(20));  // mostly that is seen by then
      return Answer(PlanFoundBy(PlanSource::kSolved));
    });
    Plans(second_, [&](const CallOptions&) {
      failed.Come();
      return nothing;
    });
    EXPECT_EQ(Compute().value().source, PlanSource::kSolved);
  }
  EXPECT_TRUE(said_.empty());
}

TEST_F(SlowPrimaryTest, AProofThatNothingFitsIsAnAnswer) {
  Plans(primary_, [](const CallOptions& call) { return Answer(UntilItIsEnded(call)); });
  Plans(second_, [](const CallOptions&) {
    PlanReply proof = LocalReply();
    proof.plan.status = PlanStatus::kProvenInfeasible;
    return Answer(proof);
  });
  EXPECT_EQ(Compute().value().plan.status, PlanStatus::kProvenInfeasible);
}

TEST_F(SlowPrimaryTest, WhereBothFailAnErrorThatIsAnAnswerStands) {
  const auto both = [this](const absl::Status& primary, const absl::Status& second) {
    Make(milliseconds(20));
    Moment begun;
    Plans(primary_, [&](const CallOptions&) {
      begun.Wait();
      return Answer(primary);
    });
    Plans(second_, [&](const CallOptions&) {
      begun.Come();
      return Answer(second);
    });
    return Compute().status();
  };
  const absl::Status bug = absl::InternalError("bug");
  EXPECT_EQ(both(absl::InvalidArgumentError("no"), bug), absl::InvalidArgumentError("no"));
  EXPECT_EQ(both(absl::UnavailableError("away"), bug), bug);
  EXPECT_EQ(both(absl::DeadlineExceededError("late"), bug), bug);
}

TEST_F(SlowPrimaryTest, TheCallersTokenEndsBoth) {
  Moment begun;
  bool second_ended = false;
  Plans(primary_, [](const CallOptions& call) { return Answer(UntilItIsEnded(call)); });
  Plans(second_, [&](const CallOptions& call) {
    begun.Come();
    const absl::Status status = UntilItIsEnded(call);
    second_ended = absl::IsCancelled(status);
    return Answer(status);
  });
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  std::thread caller([&] {
    begun.Wait();
    options.cancel->Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(Compute(options).status()));
  EXPECT_TRUE(second_ended);
  caller.join();
}

TEST_F(SlowPrimaryTest, TheCallersTokenEndsThePrimaryWithinItsPatience) {
  Make(std::chrono::hours(1));
  EXPECT_CALL(*second_, ComputePlan).Times(0);
  Moment begun;
  Plans(primary_, [&begun](const CallOptions& call) {
    begun.Come();
    return Answer(UntilItIsEnded(call));
  });
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  std::thread caller([&] {
    begun.Wait();
    options.cancel->Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(Compute(options).status()));
  caller.join();
}

// A quarter of its time, where that is less: the rest is for planning here.
TEST_F(SlowPrimaryTest, AShortCallIsShortOfPatience) {
  Make(std::chrono::hours(1));
  Plans(primary_, [](const CallOptions& call) { return Answer(UntilItIsEnded(call)); });
  Plans(second_, [](const CallOptions&) { return Answer(PlanFoundBy(PlanSource::kLocal)); });
  EXPECT_EQ(Compute(CallOptions::Within(seconds(2))).value().source, PlanSource::kLocal);
}

// Both tell of theirs at the same time.
TEST_F(SlowPrimaryTest, ProgressIsToldOnTheThreadOfTheCallAndNeverFalls) {
  Plan fast, slow;
  fast.prediction.makespan = Nanos(5);
  slow.prediction.makespan = Nanos(8);
  Moment told;
  ON_CALL(*primary_, WatchPlan)
      .WillByDefault(
          [&](auto&, auto&, auto&, const ProgressCallback& progress, const CallOptions& call) {
            progress({0.1, &slow});
            progress({0.6, &fast});
            told.Come();
            const absl::Status status = UntilItIsEnded(call);
            progress({0.9, nullptr});  // to nobody: the other is first
            return Answer(status);
          });
  ON_CALL(*second_, WatchPlan)
      .WillByDefault(
          [&](auto&, auto&, auto&, const ProgressCallback& progress, const CallOptions&) {
            told.Wait();
            progress({0.2, &slow});
            progress({0.7, nullptr});
            return Answer(PlanFoundBy(PlanSource::kLocal));
          });
  std::vector<double> shares;
  std::vector<int64_t> best;
  bool has_returned = false;
  const auto reply = connection_->WatchPlan(
      SmallProfile(), LeastBudget{}, {},
      [&, here = std::this_thread::get_id()](const PlanProgress& so_far) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_FALSE(has_returned);
        shares.push_back(so_far.share);
        best.push_back(so_far.best == nullptr ? 0 : so_far.best->prediction.makespan.value());
      },
      {});
  has_returned = true;
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->source, PlanSource::kLocal);
  connection_.reset();  // ends the other one
  EXPECT_THAT(shares, ElementsAre(0.1, 0.6, 0.6, 0.7));
  EXPECT_THAT(best, ElementsAre(8, 5, 5, 5));
}

TEST_F(SlowPrimaryTest, WhoIsSlowToListenHearsTheLatest) {
  Make(std::chrono::hours(1));
  Moment said;
  ON_CALL(*primary_, WatchPlan)
      .WillByDefault(
          [&](auto&, auto&, auto&, const ProgressCallback& progress, const CallOptions&) {
            for (int i = 1; i <= 1000; ++i) progress({i / 1000.0, nullptr});
            said.Come();
            return Answer(PlanFoundBy(PlanSource::kSolved));
          });
  std::vector<double> shares;
  const auto reply = connection_->WatchPlan(SmallProfile(), LeastBudget{}, {},
                                            [&](const PlanProgress& so_far) {
                                              said.Wait();
                                              shares.push_back(so_far.share);
                                            },
                                            {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_FALSE(shares.empty());
  EXPECT_LE(shares.size(), 128u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1.0);
}

// What needs no solve is answered at once, or not at all.
TEST_F(SlowPrimaryTest, OneThatDoesNotAnswerByKeyIsAsOneThatIsAway) {
  const Clock::time_point now = Clock::now();
  Make(milliseconds(20), [now] { return now; });
  ON_CALL(*primary_, GetPlan).WillByDefault([](auto&, auto&, const CallOptions& call) {
    return Answer(UntilItIsEnded(call));
  });
  EXPECT_CALL(*second_, GetPlan).WillOnce(Return(absl::NotFoundError("no cache")));
  EXPECT_TRUE(
      absl::IsNotFound(connection_->GetPlan({PlanKey()}, Budget(LeastBudget{}), {}).status()));
  EXPECT_THAT(said_, ElementsAre("P is not reachable (no answer within 20 ms): falling back to S"));
  EXPECT_CALL(*primary_, ComputePlan).Times(0);
  EXPECT_CALL(*second_, ComputePlan).WillOnce(Return(LocalReply()));
  EXPECT_TRUE(Compute().ok());
}

TEST_F(SlowPrimaryTest, OneThatDoesNotSayWhatItIsIsAway) {
  const Clock::time_point now = Clock::now();
  Make(milliseconds(20), [now] { return now; });
  EXPECT_CALL(*primary_, GetCapabilities).WillOnce([](const CallOptions& call) {
    return absl::StatusOr<Capabilities>(UntilItIsEnded(call));
  });
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = connection_->GetCapabilities({}).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
}

TEST_F(SlowPrimaryTest, ALookupInAHurrySaysNothingOfThePrimary) {
  Make(std::chrono::hours(1));
  ON_CALL(*primary_, GetPlan).WillByDefault([](auto&, auto&, const CallOptions& call) {
    return Answer(UntilItIsEnded(call));
  });
  ON_CALL(*second_, GetPlan).WillByDefault(Return(absl::NotFoundError("no cache")));
  EXPECT_TRUE(absl::IsNotFound(
      connection_->GetPlan({PlanKey()}, LeastBudget{}, CallOptions::Within(seconds(2))).status()));
  EXPECT_CALL(*primary_, ComputePlan).WillOnce(Return(PlanFoundBy(PlanSource::kCache)));
  EXPECT_EQ(Compute().value().source, PlanSource::kCache);
}

TEST_F(SlowPrimaryTest, TheCallersTokenEndsALookup) {
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  options.cancel->Cancel();
  EXPECT_CALL(*second_, GetPlan).Times(0);
  ON_CALL(*primary_, GetPlan).WillByDefault([](auto&, auto&, const CallOptions& call) {
    return Answer(UntilItIsEnded(call));
  });
  EXPECT_TRUE(
      absl::IsCancelled(connection_->GetPlan({PlanKey()}, LeastBudget{}, options).status()));
}

TEST_F(SlowPrimaryTest, WithoutAnEndOfPatienceNothingGoesOnBeside) {
  for (const milliseconds patience :
       {FallbackPolicy::kNever, milliseconds::max(), milliseconds(0), milliseconds(-1)}) {
    Make(patience);
    EXPECT_CALL(*second_, ComputePlan).Times(0);
    Plans(primary_, [here = std::this_thread::get_id()](const CallOptions& call) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      EXPECT_EQ(call.cancel, nullptr);
      return Answer(PlanFoundBy(PlanSource::kSolved));
    });
    EXPECT_EQ(Compute().value().source, PlanSource::kSolved);
  }
}

// Nobody's start waits for these.
TEST_F(SlowPrimaryTest, FrontiersAndBatchesHaveTheWholeOfTheirTime) {
  const auto here = std::this_thread::get_id();
  EXPECT_CALL(*second_, GetFrontier).Times(0);
  EXPECT_CALL(*second_, FitBatch).Times(0);
  EXPECT_CALL(*primary_, GetFrontier).WillOnce([here](auto&, auto&, int, const CallOptions&) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    return absl::StatusOr<FrontierReply>(FrontierReply());
  });
  EXPECT_CALL(*primary_, FitBatch).WillOnce([here](auto&, const CallOptions&) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    return absl::StatusOr<BatchReply>(BatchReply());
  });
  EXPECT_TRUE(connection_->GetFrontier(SmallProfile(), {}, 0, {}).ok());
  EXPECT_TRUE(connection_->FitBatch({}, {}).ok());
}

// It has neither the threads of its parent nor its server.
TEST_F(SlowPrimaryTest, AForkedChildStartsNoThreads) {
  Make(std::chrono::hours(1));
  Plans(primary_, [](const CallOptions& call) {
    if (call.cancel != nullptr) return Answer(absl::AbortedError("on a thread of its own"));
    return Answer(PlanFoundBy(PlanSource::kSolved));
  });
  EXPECT_TRUE(absl::IsAborted(Compute().status()));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    _exit(Compute().ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

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

TEST(Connect, PlansHereBesideAServerThatThinksForLong) {
  SocketAddress address;
  FakeServer server(address.uri());
  server.hangs = true;
  GrpcOptions options;
  options.address = address.uri();
  FallbackPolicy policy;
  policy.patience = milliseconds(100);
  const auto connection = Connect(options, nullptr, {}, policy);
  const auto reply = connection->ComputePlan(SmallProfile(), Budget(ShareOfStoreAll{0.8}), {},
                                             CallOptions::Within(std::chrono::minutes(5)));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->source, PlanSource::kLocal);
  EXPECT_EQ(reply->plan.status, PlanStatus::kFound);
}

// It says what it is, and answers nothing else: all calls of a start together lose no more than that moment.
TEST(Connect, AStartIsPlannedHereWhereTheServerHangs) {
  SocketAddress address;
  FakeServer server(address.uri());
  server.hangs = true;
  GrpcOptions options;
  options.address = address.uri();
  FallbackPolicy policy;
  policy.patience = milliseconds(100);
  policy.now = [now = Clock::now()] { return now; };  // once it is left alone, it stays so
  const auto connection = Connect(options, nullptr, {}, policy);
  PlanClient client(connection.get(), {});
  CountingSource job;
  const auto plan =
      client.Plan(&job, Budget(ShareOfStoreAll{0.8}), CallOptions::Within(std::chrono::minutes(5)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->reply.source, PlanSource::kLocal);
  EXPECT_LE(server.calls, 2);
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

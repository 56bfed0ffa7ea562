#include "client/rpc/retrying_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
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
    environment.sleep = [this](nanoseconds wait, const CancelToken*) {
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

TEST_F(RetryingConnectionTest, AServerThatIsAwayOrBusyIsTriedAgainUntilItShouldHaveBeenReached) {
  Make();
  CallOptions options;
  options.reach_by = now_ + milliseconds(200);
  EXPECT_CALL(*inner_, GetPlan).Times(2).WillRepeatedly(Return(absl::UnavailableError("away")));
  EXPECT_TRUE(absl::IsUnavailable(Get(options)));
  EXPECT_THAT(waits_, ElementsAre(milliseconds(100)));
  // Nor does one that is busy take time that is meant for another way to a plan.
  options.reach_by = now_ + milliseconds(800);
  options.deadline = now_ + milliseconds(3200);
  EXPECT_CALL(*inner_, GetPlan)
      .Times(2)
      .WillRepeatedly(
          Return(WithRetryDelay(absl::ResourceExhaustedError("busy"), milliseconds(500))));
  EXPECT_TRUE(absl::IsResourceExhausted(Get(options)));
}

// Fails twice, then answers: how often a call was made says whether it was tried again.
template <class Result>
auto AfterTwo(const absl::Status& error, int* calls, Result result) {
  return [error, calls, result](auto&&...) -> Result {
    return ++*calls <= 2 ? Result(error) : result;
  };
}

// How often each call is made when it fails twice.
class SafetyTest : public RetryingConnectionTest {
 protected:
  void FailTwice(const absl::Status& error) {
    Make();
    const Profile profile = SmallProfile();
    ON_CALL(*inner_, GetPlan).WillByDefault(AfterTwo(error, &get_, Reply(PlanReply())));
    ON_CALL(*inner_, ComputePlan).WillByDefault(AfterTwo(error, &compute_, Reply(PlanReply())));
    ON_CALL(*inner_, WatchPlan).WillByDefault(AfterTwo(error, &watch_, Reply(PlanReply())));
    ON_CALL(*inner_, GetFrontier)
        .WillByDefault(AfterTwo(error, &frontier_, Reply(FrontierReply())));
    ON_CALL(*inner_, FitBatch).WillByDefault(AfterTwo(error, &batch_, Reply(BatchReply())));
    ON_CALL(*inner_, ExplainPlan).WillByDefault(AfterTwo(error, &explain_, Reply(std::string())));
    ON_CALL(*inner_, ReportExecution)
        .WillByDefault(AfterTwo(error, &report_, Reply(ExecutionVerdict::kAccepted)));
    ON_CALL(*inner_, ListPlans).WillByDefault(AfterTwo(error, &list_, Reply(PlanPage())));
    ON_CALL(*inner_, ChangePlan).WillByDefault(AfterTwo(error, &pin_, absl::OkStatus()));
    ON_CALL(*inner_, DeletePlan).WillByDefault(AfterTwo(error, &delete_, Reply(true)));
    ON_CALL(*inner_, ExportDecisions)
        .WillByDefault(AfterTwo(error, &export_, Reply(ExportedDecisions())));
    ON_CALL(*inner_, ImportDecisions)
        .WillByDefault(AfterTwo(error, &import_, Reply(ImportedDecisions())));
    ON_CALL(*inner_, GetCapabilities)
        .WillByDefault(AfterTwo(error, &capabilities_, Reply(Capabilities())));
    (void)connection_->GetPlan({PlanKey()}, LeastBudget{}, {});
    (void)connection_->ComputePlan(profile, LeastBudget{}, {}, {});
    (void)connection_->WatchPlan(profile, LeastBudget{}, {}, {}, {});
    (void)connection_->GetFrontier(profile, {}, 0, {});
    (void)connection_->FitBatch({}, {});
    (void)connection_->ExplainPlan({}, LeastBudget{}, {});
    (void)connection_->ReportExecution({}, {});
    (void)connection_->ListPlans({}, {});
    (void)connection_->ChangePlan({}, RevisionAction::kPin, {}, {});
    (void)connection_->DeletePlan({}, {}, {});
    (void)connection_->ExportDecisions("", 0, {});
    (void)connection_->ImportDecisions({}, {});
    (void)connection_->GetCapabilities({});
  }

  // What may be repeated: reads, and what says itself which of two is later.
  std::vector<int> Repeatable() const {
    return {get_,     compute_, watch_,  frontier_, batch_,
            explain_, list_,    export_, import_,   capabilities_};
  }
  std::vector<int> Writes() const { return {report_, pin_, delete_}; }

  template <class T>
  static absl::StatusOr<T> Reply(T value) {
    return absl::StatusOr<T>(std::move(value));
  }

  int get_ = 0, compute_ = 0, watch_ = 0, frontier_ = 0, batch_ = 0, explain_ = 0, report_ = 0;
  int list_ = 0, pin_ = 0, delete_ = 0, export_ = 0, import_ = 0, capabilities_ = 0;
};

TEST_F(SafetyTest, WithoutAnAnswerOnlyWhatIsSafeIsTriedAgain) {
  FailTwice(absl::UnavailableError("away"));
  EXPECT_THAT(Repeatable(), testing::Each(3));
  EXPECT_THAT(Writes(), testing::Each(1));
}

TEST_F(SafetyTest, WhatWasRefusedIsTriedAgain) {
  FailTwice(WithRetryDelay(absl::ResourceExhaustedError("busy"), milliseconds(5)));
  EXPECT_THAT(Repeatable(), testing::Each(3));
  EXPECT_THAT(Writes(), testing::Each(3));
}

// Under one id, so that a server that has made it does not make it again.
TEST_F(RetryingConnectionTest, AChangeWithAnEtagIsTriedAgainUnderOneId) {
  Make();
  std::vector<std::string> ids;
  const auto fail_twice = [&](const ChangeTerms& terms) {
    EXPECT_EQ(terms.etag, "e");
    ids.push_back(terms.request_id);
    return ids.size() % 3 == 0 ? absl::OkStatus() : absl::UnavailableError("away");
  };
  EXPECT_CALL(*inner_, ChangePlan)
      .Times(6)
      .WillRepeatedly(
          [&](auto&&, auto&&, const ChangeTerms& terms, auto&&) { return fail_twice(terms); });
  EXPECT_CALL(*inner_, DeletePlan)
      .Times(3)
      .WillRepeatedly([&](auto&&, const ChangeTerms& terms, auto&&) -> absl::StatusOr<bool> {
        const absl::Status status = fail_twice(terms);
        if (!status.ok()) return status;
        return true;
      });
  EXPECT_TRUE(connection_->ChangePlan({}, RevisionAction::kUnpin, {"e", ""}, {}).ok());
  EXPECT_TRUE(connection_->ChangePlan({}, RevisionAction::kUnpin, {"e", "mine"}, {}).ok());
  EXPECT_TRUE(*connection_->DeletePlan({}, {"e", ""}, {}));
  ASSERT_EQ(ids.size(), 9u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], ids[i - i % 3]);
  EXPECT_EQ(ids[3], "mine");
  EXPECT_NE(ids[0], ids[6]);
  EXPECT_THAT(ids[0],
              testing::MatchesRegex("[0-9a-f-]{14}4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

// Another server than the one that may have made it.
TEST_F(RetryingConnectionTest, AnEtagThatHasGoneAfterALostAnswerIsSaidSo) {
  Make();
  EXPECT_CALL(*inner_, ChangePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(WithReason(absl::AbortedError("changed"), kReasonEtagMismatch)));
  const absl::Status status = connection_->ChangePlan({}, RevisionAction::kPin, {"e", ""}, {});
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(GetReason(status), kReasonEtagMismatch);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("may have been carried out"));
}

TEST_F(RetryingConnectionTest, WhatIsGoneAfterALostAnswerWasDeleted) {
  Make();
  EXPECT_CALL(*inner_, DeletePlan)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(false))
      .WillOnce(Return(false));
  const absl::StatusOr<bool> deleted = connection_->DeletePlan({}, {"e", ""}, {});
  EXPECT_TRUE(deleted.ok() && *deleted) << deleted.status();
  const absl::StatusOr<bool> nothing = connection_->DeletePlan({}, {"e", ""}, {});
  EXPECT_TRUE(nothing.ok() && !*nothing) << nothing.status();
}

TEST_F(RetryingConnectionTest, AReportWithTheNameOfItsJobIsTriedAgain) {
  Make();
  EXPECT_CALL(*inner_, ReportExecution)
      .WillOnce(Return(absl::UnavailableError("away")))
      .WillOnce(Return(ExecutionVerdict::kAccepted));
  CallOptions options;
  options.job = "job";
  EXPECT_TRUE(connection_->ReportExecution({}, options).ok());
}

// The connection was lost, and the server still has what it had found. What the caller has seen is not unsaid.
TEST_F(RetryingConnectionTest, WatchingGoesOnWhereItsConnectionWasLost) {
  Make();
  const auto tells = [](std::vector<double> shares, absl::StatusOr<PlanReply> reply) {
    return [shares, reply](const Profile&, const Budget&, const KeyOptions&,
                           const ProgressCallback& progress, const CallOptions&) {
      for (const double share : shares) progress({share, nullptr});
      return reply;
    };
  };
  EXPECT_CALL(*inner_, WatchPlan)
      .WillOnce(tells({0.2, 0.5}, absl::UnavailableError("gone")))
      .WillOnce(tells({0.1, 0.7}, PlanReply()));
  std::vector<double> seen;
  const auto reply = connection_->WatchPlan(
      SmallProfile(), LeastBudget{}, {},
      [&seen](const PlanProgress& progress) { seen.push_back(progress.share); }, {});
  EXPECT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(seen, ElementsAre(0.2, 0.5, 0.5, 0.7));
}

// Each of the connections brings the work further.
TEST_F(RetryingConnectionTest, LongWorkSurvivesAnyNumberOfLostConnectionsWithinItsDeadline) {
  constexpr int kLost = 9;
  Make();
  CallOptions options;
  options.deadline = now_ + std::chrono::hours(1);
  int asked = 0;
  EXPECT_CALL(*inner_, WatchPlan)
      .Times(kLost + 1)
      .WillRepeatedly([&](const Profile&, const Budget&, const KeyOptions&,
                          const ProgressCallback& progress,
                          const CallOptions& given) -> absl::StatusOr<PlanReply> {
        EXPECT_EQ(given.deadline, options.deadline);
        progress({0.1 * asked, nullptr});
        if (asked++ < kLost) return absl::UnavailableError("gone");
        return PlanReply();
      });
  EXPECT_TRUE(connection_->WatchPlan(SmallProfile(), LeastBudget{}, {}, {}, options).ok());
  EXPECT_EQ(waits_.size(), static_cast<size_t>(kLost));
  EXPECT_THAT(waits_, testing::Each(milliseconds(100)));
}

TEST_F(RetryingConnectionTest, AWatchThatIsLostAtTheSamePlaceAgainAndAgainEnds) {
  Make();
  EXPECT_CALL(*inner_, WatchPlan)
      .Times(4)
      .WillRepeatedly([](const Profile&, const Budget&, const KeyOptions&,
                         const ProgressCallback& progress,
                         const CallOptions&) -> absl::StatusOr<PlanReply> {
        progress({0.5, nullptr});
        return absl::UnavailableError("gone");
      });
  EXPECT_TRUE(absl::IsUnavailable(
      connection_->WatchPlan(SmallProfile(), LeastBudget{}, {}, {}, {}).status()));
}

TEST_F(RetryingConnectionTest, AWatchIsNotTakenUpPastItsDeadline) {
  Make();
  CallOptions options;
  options.deadline = now_ + milliseconds(150);
  double share = 0;
  EXPECT_CALL(*inner_, WatchPlan)
      .Times(2)
      .WillRepeatedly([&share](const Profile&, const Budget&, const KeyOptions&,
                               const ProgressCallback& progress,
                               const CallOptions&) -> absl::StatusOr<PlanReply> {
        progress({share += 0.1, nullptr});
        return absl::UnavailableError("gone");
      });
  EXPECT_TRUE(absl::IsUnavailable(
      connection_->WatchPlan(SmallProfile(), LeastBudget{}, {}, {}, options).status()));
}

// Where the connection is lost a second server is asked, which is behind, until the deadline.
TEST_F(RetryingConnectionTest, TheBestPlanThatWasShownStays) {
  const auto plan_of = [](int64_t makespan) {
    Plan plan;
    plan.status = PlanStatus::kFound;
    plan.search_complete = false;
    plan.prediction.makespan = Nanos(makespan);
    return plan;
  };
  const auto shows = [](const Plan& plan, absl::StatusOr<PlanReply> reply) {
    return [plan, reply](const Profile&, const Budget&, const KeyOptions&,
                         const ProgressCallback& progress, const CallOptions&) {
      progress({0.5, &plan});
      return reply;
    };
  };
  for (const bool answers : {false, true}) {
    Make();
    absl::StatusOr<PlanReply> end = absl::DeadlineExceededError("late");
    if (answers) end = PlanReply{plan_of(80), PlanKey(), PlanSource::kSolved};
    EXPECT_CALL(*inner_, WatchPlan)
        .WillOnce(shows(plan_of(50), absl::UnavailableError("gone")))
        .WillOnce(shows(plan_of(90), end));
    std::vector<int64_t> shown;
    const auto reply =
        connection_->WatchPlan(SmallProfile(), LeastBudget{}, {},
                               [&shown](const PlanProgress& progress) {
                                 shown.push_back(progress.best->prediction.makespan.value());
                               },
                               {});
    EXPECT_THAT(shown, ElementsAre(50, 50));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->plan.prediction.makespan, Nanos(50));
  }
}

TEST_F(RetryingConnectionTest, ACancelledCallIsNotTriedAgain) {
  Make();
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  EXPECT_CALL(*inner_, GetPlan).WillOnce([&options](auto&&...) {
    options.cancel->Cancel();
    return absl::UnavailableError("away");
  });
  EXPECT_TRUE(absl::IsCancelled(Get(options)));
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
  real.sleep(milliseconds(20), nullptr);
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

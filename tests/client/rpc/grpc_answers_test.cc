// What becomes of a server's answers, and of calls that their caller ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "client/rpc/local_connection.h"
#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"
#include "tests/client/rpc/served_connection.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

using Clock = CallOptions::Clock;

class GrpcAnswersTest : public ConnectionTest {};

TEST_F(GrpcAnswersTest, AnswerThatBreaksTheContractIsInternal) {
  FakeServer server(address_.uri());
  server.compute_plan = [](const v1::ComputePlanRequest& request, v1::ComputePlanResponse* out) {
    const absl::Status status = SolveFor(request, out);
    out->mutable_plan()->set_digest("forged");
    return status;
  };
  const auto reply = Compute();
  EXPECT_TRUE(absl::IsInternal(reply.status())) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("plan.digest"));
  EXPECT_FALSE(GetFieldViolation(reply.status()).has_value());
}

// A server that hands out another budget's plan is not obeyed.
TEST_F(GrpcAnswersTest, PlanThatTheEvaluatorRefusesIsInternal) {
  FakeServer server(address_.uri());
  server.compute_plan = [](v1::ComputePlanRequest request, v1::ComputePlanResponse* out) {
    request.mutable_budget()->set_share_of_store_all(1.0);
    const absl::Status status = SolveFor(request, out);
    out->mutable_plan()->set_budget_bytes(1);
    out->mutable_plan()->mutable_prediction()->set_peak_bytes(1);
    return status;
  };
  const auto reply = Compute();
  EXPECT_TRUE(absl::IsInternal(reply.status())) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("evaluator"));
}

TEST_F(GrpcAnswersTest, PlanOfAnotherKeyIsInternal) {
  FakeServer server(address_.uri());
  server.get_plan = [](const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
    *response->mutable_key() = request.keys(0);
    response->mutable_key()->set_encoding_version(2);
    response->mutable_plan()->set_status(v1::PLAN_STATUS_NOT_FOUND);
    response->mutable_plan()->set_digest(ScheduleDigest({}).ToBinary());
    return absl::OkStatus();
  };
  const auto reply = connection_->GetPlan({PlanKey{1, Sha256("k")}}, budget_, {});
  EXPECT_TRUE(absl::IsInternal(reply.status())) << reply.status();
}

// Nor is it believed: what is predicted is what the caller's own profile says.
TEST_F(GrpcAnswersTest, PredictionsAreMadeHere) {
  FakeServer server(address_.uri());
  server.compute_plan = [](const v1::ComputePlanRequest& request, v1::ComputePlanResponse* out) {
    const absl::Status status = SolveFor(request, out);
    out->mutable_plan()->mutable_prediction()->set_makespan_ns(1);
    out->mutable_plan()->mutable_prediction()->set_peak_bytes(1);
    out->mutable_plan()->mutable_bounds()->set_lower_bound_ns(1);
    return status;
  };
  const auto reply = Compute();
  const auto local = MakeLocalConnection()->ComputePlan(SmallProfile(), budget_, {}, {});
  ASSERT_TRUE(reply.ok() && local.ok()) << reply.status() << local.status();
  EXPECT_EQ(reply->plan.prediction.makespan, local->plan.prediction.makespan);
  EXPECT_EQ(reply->plan.prediction.peak, local->plan.prediction.peak);
  EXPECT_EQ(reply->plan.bounds.lower_bound, local->plan.bounds.lower_bound);
}

TEST_F(GrpcAnswersTest, CallsSayWhoseTheyAre) {
  FakeServer server(address_.uri());
  CallOptions options = CallOptions::Within(seconds(10));
  options.job = "a job";
  server.compute_plan = [](const v1::ComputePlanRequest& request, v1::ComputePlanResponse* out) {
    EXPECT_EQ(request.job(), "a job");
    return SolveFor(request, out);
  };
  server.get_plan = [](const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
    EXPECT_EQ(request.job(), "a job");
    *response->mutable_key() = request.keys(0);
    response->mutable_plan()->set_status(v1::PLAN_STATUS_NOT_FOUND);
    response->mutable_plan()->set_digest(ScheduleDigest({}).ToBinary());
    response->set_profile_wanted(true);
    return absl::OkStatus();
  };
  EXPECT_TRUE(Compute(options).ok());
  const auto cached = connection_->GetPlan({PlanKey{1, Sha256("k")}}, budget_, options);
  ASSERT_TRUE(cached.ok()) << cached.status();
  EXPECT_TRUE(cached->profile_wanted);
}

// A schedule that the caller holds comes without its instructions, and is the caller's all the same.
TEST_F(GrpcAnswersTest, APlanThatIsHeldIsToldAsUnchanged) {
  FakeServer server(address_.uri());
  v1::Plan sent;
  std::string asked_with;
  server.get_plan = [&](const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
    asked_with = request.held_digest();
    *response->mutable_key() = request.keys(0);
    *response->mutable_plan() = sent;
    response->set_unchanged(true);
    return absl::OkStatus();
  };
  const auto local = MakeLocalConnection()->ComputePlan(SmallProfile(), budget_, {}, {});
  ASSERT_TRUE(local.ok()) << local.status();
  CallOptions options = CallOptions::Within(seconds(10));
  options.held = std::make_shared<const Plan>(local->plan);
  sent = ToProto(local->plan);
  sent.clear_schedule();
  sent.set_revision(7);
  const auto ask = [&](const CallOptions& call) {
    return connection_->GetPlan({PlanKey{1, Sha256("k")}}, budget_, call);
  };
  const auto reply = ask(options);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(asked_with, ScheduleDigest(local->plan.schedule).ToBinary());
  EXPECT_TRUE(reply->unchanged);
  EXPECT_EQ(reply->plan.schedule, local->plan.schedule);
  EXPECT_EQ(reply->plan.revision, 7);

  sent.set_digest(Sha256("another schedule").ToBinary());
  EXPECT_TRUE(absl::IsInternal(ask(options).status()));
  EXPECT_TRUE(absl::IsInternal(ask(CallOptions::Within(seconds(10))).status()));
}

TEST_F(GrpcAnswersTest, CancelTokenEndsACall) {
  FakeServer server(address_.uri());
  server.hangs = true;
  CallOptions options = CallOptions::Within(seconds(20));
  options.cancel = std::make_shared<CancelToken>();
  std::thread canceller([&options] {
    std::this_thread::sleep_for(milliseconds(100));
    options.cancel->Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(Compute(options).status()));
  canceller.join();
}

}  // namespace
}  // namespace stowage

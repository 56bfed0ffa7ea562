// What jobs report over the wire, and what follows from it; the names of jobs.
#include <gtest/gtest.h>

#include <functional>

#include "tests/server/rpc/admin_calls.h"

namespace stowage::testing {
namespace {

class ReportRpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto answer = calls_.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes));
    ASSERT_TRUE(answer.ok()) << answer.status();
    key_ = answer->key();
    plan_ = answer->plan();
  }
  v1::GetPlanRequest GetRequest() const {
    v1::GetPlanRequest request;
    *request.add_keys() = key_;
    request.mutable_budget()->set_bytes(kTightBytes);
    return request;
  }
  bool ProfileWanted() { return calls_.Get(GetRequest())->profile_wanted(); }
  v1::ReportVerdict Report(const std::string& job, double time, double peak = 1) {
    const auto response = calls_.Report(ReportRequest(plan_, key_, job, time, peak));
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->verdict() : v1::REPORT_VERDICT_UNSPECIFIED;
  }
  void ExpectField(const std::string& field,
                   const std::function<void(v1::ReportExecutionRequest*)>& spoil) {
    v1::ReportExecutionRequest request = ReportRequest(plan_, key_, "job");
    spoil(&request);
    const absl::Status status = calls_.Report(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field << ": " << status;
    const auto violation = GetFieldViolation(status);
    EXPECT_EQ(violation ? violation->field : "none", field);
  }

  RpcFixture fixture_;
  AdminCalls calls_{fixture_.channel};
  v1::PlanKey key_;
  v1::Plan plan_;
};

TEST_F(ReportRpcTest, AQuorumOfJobsMakesAProfileWantedAndOneJobDoesNot) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Report("a", 2.0), v1::REPORT_VERDICT_ACCEPTED);
  EXPECT_FALSE(ProfileWanted());
  EXPECT_EQ(Report("b", 2.0), v1::REPORT_VERDICT_ACCEPTED);
  EXPECT_FALSE(ProfileWanted());
  EXPECT_EQ(Report("c", 2.0), v1::REPORT_VERDICT_ACCEPTED);
  EXPECT_TRUE(ProfileWanted());
  const auto listed = calls_.List(key_);
  ASSERT_EQ(listed->plans_size(), 1);
  EXPECT_EQ(listed->plans(0).reports(), 3);
  EXPECT_NEAR(listed->plans(0).measured_time_ratio(), 2.0, 0.1);
  EXPECT_NEAR(listed->plans(0).measured_peak_ratio(), 1.0, 0.01);
  EXPECT_EQ(Report("d", 9.0), v1::REPORT_VERDICT_OUTLIER);
  EXPECT_EQ(calls_.List(key_)->plans(0).reports(), 3);
}

TEST_F(ReportRpcTest, AbsurdOnesSayNothing) {
  EXPECT_EQ(Report("a", 21), v1::REPORT_VERDICT_ABSURD);
  EXPECT_EQ(Report("a", 0), v1::REPORT_VERDICT_ABSURD);
  EXPECT_EQ(Report("a", 1, 21), v1::REPORT_VERDICT_ABSURD);
  EXPECT_EQ(calls_.List(key_)->plans(0).reports(), 0);
}

TEST_F(ReportRpcTest, OnUnknownPlansAreNotFound) {
  using Spoil = std::function<void(v1::ReportExecutionRequest*)>;
  const Spoil spoils[] = {
      [](v1::ReportExecutionRequest* r) { r->mutable_key()->set_digest(std::string(32, 'u')); },
      [](v1::ReportExecutionRequest* r) { r->set_plan_digest(std::string(32, 'u')); },
      [](v1::ReportExecutionRequest* r) { r->set_revision(2); },
      [](v1::ReportExecutionRequest* r) { r->set_budget_bytes(0); },
  };
  for (const Spoil& spoil : spoils) {
    v1::ReportExecutionRequest request = ReportRequest(plan_, key_, "job");
    spoil(&request);
    const absl::Status status = calls_.Report(request).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(GetReason(status), kReasonPlanNotCached);
  }
}

TEST_F(ReportRpcTest, BadOnesNameTheField) {
  using Request = v1::ReportExecutionRequest;
  ExpectField("key.encoding_version", [](Request* r) { r->clear_key(); });
  ExpectField("key.digest", [](Request* r) { r->mutable_key()->set_digest("short"); });
  ExpectField("plan_digest", [](Request* r) { r->set_plan_digest("short"); });
  ExpectField("revision", [](Request* r) { r->set_revision(0); });
  ExpectField("steps", [](Request* r) { r->set_steps(0); });
  ExpectField("measured_step_time_ns", [](Request* r) { r->set_measured_step_time_ns(-1); });
  ExpectField("measured_peak_bytes", [](Request* r) { r->set_measured_peak_bytes(-1); });
  ExpectField("budget_bytes", [](Request* r) { r->set_budget_bytes(-1); });
  ExpectField("measured_reserved_peak_bytes",
              [](Request* r) { r->set_measured_reserved_peak_bytes(-1); });
  ExpectField("offloaded_bytes", [](Request* r) { r->set_offloaded_bytes(-1); });
  ExpectField("prefetched_bytes", [](Request* r) { r->set_prefetched_bytes(-1); });
  ExpectField("job", [](Request* r) { r->set_job(std::string(129, 'j')); });
}

TEST_F(ReportRpcTest, EveryRpcBoundsTheNameOfTheJob) {
  for (const size_t size : {size_t{128}, size_t{129}}) {
    const std::string job(size, 'j');
    v1::GetPlanRequest get = GetRequest();
    get.set_job(job);
    v1::ComputePlanRequest compute = ComputeRequestFor(ChainProfile({}), kTightBytes);
    compute.set_job(job);
    v1::WatchPlanRequest watch;
    ASSERT_TRUE(watch.ParseFromString(compute.SerializeAsString()));  // the same fields
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const auto stream = fixture_.stub->WatchPlan(&context, watch);
    for (v1::WatchPlanResponse message; stream->Read(&message);) {
    }
    for (const absl::Status& status : {calls_.Get(get).status(), calls_.Compute(compute).status(),
                                       calls_.Report(ReportRequest(plan_, key_, job)).status(),
                                       FromGrpcStatus(stream->Finish())}) {
      EXPECT_EQ(status.ok(), size == 128) << status;
      const auto violation = GetFieldViolation(status);
      EXPECT_EQ(violation ? violation->field : "none", size == 128 ? "none" : "job");
    }
  }
}

}  // namespace
}  // namespace stowage::testing

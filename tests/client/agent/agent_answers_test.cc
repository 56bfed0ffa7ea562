// What an agent makes of a server's answers, and what it asks with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/agent/agent.h"
#include "client/rpc/mock_plan_connection.h"
#include "solvers/planner.h"
#include "tests/client/agent/agent_fixture.h"

namespace stowage {
namespace {

using ::testing::_;
using ::testing::NiceMock;
using ::testing::Return;

// What a server does: plans the profile that it is sent.
absl::StatusOr<PlanReply> SolveHere(const Profile& profile, const Budget& budget, const KeyOptions&,
                                    const CallOptions&) {
  return PlanReply{*MakePlan(profile, budget, {}), PlanKey(), PlanSource::kSolved};
}

class AgentAnswersTest : public AgentTest, public ::testing::WithParamInterface<std::string> {
 protected:
  AgentAnswersTest() : AgentTest(TrainingDeviceNamed(GetParam())) {}
};

TEST_P(AgentAnswersTest, ACachedPlanNeedsNoTimedProfile) {
  const AdoptedPlan known = LocalPlan(ShareOfStoreAll{0.7});
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  EXPECT_CALL(*connection, GetPlan(_, _, _))
      .WillOnce(Return(PlanReply{known.plan, known.key, PlanSource::kCache}));
  EXPECT_CALL(*connection, ComputePlan(_, _, _, _)).Times(0);
  Agent agent(&network_.model, std::move(connection), options_);
  const absl::StatusOr<AdoptedPlan> adopted =
      agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->source, PlanSource::kCache);
  EXPECT_FALSE(adopted->profiled);
  // Nothing was run: shapes told the key, and peak and time are those of whoever planned.
  EXPECT_EQ(agent.profile(), nullptr);
  EXPECT_EQ(agent.events().of<ProfileTakenEvent>(), 1);
  EXPECT_EQ(adopted->plan.prediction.peak, known.plan.prediction.peak);
  EXPECT_EQ(adopted->plan.prediction.makespan, known.plan.prediction.makespan);
  // What was proven under another job's costs is not proven under these.
  EXPECT_FALSE(adopted->plan.bounds.proven_optimal);
  EXPECT_TRUE(agent.Step(network_.input, network_.target).ok());
}

// Nobody can tell from shapes what depends on data.
TEST_P(AgentAnswersTest, WhatShapesDoNotTellIsMeasured) {
  network_.model.AddFunction("guard", "isfinite", [](const at::Tensor& x) {
    return at::isfinite(x).all().item<bool>() ? x * 1 : x;
  });
  const AdoptedPlan known = LocalPlan(ShareOfStoreAll{0.7});
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  EXPECT_CALL(*connection, GetPlan(_, _, _))
      .WillOnce(Return(PlanReply{known.plan, known.key, PlanSource::kCache}));
  std::vector<ProfileTakenEvent> taken;
  options_.on_event = [&taken](const AgentEvent& event) {
    if (const auto* profile = std::get_if<ProfileTakenEvent>(&event)) taken.push_back(*profile);
  };
  Agent agent(&network_.model, std::move(connection), options_);
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  EXPECT_EQ(agent.profile()->cost_source, CostSource::kBytesOnly);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_FALSE(taken[0].from_shapes);
  EXPECT_THAT(taken[0].not_shapes, testing::HasSubstr("guard"));
  EXPECT_TRUE(agent.Step(network_.input, network_.target).ok());
}

// What did not fit another job's overheads may fit this one's.
TEST_P(AgentAnswersTest, ACachedNonPlanIsNoAnswer) {
  AdoptedPlan infeasible = LocalPlan(Bytes(1));
  ASSERT_EQ(infeasible.plan.status, PlanStatus::kProvenInfeasible);
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  // By shapes, and by what was measured.
  EXPECT_CALL(*connection, GetPlan(_, _, _))
      .Times(2)
      .WillRepeatedly(Return(PlanReply{infeasible.plan, infeasible.key, PlanSource::kCache}));
  EXPECT_CALL(*connection, ComputePlan(_, _, _, _)).WillOnce(SolveHere);
  Agent agent(&network_.model, std::move(connection), options_);
  const absl::StatusOr<AdoptedPlan> adopted =
      agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->plan.status, PlanStatus::kFound);
}

TEST_P(AgentAnswersTest, OneTimeoutHoldsForAllRequestsOfAPlan) {
  options_.plan_timeout = std::chrono::hours(1);
  std::vector<CallOptions::Clock::time_point> deadlines;
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  ON_CALL(*connection, GetPlan(_, _, _))
      .WillByDefault([&](const std::vector<PlanKey>&, const Budget&, const CallOptions& call) {
        deadlines.push_back(call.deadline);
        return absl::StatusOr<PlanReply>(absl::NotFoundError("none"));
      });
  ON_CALL(*connection, ComputePlan(_, _, _, _))
      .WillByDefault([&](const Profile& profile, const Budget& budget, const KeyOptions& key,
                         const CallOptions& call) {
        deadlines.push_back(call.deadline);
        return SolveHere(profile, budget, key, call);
      });
  Agent agent(&network_.model, std::move(connection), options_);
  const auto start = CallOptions::Clock::now();
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  const auto took = CallOptions::Clock::now() - start;
  ASSERT_EQ(deadlines.size(), 2u);
  // Profiling between the two is not counted.
  EXPECT_GE(deadlines[1], deadlines[0]);
  EXPECT_LE(deadlines[1], start + std::chrono::hours(1) + took);
}

// A cached plan that needs more than this job's budget, whatever it says of itself, is no plan.
TEST_P(AgentAnswersTest, ACachedPlanThatDoesNotFitIsComputedAnew) {
  AdoptedPlan too_large = LocalPlan(ShareOfStoreAll{1.0});
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  // By shapes, and by what was measured.
  EXPECT_CALL(*connection, GetPlan(_, _, _))
      .Times(2)
      .WillRepeatedly(Return(PlanReply{too_large.plan, too_large.key, PlanSource::kCache}));
  EXPECT_CALL(*connection, ComputePlan(_, _, _, _)).WillOnce(SolveHere);
  Agent agent(&network_.model, std::move(connection), options_);
  const absl::StatusOr<AdoptedPlan> adopted =
      agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.6});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->source, PlanSource::kSolved);
  EXPECT_TRUE(adopted->profiled);
}

// A server that answers with a plan over the budget is not obeyed.
TEST_P(AgentAnswersTest, ASolvedPlanThatDoesNotFitIsRefused) {
  AdoptedPlan too_large = LocalPlan(ShareOfStoreAll{1.0});
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  ON_CALL(*connection, GetPlan(_, _, _)).WillByDefault(Return(absl::NotFoundError("none")));
  ON_CALL(*connection, ComputePlan(_, _, _, _))
      .WillByDefault(Return(PlanReply{too_large.plan, too_large.key, PlanSource::kSolved}));
  Agent agent(&network_.model, std::move(connection), options_);
  EXPECT_EQ(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.6}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(agent.Step(network_.input, network_.target).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(AgentAnswersTest, AsksByTheKeyOfItsStructure) {
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  std::vector<PlanKey> asked;
  Profile sent{"", Device(), *Chain::Create([] {
                 ChainSpec spec;
                 spec.stages.resize(1);
                 return spec;
               }())};
  ON_CALL(*connection, GetPlan(_, _, _))
      .WillByDefault([&asked](const std::vector<PlanKey>& keys, const Budget&, const CallOptions&) {
        asked = keys;
        return absl::StatusOr<PlanReply>(absl::NotFoundError("none"));
      });
  ON_CALL(*connection, ComputePlan(_, _, _, _))
      .WillByDefault([&sent](const Profile& profile, const Budget& budget, const KeyOptions& key,
                             const CallOptions& call) {
        sent = profile;
        // The executor carries out no transfers.
        EXPECT_TRUE(key.recompute_only);
        return SolveHere(profile, budget, key, call);
      });
  Agent agent(&network_.model, std::move(connection), options_);
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  // The bytes-only profile and the timed one share their key.
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0], MakePlanKey(sent, options_.plan));
  EXPECT_EQ(sent.cost_source, CostSource::kMeasured);
}

// Also where nothing was run on it.
TEST_F(AgentTest, AsksByTheDeviceThatStepsRunOn) {
  RenamedCpu device;
  options_.device = &device;
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  std::vector<PlanKey> asked;
  ON_CALL(*connection, GetPlan(_, _, _))
      .WillByDefault([&asked](const std::vector<PlanKey>& keys, const Budget&, const CallOptions&) {
        asked.push_back(keys[0]);
        return absl::StatusOr<PlanReply>(absl::NotFoundError("none"));
      });
  ON_CALL(*connection, ComputePlan(_, _, _, _)).WillByDefault(SolveHere);
  Agent agent(&network_.model, std::move(connection), options_);
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  options_.plan.recompute_only = true;
  ASSERT_FALSE(asked.empty());
  for (const PlanKey& key : asked) EXPECT_EQ(key, MakePlanKey(*agent.profile(), options_.plan));
}

class KeepingTracer final : public Tracer {
 public:
  void Ended(SpanRecord span) override { spans.push_back(std::move(span)); }
  std::vector<SpanRecord> spans;
};

TEST_P(AgentAnswersTest, ItsRequestsAreSpansBelowTheJobs) {
  KeepingTracer tracer;
  const TraceContext job{NewTraceId(), NewSpanId(), true};
  options_.tracer = &tracer;
  options_.traceparent = [&job] { return FormatTraceparent(job); };
  std::vector<std::string> sent;
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  ON_CALL(*connection, GetPlan(_, _, _))
      .WillByDefault([&sent](const std::vector<PlanKey>&, const Budget&, const CallOptions& call) {
        sent.push_back(call.traceparent);
        return absl::NotFoundError("no entry");
      });
  ON_CALL(*connection, ComputePlan(_, _, _, _))
      .WillByDefault([&sent](const Profile& profile, const Budget& budget, const KeyOptions& key,
                             const CallOptions& call) {
        sent.push_back(call.traceparent);
        return SolveHere(profile, budget, key, call);
      });
  Agent agent(&network_.model, std::move(connection), options_);
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  ASSERT_EQ(tracer.spans.size(), 1u);
  const SpanRecord& span = tracer.spans[0];
  EXPECT_EQ(span.name, "stowage.plan");
  EXPECT_EQ(span.context.trace_id, job.trace_id);
  EXPECT_EQ(span.parent, job.span_id);
  EXPECT_GE(sent.size(), 2u);
  EXPECT_THAT(sent, ::testing::Each(FormatTraceparent(span.context)));
}

TEST_P(AgentAnswersTest, WithoutATracerTheJobsOwnSpanIsSent) {
  const std::string job = FormatTraceparent({NewTraceId(), NewSpanId(), true});
  options_.traceparent = [&job] { return job; };
  const AdoptedPlan known = LocalPlan(ShareOfStoreAll{0.7});
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  EXPECT_CALL(*connection, GetPlan(_, _, ::testing::Field(&CallOptions::traceparent, job)))
      .WillRepeatedly(Return(PlanReply{known.plan, known.key, PlanSource::kCache}));
  Agent agent(&network_.model, std::move(connection), options_);
  EXPECT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
}

TEST_P(AgentAnswersTest, SaysWhoseItsRequestsAreAndReportsWhatStepsTook) {
  const AdoptedPlan known = LocalPlan(ShareOfStoreAll{0.7});
  options_.job = "a job";
  const auto of_job = ::testing::Field(&CallOptions::job, "a job");
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  PlanReply cached{known.plan, known.key, PlanSource::kCache};
  cached.plan.revision = 4;
  cached.profile_wanted = true;
  // By shapes; then, since a profile is wanted, by the job's own bytes.
  EXPECT_CALL(*connection, GetPlan(_, _, of_job)).Times(2).WillRepeatedly(Return(cached));
  ExecutionMeasurement sent;
  EXPECT_CALL(*connection, ReportExecution(_, of_job))
      .WillOnce([&sent](const ExecutionMeasurement& measurement, const CallOptions&) {
        sent = measurement;
        return ExecutionVerdict::kAccepted;
      });
  Agent agent(&network_.model, std::move(connection), options_);
  EXPECT_EQ(agent.Report().status().code(), absl::StatusCode::kFailedPrecondition);
  const auto adopted = agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_TRUE(adopted->profile_wanted);
  EXPECT_EQ(agent.Report().status().code(), absl::StatusCode::kFailedPrecondition);
  Bytes peak;
  for (int i = 0; i < 3; ++i) peak = agent.Step(network_.input, network_.target).value().peak;
  ASSERT_TRUE(agent.Report().ok());
  EXPECT_EQ(sent.key, cached.key);
  EXPECT_EQ(sent.plan_digest, ScheduleDigest(known.plan.schedule));
  EXPECT_EQ(sent.revision, 4);
  EXPECT_EQ(sent.budget, adopted->plan.budget);
  EXPECT_EQ(sent.steps, 3);
  EXPECT_EQ(sent.peak, peak);
  EXPECT_EQ(sent.reserved_peak, agent.memory().reserved_peak);
  EXPECT_GE(sent.reserved_peak, peak);
  EXPECT_EQ(sent.offloaded, Bytes(0));
  EXPECT_GT(sent.step_time, Nanos(0));
}

TEST_P(AgentAnswersTest, ErrorsOfTheServerPassThrough) {
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  ON_CALL(*connection, GetPlan(_, _, _)).WillByDefault(Return(absl::PermissionDeniedError("no")));
  Agent agent(&network_.model, std::move(connection), options_);
  EXPECT_EQ(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

INSTANTIATE_TEST_SUITE_P(Devices, AgentAnswersTest, ::testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage

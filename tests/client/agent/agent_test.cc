#include "client/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/rpc/local_connection.h"
#include "client/rpc/mock_plan_connection.h"
#include "client/torch/model_state.h"
#include "client/torch/plain_step.h"
#include "client/torch/state_digest.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/planner.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

// What a server does: plans the profile that it is sent.
absl::StatusOr<PlanReply> SolveHere(const Profile& profile, const Budget& budget, const KeyOptions&,
                                    const CallOptions&) {
  return PlanReply{*MakePlan(profile, budget, {}), PlanKey(), PlanSource::kSolved};
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() { options_.profile.repeats = 2; }

  Agent LocalAgent() { return Agent(&network_.model, options_); }

  // The profile and plan that this model gets when it is planned here.
  AdoptedPlan LocalPlan(const Budget& budget) {
    Agent agent = LocalAgent();
    const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(network_.input, network_.target, budget);
    EXPECT_TRUE(adopted.ok()) << adopted.status();
    return *adopted;
  }

  TestNetwork network_ = MakeTestNetwork("norm_cnn");
  AgentOptions options_;
};

TEST_F(AgentTest, PlansAndStepsWithinTheBudgetLikePlainTraining) {
  Agent agent = LocalAgent();
  const absl::StatusOr<AdoptedPlan> adopted =
      agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  EXPECT_EQ(adopted->source, PlanSource::kLocal);
  EXPECT_TRUE(adopted->profiled);

  TestNetwork plain = MakeTestNetwork("norm_cnn");
  const absl::StatusOr<StepReport> expected = PlainStep(plain.model, plain.input, plain.target);
  network_ = MakeTestNetwork("norm_cnn");  // the same start, random state included
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
  EXPECT_LE(step->peak, adopted->plan.budget);
  EXPECT_EQ(step->peak, adopted->plan.prediction.peak);
  EXPECT_EQ(step->recomputed_forwards, adopted->plan.prediction.recomputed_forwards);
  EXPECT_GT(step->recomputed_forwards, 0);
}

TEST_F(AgentTest, HasNoStepWithoutAPlan) {
  Agent agent = LocalAgent();
  EXPECT_EQ(agent.Step(network_.input, network_.target).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const absl::StatusOr<AdoptedPlan> infeasible =
      agent.Plan(network_.input, network_.target, Bytes(1));
  ASSERT_TRUE(infeasible.ok()) << infeasible.status();
  EXPECT_EQ(infeasible->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_GT(infeasible->plan.bounds.least_budget, Bytes(1));
  EXPECT_EQ(agent.Step(network_.input, network_.target).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AgentTest, TheLeastBudgetThatAnInfeasibleAnswerNamesIsFeasible) {
  Agent agent = LocalAgent();
  const absl::StatusOr<AdoptedPlan> infeasible =
      agent.Plan(network_.input, network_.target, Bytes(1));
  const Bytes least = infeasible->plan.bounds.least_budget;
  ASSERT_EQ(agent.Plan(network_.input, network_.target, least)->plan.status, PlanStatus::kFound);
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->peak, least);
}

TEST_F(AgentTest, ACachedPlanNeedsNoTimedProfile) {
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
TEST_F(AgentTest, WhatShapesDoNotTellIsMeasured) {
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
TEST_F(AgentTest, ACachedNonPlanIsNoAnswer) {
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

TEST_F(AgentTest, OneTimeoutHoldsForAllRequestsOfAPlan) {
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
TEST_F(AgentTest, ACachedPlanThatDoesNotFitIsComputedAnew) {
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
TEST_F(AgentTest, ASolvedPlanThatDoesNotFitIsRefused) {
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

TEST_F(AgentTest, AsksByTheKeyOfItsStructure) {
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

TEST_F(AgentTest, BudgetsAreResolvedWithTheSlotsThatWereAskedFor) {
  options_.plan.slots = -1;
  Agent agent = LocalAgent();
  EXPECT_EQ(agent.Plan(network_.input, network_.target, LeastBudget{}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AgentTest, SaysWhoseItsRequestsAreAndReportsWhatStepsTook) {
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
  for (int i = 0; i < 3; ++i) peak = agent.Step(network_.input, network_.target)->peak;
  ASSERT_TRUE(agent.Report().ok());
  EXPECT_EQ(sent.key, cached.key);
  EXPECT_EQ(sent.plan_digest, ScheduleDigest(known.plan.schedule));
  EXPECT_EQ(sent.revision, 4);
  EXPECT_EQ(sent.budget, adopted->plan.budget);
  EXPECT_EQ(sent.steps, 3);
  EXPECT_EQ(sent.peak, peak);
  EXPECT_EQ(sent.reserved_peak, agent.memory().reserved_peak);
  EXPECT_GE(sent.reserved_peak, peak);
  EXPECT_EQ(sent.sent, Bytes(0));
  EXPECT_GT(sent.step_time, Nanos(0));
}

// A limit of the device below what the plan takes: the step fails, is made again within less, and has
// lost nothing.
TEST_F(AgentTest, AfterOutOfMemoryTheStepIsMadeWithinLess) {
  options_.out_of_memory.retry_step = true;
  std::string finding;
  options_.on_event = [&finding](const AgentEvent& event) {
    if (const auto* lack = std::get_if<OutOfMemoryEvent>(&event)) finding = lack->finding;
  };
  Agent agent = LocalAgent();
  ASSERT_EQ(agent.Plan(network_.input, network_.target, ShareOfStoreAll{1.0})->plan.status,
            PlanStatus::kFound);
  const RandomState start = RandomState::Capture();
  TestNetwork plain = MakeTestNetwork("norm_cnn");
  const absl::StatusOr<StepReport> expected = PlainStep(plain.model, plain.input, plain.target);
  start.Restore();
  const Bytes input(static_cast<int64_t>(network_.input.nbytes()));
  TrackingAllocator* allocator = TrackingAllocator::Get();
  allocator->SetLimit(allocator->current() - input + Bytes(expected->peak.value() * 95 / 100));
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  allocator->ClearLimit();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(agent.events().of<OutOfMemoryEvent>(), 1);
  // The step was as planned, the device has less than the plan.
  EXPECT_THAT(finding, HasSubstr("out of memory at instruction "));
  EXPECT_THAT(finding, HasSubstr("taken elsewhere"));
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
}

// What is known from an earlier start is not measured again, and a profile of something else is refused.
TEST_F(AgentTest, KnowsWhatItWasTold) {
  Agent before = LocalAgent();
  const auto planned = before.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(planned.ok()) << planned.status();
  const Profile kept = *before.profile();
  const Batch batch{{network_.input}, network_.target};

  Agent after = LocalAgent();
  ASSERT_TRUE(after.Know(batch, kept).ok());
  const auto again = after.Plan(batch, ShareOfStoreAll{0.7});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(after.events().of<ProfileTakenEvent>(), 0);
  EXPECT_EQ(again->digest, planned->digest);
  EXPECT_TRUE(after.Step(batch).ok());

  Profile elsewhere = kept;
  elsewhere.device.math_settings = "threads=1000";
  EXPECT_EQ(after.Know(batch, elsewhere).code(), absl::StatusCode::kFailedPrecondition);
  const Batch smaller{{network_.input.narrow(0, 0, 2).contiguous()}, network_.target};
  EXPECT_EQ(after.Know(smaller, kept).code(), absl::StatusCode::kInvalidArgument);
  TestNetwork other = MakeTestNetwork("plain_cnn");
  Agent another(&other.model, options_);
  EXPECT_EQ(another.Know({{other.input}, other.target}, kept).code(),
            absl::StatusCode::kInvalidArgument);
}

class RenamedCpu : public ExecutionDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return TrackingAllocator::Get(); }
  Device Hardware() const override {
    Device device = CpuHardware();
    device.model = "another";
    return device;
  }
};

// A profile is of the device that steps run on.
TEST_F(AgentTest, KnowsWhatItWasToldOfItsDevice) {
  RenamedCpu device;
  const Batch batch{{network_.input}, network_.target};
  options_.device = &device;
  Agent before = LocalAgent();
  ASSERT_TRUE(before.Profile(batch).ok());
  const Profile kept = *before.profile();
  EXPECT_EQ(kept.device.model, "another");
  Agent after = LocalAgent();
  const absl::Status known = after.Know(batch, kept);
  EXPECT_TRUE(known.ok()) << known;
  options_.device = nullptr;
  Agent elsewhere = LocalAgent();
  EXPECT_EQ(elsewhere.Know(batch, kept).code(), absl::StatusCode::kFailedPrecondition);
}

// The latest step, instruction by instruction.
TEST_F(AgentTest, MeasuresStepsIfAsked) {
  options_.measure_steps = true;
  Agent agent = LocalAgent();
  const auto planned = agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_TRUE(agent.measured().instructions.empty());
  const auto step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(CheckMeasuredStep(agent.measured(), planned->plan.schedule).ok());
  EXPECT_EQ(agent.measured().peak, step->peak);
}

// A batch that fits into a larger one's plan trains by it as it does plain.
TEST_F(AgentTest, ASmallerBatchTrainsByThePlanForALarger) {
  Agent agent = LocalAgent();
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  const at::Tensor fewer = network_.input.narrow(0, 0, 2).contiguous();
  const at::Tensor fewer_targets = network_.target.narrow(0, 0, 2).contiguous();
  const RandomState start = RandomState::Capture();
  TestNetwork plain = MakeTestNetwork("norm_cnn");
  const absl::StatusOr<StepReport> expected = PlainStep(plain.model, fewer, fewer_targets);
  start.Restore();
  const absl::StatusOr<StepReport> step = agent.Step(fewer, fewer_targets);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(agent.steps().by_larger, 1);
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
}

TEST_F(AgentTest, ErrorsOfTheServerPassThrough) {
  auto connection = std::make_unique<NiceMock<MockPlanConnection>>();
  ON_CALL(*connection, GetPlan(_, _, _)).WillByDefault(Return(absl::PermissionDeniedError("no")));
  Agent agent(&network_.model, std::move(connection), options_);
  EXPECT_EQ(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(AgentTest, ReplansForAnotherShapeOfInput) {
  Agent agent = LocalAgent();
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  const Bytes before = std::get<Chain>(agent.profile()->problem).activation(0);
  const at::Tensor fewer = network_.input.narrow(0, 0, 2).contiguous();
  const at::Tensor fewer_targets = network_.target.narrow(0, 0, 2).contiguous();
  ASSERT_LT(fewer.nbytes(), network_.input.nbytes());
  ASSERT_TRUE(agent.Plan(fewer, fewer_targets, ShareOfStoreAll{0.8}).ok());
  EXPECT_LT(std::get<Chain>(agent.profile()->problem).activation(0), before);
  const absl::StatusOr<StepReport> step = agent.Step(fewer, fewer_targets);
  EXPECT_TRUE(step.ok()) << step.status();
}

}  // namespace
}  // namespace stowage

#include "client/agent/agent.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "tests/client/agent/agent_fixture.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

class AgentStepTest : public AgentTest, public ::testing::WithParamInterface<std::string> {
 protected:
  AgentStepTest() : AgentTest(TrainingDeviceNamed(GetParam())) {}
  ~AgentStepTest() override { device_.ClearLimit(); }
};

TEST_P(AgentStepTest, PlansAndStepsWithinTheBudgetLikePlainTraining) {
  Agent agent = LocalAgent();
  const absl::StatusOr<AdoptedPlan> adopted =
      agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  EXPECT_EQ(adopted->source, PlanSource::kLocal);
  EXPECT_TRUE(adopted->profiled);

  const RandomState start = RandomState::Capture(device_.device);
  TestNetwork plain = MakeTestNetwork("norm_mlp", device_);
  const absl::StatusOr<StepReport> expected =
      PlainStep(plain.model, plain.input, plain.target, device_.meter());
  ASSERT_TRUE(expected.ok()) << expected.status();
  start.Restore();
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
  EXPECT_LE(step->peak, adopted->plan.budget);
  EXPECT_LE(step->peak, adopted->plan.prediction.peak);
  // Elsewhere plans count whole blocks.
  if (device_.exact) {
    EXPECT_EQ(step->peak, adopted->plan.prediction.peak);
  }
  EXPECT_EQ(step->recomputed_forwards, adopted->plan.prediction.recomputed_forwards);
  EXPECT_GT(step->recomputed_forwards, 0);
}

// The same functions, and nothing else.
ChainModel WithoutLists(const ChainModel& model) {
  ChainModel bare("bare");
  for (int l = 1; l <= model.length(); ++l) {
    ModelStage stage;
    stage.name = model.stage(l).name;
    stage.forward = model.stage(l).forward;
    bare.AddStage(std::move(stage));
  }
  bare.SetLoss("", model.loss());
  return bare;
}

// By the first call that comes with a batch, whichever; the caller's model stays as it is.
TEST_P(AgentStepTest, WhatTheModelDoesNotListIsFound) {
  options_.device_limit = DeviceLimit{Bytes(int64_t{1} << 30)};
  std::optional<DeviceBudget> budget;
  options_.on_event = [&budget](const AgentEvent& event) {
    if (const auto* shared = std::get_if<BudgetSharedEvent>(&event)) budget = shared->budget;
  };
  const ChainModel bare = WithoutLists(network_.model);
  Agent listed = LocalAgent();
  ASSERT_TRUE(listed.Plan({{network_.input}, network_.target}).ok());
  const Bytes expected_budget = budget.value().activations;
  const AdoptedPlan expected =
      listed.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).value();

  TestNetwork plain = MakeTestNetwork("norm_mlp", device_);
  ASSERT_FALSE(plain.model.buffers().empty());
  const RandomState start = RandomState::Capture(device_.device);
  ASSERT_TRUE(PlainStep(plain.model, plain.input, plain.target, device_.meter()).ok());
  start.Restore();
  Agent agent(&bare, options_);
  ASSERT_TRUE(agent.Plan({{network_.input}, network_.target}).ok());
  EXPECT_EQ(budget->activations, expected_budget);
  const auto adopted = agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->plan.budget, expected.plan.budget);
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_LE(step->peak, adopted->plan.prediction.peak);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
  for (size_t i = 0; i < plain.model.buffers().size(); ++i) {
    EXPECT_TRUE(at::equal(network_.model.buffers()[i].cpu(), plain.model.buffers()[i].cpu())) << i;
  }
  EXPECT_TRUE(bare.parameters().empty());
  EXPECT_TRUE(bare.loss_op_kind().empty());
}

// Of a loss nothing is found before a batch has targets.
TEST_P(AgentStepTest, AModelIsFoundInPartsAsBatchesCome) {
  bool off = true;
  options_.off = [&off] { return off; };
  const ChainModel bare = WithoutLists(network_.model);
  Agent agent(&bare, options_);
  ASSERT_TRUE(agent.Forward({{network_.input}, {}}).ok());
  off = false;
  const auto adopted = agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  EXPECT_EQ(adopted->plan.budget, LocalPlan(ShareOfStoreAll{0.7}).plan.budget);
  EXPECT_FALSE(std::get<Chain>(agent.profile()->problem).stage(bare.length() + 1).op_kind.empty());
  ASSERT_TRUE(agent.Step(network_.input, network_.target).ok());
}

TEST_F(AgentTest, WhatCannotBeFoundIsAnError) {
  ChainModel bare("bare");
  const at::Tensor outside = at::ones({8, 8}).requires_grad_() * 2;
  bare.AddFunction("reads", "", [outside](const at::Tensor& x) { return x.matmul(outside); });
  bare.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  Agent agent(&bare, options_);
  const auto adopted = agent.Plan(at::ones({4, 8}), at::ones({1}), ShareOfStoreAll{1});
  EXPECT_EQ(adopted.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(adopted.status().message()), HasSubstr("stage 1 (reads, )"));
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

TEST_P(AgentStepTest, TheLeastBudgetThatAnInfeasibleAnswerNamesIsFeasible) {
  Agent agent = LocalAgent();
  const absl::StatusOr<AdoptedPlan> infeasible =
      agent.Plan(network_.input, network_.target, Bytes(1));
  ASSERT_TRUE(infeasible.ok()) << infeasible.status();
  const Bytes least = infeasible->plan.bounds.least_budget;
  const auto found = agent.Plan(network_.input, network_.target, least);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->plan.status, PlanStatus::kFound);
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_LE(step->peak, least);
  // Elsewhere plans count whole blocks.
  if (device_.exact) {
    EXPECT_EQ(step->peak, least);
  }
}

TEST_F(AgentTest, BudgetsAreResolvedWithTheSlotsThatWereAskedFor) {
  options_.plan.slots = -1;
  Agent agent = LocalAgent();
  EXPECT_EQ(agent.Plan(network_.input, network_.target, LeastBudget{}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A limit of the device below what the plan takes: the step fails, is made again within less, and has
// lost nothing.
TEST_P(AgentStepTest, AfterOutOfMemoryTheStepIsMadeWithinLess) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  options_.out_of_memory.retry_step = true;
  std::string finding;
  options_.on_event = [&finding](const AgentEvent& event) {
    if (const auto* lack = std::get_if<OutOfMemoryEvent>(&event)) finding = lack->finding;
  };
  Agent agent = LocalAgent();
  const auto whole = agent.Plan(network_.input, network_.target, ShareOfStoreAll{1.0});
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->plan.status, PlanStatus::kFound);
  const RandomState start = RandomState::Capture(device_.device);
  TestNetwork plain = MakeTestNetwork("norm_mlp", device_);
  const absl::StatusOr<StepReport> expected =
      PlainStep(plain.model, plain.input, plain.target, device_.meter());
  ASSERT_TRUE(expected.ok()) << expected.status();
  start.Restore();
  const Bytes input(static_cast<int64_t>(network_.input.nbytes()));
  device_.LimitMemory(Bytes(expected->peak.value() * 95 / 100) - input);
  const absl::StatusOr<StepReport> step = agent.Step(network_.input, network_.target);
  device_.ClearLimit();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(agent.events().of<OutOfMemoryEvent>(), 1);
  EXPECT_THAT(finding, HasSubstr("out of memory at instruction "));
  // The step was as planned, the device has less than the plan. Of an allocator of blocks what lies idle in them is named.
  EXPECT_THAT(finding, HasSubstr(device_.exact ? "taken elsewhere" : "fragmentation"));
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
}

// What is known from an earlier start is not measured again, and a profile of something else is refused.
TEST_P(AgentStepTest, KnowsWhatItWasTold) {
  Agent before = LocalAgent();
  const auto planned = before.Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(planned.ok()) << planned.status();
  const Profile kept = *before.profile();
  const Batch batch{{network_.input}, network_.target};

  Agent after = LocalAgent();
  ASSERT_TRUE(after.UseProfile(batch, kept).ok());
  const auto again = after.Plan(batch, ShareOfStoreAll{0.7});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(after.events().of<ProfileTakenEvent>(), 0);
  EXPECT_EQ(again->digest, planned->digest);
  EXPECT_TRUE(after.Step(batch).ok());

  Profile elsewhere = kept;
  elsewhere.device.math_settings = "threads=1000";
  EXPECT_EQ(after.UseProfile(batch, elsewhere).code(), absl::StatusCode::kFailedPrecondition);
  // Costs that were measured in another way.
  Profile older = kept;
  std::string& settings = older.device.math_settings;
  const size_t version = settings.find(" costs=");
  ASSERT_NE(version, std::string::npos);
  settings.erase(version);
  EXPECT_EQ(after.UseProfile(batch, older).code(), absl::StatusCode::kFailedPrecondition);
  const Batch smaller{{network_.input.narrow(0, 0, 2).contiguous()}, network_.target};
  EXPECT_EQ(after.UseProfile(smaller, kept).code(), absl::StatusCode::kInvalidArgument);
  TestNetwork other = MakeTestNetwork("plain_cnn", device_);
  Agent another(&other.model, options_);
  EXPECT_EQ(another.UseProfile({{other.input}, other.target}, kept).code(),
            absl::StatusCode::kInvalidArgument);
}

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
  const absl::Status known = after.UseProfile(batch, kept);
  EXPECT_TRUE(known.ok()) << known;
  options_.device = nullptr;
  Agent elsewhere = LocalAgent();
  EXPECT_EQ(elsewhere.UseProfile(batch, kept).code(), absl::StatusCode::kFailedPrecondition);
}

// The latest step, instruction by instruction.
TEST_P(AgentStepTest, MeasuresStepsIfAsked) {
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
TEST_P(AgentStepTest, ASmallerBatchTrainsByThePlanForALarger) {
  Agent agent = LocalAgent();
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
  const at::Tensor fewer = network_.input.narrow(0, 0, 2).contiguous();
  const at::Tensor fewer_targets = network_.target.narrow(0, 0, 2).contiguous();
  const RandomState start = RandomState::Capture(device_.device);
  TestNetwork plain = MakeTestNetwork("norm_mlp", device_);
  const absl::StatusOr<StepReport> expected =
      PlainStep(plain.model, fewer, fewer_targets, device_.meter());
  ASSERT_TRUE(expected.ok()) << expected.status();
  start.Restore();
  const absl::StatusOr<StepReport> step = agent.Step(fewer, fewer_targets);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(agent.steps().by_larger, 1);
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(network_.model), GradientDigest(plain.model));
}

TEST_P(AgentStepTest, ReplansForAnotherShapeOfInput) {
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

INSTANTIATE_TEST_SUITE_P(On, AgentStepTest, ::testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "client/cli/deterministic_mode.h"
#include "client/cli/profile_text.h"
#include "client/cli/training_comparison.h"
#include "client/cli/verification.h"
#include "client/cli/verification_text.h"
#include "client/models/models.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/execute/plain_step.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using testing::HasSubstr;

StageTimes Times(int64_t ms) {
  const Nanos unit(1000000);
  const auto spread = [unit](int64_t middle) {
    return TimeSpread{Nanos((middle - 1) * unit.value()), Nanos(middle * unit.value()),
                      Nanos((middle + 2) * unit.value()), 5};
  };
  return {spread(ms), spread(10 * ms)};
}

Profile OneStageProfile() {
  ChainSpec spec;
  Stage stage;
  stage.name = "conv";
  stage.forward_time = Nanos(3000000);
  stage.backward_time = Nanos(30000000);
  stage.output = Bytes(1 << 20);
  stage.saved = Bytes(3 << 20);
  stage.backward_overhead = Bytes(1 << 19);
  stage.forward_time = Nanos(3000000);
  stage.recompute_saving_time = Nanos(2500000);
  spec.stages = {stage};
  spec.loss.name = "loss";
  return {"net", {}, Chain::Create(std::move(spec)).value(), CostSource::kMeasured};
}

TEST(ProfileText, HasEveryStageWithItsSpread) {
  ProfileReport report;
  report.passes = 5;
  report.stages = {Times(3), Times(2)};
  report.calibration.applied = true;
  report.calibration.factor = 0.9;
  report.calibration.stages = Nanos(36666667);
  report.calibration.step = Nanos(33000000);
  report.calibration.steps = 5;
  report.calibration.residual = 0.0123;
  const std::string text = ProfileText(OneStageProfile(), report);
  EXPECT_THAT(text, HasSubstr("conv     3.000  2.000 - 5.000          2.500    30.000  "
                              "29.000 - 32.000    1.00   3.00           0.50\n"));
  EXPECT_THAT(text, HasSubstr("loss     2.000"));
  EXPECT_THAT(text, HasSubstr("5 passes; a step takes 33.0 ms"));
  EXPECT_THAT(text, HasSubstr("scaled by 0.900"));
  EXPECT_THAT(text, HasSubstr("up to 1.2%"));
  report.calibration = {};
  report.calibration.why_not = "not asked for";
  EXPECT_THAT(ProfileText(OneStageProfile(), report),
              HasSubstr("not held against whole steps: not asked for\n"));
}

class TrainingComparisonTest : public ::testing::Test {
 protected:
  absl::StatusOr<StepReport> Plain(const Batch& batch) {
    return PlainStep(model_, batch.inputs[0], batch.target);
  }

  ChainModel model_ = MakeModel("resnet18", ModelOptions{10, 1}).value();
  Sample sample_ = MakeImageSample(2, 32, 10, 1).value();
  Batch batch_{{sample_.input}, sample_.target};
  StepFunction step_ = [this](const Batch& batch) { return Plain(batch); };
  TrainingComparison training_{&model_, &batch_, 7, step_};
};

TEST_F(TrainingComparisonTest, EqualRunsCompareEqual) {
  const absl::StatusOr<Trajectory> a = training_.Train(3, step_);
  const absl::StatusOr<Trajectory> b = training_.Train(3, step_);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(Compare(*a, *b).all());
  EXPECT_NE(a->steps[0].loss, a->steps[2].loss) << "nothing was learnt, so nothing was compared";
  EXPECT_FALSE(Compare(*a, training_.Train(2, step_).value()).all());
}

// One flipped bit in one gradient at one step must show.
TEST_F(TrainingComparisonTest, TheSmallestDifferenceShows) {
  const StepFunction disturbed = [this](const Batch& batch) {
    absl::StatusOr<StepReport> report = Plain(batch);
    float* gradient = model_.parameters()[0].grad().data_ptr<float>();
    uint32_t bits;
    std::memcpy(&bits, gradient, sizeof bits);
    bits ^= 1;
    std::memcpy(gradient, &bits, sizeof bits);
    return report;
  };
  const Equality equality =
      Compare(training_.Train(1, step_).value(), training_.Train(1, disturbed).value());
  EXPECT_TRUE(equality.loss);
  EXPECT_FALSE(equality.gradients);
  EXPECT_FALSE(equality.all());
}

TEST(DeviceComparisonTest, RandomNumbersOfTheDeviceAreCompared) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  const TestNetwork network = MakeTestNetwork("norm_cnn", device);
  const Batch batch{{network.input}, network.target};
  const auto plain = [&](const Batch& own) {
    return PlainStep(network.model, own.inputs[0], own.target, StepMeters(device.execution));
  };
  const TrainingComparison training(&network.model, &batch, 7, plain);
  const auto drawing = [&](const Batch& own) {
    absl::StatusOr<StepReport> report = plain(own);
    torch::rand({1}, device.device);
    return report;
  };
  const Trajectory run = training.Train(1, plain).value();
  EXPECT_TRUE(Compare(training.Train(1, plain).value(), run).all());
  const Equality equality = Compare(training.Train(1, drawing).value(), run);
  EXPECT_TRUE(equality.gradients);
  EXPECT_FALSE(equality.random);
}

TEST_F(TrainingComparisonTest, TheLimitCheckNoticesStepsThatDoNotRunOut) {
  const Bytes peak = training_.Train(1, step_).value().peak();
  EXPECT_TRUE(training_.CheckLimit(peak, step_).ok());
  EXPECT_FALSE(training_.CheckLimit(peak + peak, step_).ok());
}

class VerificationTest : public ::testing::Test {
 protected:
  VerificationTest() { options_.profile.repeats = 1; }

  TestNetwork network_ = MakeTestNetwork("norm_mlp");
  Batch batch_{{network_.input}, network_.target};
  AgentOptions options_;
};

TEST_F(VerificationTest, FindsTrainingByPlansEqual) {
  const auto model = MakeTrainedModel(&network_.model);
  Agent agent(&network_.model, options_);
  Verification verification(&agent, model.get(), &batch_, 7, 2);
  ASSERT_TRUE(verification.Prepare().ok());
  const absl::StatusOr<Verified> verified = verification.Verify(ShareOfStoreAll{0.7});
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_TRUE(verified->found());
  EXPECT_THAT(verified->faults, ::testing::IsEmpty());
  EXPECT_GT(verified->run.steps[0].recomputed_forwards, 0);

  VerificationReport report;
  report.model = "a \"network\"";
  report.steps = 2;
  report.plain = verification.plain();
  report.budgets = {*verified, verification.Verify(Bytes(1)).value()};
  EXPECT_TRUE(report.equal());
  EXPECT_FALSE(report.all_found());
  EXPECT_THAT(ToText(report), ::testing::HasSubstr("proven infeasible"));
  EXPECT_FALSE(HasNoCell(ToText(report))) << ToText(report);
  EXPECT_THAT(ToJson(report), ::testing::HasSubstr(R"("model": "a \"network\"")"));
  report.budgets[0].equal.gradients = false;
  EXPECT_TRUE(HasNoCell(ToText(report))) << ToText(report);
}

// On a device, with an operation that is not the same twice, as some of a GPU's are.
class DeviceVerificationTest : public ::testing::Test {
 protected:
  DeviceVerificationTest() {
    network_.model.AddFunction("noise", "noise", [this](const at::Tensor& x) {
      if (!noisy_) return x * 1;
      at::globalContext().alertNotDeterministic("noise");
      // Of runs of an odd number of forwards both kinds come.
      return x * (1 + 1e-4 * static_cast<double>(++calls_ % 2));
    });
    options_.device = device_.execution;
    options_.profile.repeats = 1;
  }
  ~DeviceVerificationTest() override {
    at::globalContext().setDeterministicAlgorithms(false, false);
    at::globalContext().setDeterministicCuDNN(false);
  }

  Verified Verify() {
    const auto model = MakeTrainedModel(&network_.model);
    Agent agent(&network_.model, options_);
    Verification verification(&agent, model.get(), &batch_, 7, 2, StepMeters(device_.execution));
    const absl::Status status = verification.Prepare();
    EXPECT_TRUE(status.ok()) << status;
    spread_ = verification.plain_spread();
    const auto verified = verification.Verify(ShareOfStoreAll{1.0});
    EXPECT_TRUE(verified.ok()) << verified.status();
    return verified.value();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed("test");
  TestNetwork network_ = MakeTestNetwork("mlp", device_);
  Batch batch_{{network_.input}, network_.target};
  AgentOptions options_;
  bool noisy_ = false;
  int calls_ = 0;
  std::optional<Distance> spread_;
};

TEST_F(DeviceVerificationTest, WherePlainRunsAreEqualPlannedOnesMustBe) {
  const Verified verified = Verify();
  EXPECT_FALSE(spread_);
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_TRUE(verified.equal.all());
  EXPECT_THAT(verified.faults, ::testing::IsEmpty());
}

TEST_F(DeviceVerificationTest, WherePlainRunsDifferPlannedOnesLieWithinTheirSpread) {
  noisy_ = true;
  testing::internal::CaptureStderr();
  const Verified verified = Verify();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("steps may differ from run to run: "));
  EXPECT_TRUE(at::globalContext().deterministicAlgorithmsWarnOnly());
  ASSERT_TRUE(spread_);
  EXPECT_GT(spread_->loss, 0);
  EXPECT_GT(spread_->parameters, 0);
  EXPECT_THAT(verified.faults, ::testing::IsEmpty());
  VerificationReport report;
  report.plain_spread = spread_;
  report.steps = 2;
  EXPECT_THAT(ToText(report), HasSubstr("runs of plain training differ here"));
  EXPECT_THAT(ToJson(report), HasSubstr(R"("spread": {"loss": )"));
}

// What LibTorch says of an operation, and of cuBLAS; and of what has nothing to do with it.
TEST(BeDeterministicTest, OnlyWhatCannotBeRunsOnceMore) {
  for (const auto& [message, runs] : {std::pair("plain training step: x_cuda does not have a "
                                                "deterministic implementation, but you set",
                                                2),
                                      std::pair("but this operation is not deterministic because "
                                                "it uses CuBLAS and",
                                                2),
                                      std::pair("out of memory", 1)}) {
    int ran = 0;
    BeDeterministic(c10::Device(c10::DeviceType::PrivateUse1), [&ran, said = message] {
      return ++ran == 1 ? absl::InternalError(said) : absl::OkStatus();
    }).IgnoreError();
    EXPECT_EQ(ran, runs) << message;
    EXPECT_EQ(at::globalContext().deterministicAlgorithmsWarnOnly(), runs == 2);
  }
  EXPECT_NE(getenv("CUBLAS_WORKSPACE_CONFIG"), nullptr);
#if STOWAGE_TORCH_AT_LEAST(2, 2)
  EXPECT_FALSE(at::globalContext().deterministicFillUninitializedMemory());
#endif
  at::globalContext().setDeterministicAlgorithms(false, false);
  at::globalContext().setDeterministicCuDNN(false);
}

TEST(Distances, ARunOutsideOfTheSpreadIsFoundOut) {
  const auto run = [](double loss, double parameter) {
    Trajectory made;
    made.steps.emplace_back();
    made.steps[0].loss = loss;
    made.end = {torch::full({4}, parameter)};
    return made;
  };
  const std::vector<Trajectory> plain = {run(1, 2), run(1.01, 2.02), run(0.99, 2)};
  const Distance spread = SpreadOf(plain);
  EXPECT_NEAR(spread.loss, 0.02 / 1.01, 1e-6);
  EXPECT_NEAR(spread.parameters, 0.01, 1e-3);
  EXPECT_TRUE(LiesWithin(spread, plain, run(1.02, 2.01)));
  EXPECT_FALSE(LiesWithin(spread, plain, run(1.04, 2.01)));
  EXPECT_FALSE(LiesWithin(spread, plain, run(1, 2.1)));
  EXPECT_EQ(SpreadOf({run(1, 2), run(1, 2)}).loss, 0);
}

// Images have no tokens, and tokens are no images.
TEST(VerificationReport, HasTheSizesOfItsNetwork) {
  VerificationReport report;
  report.image_size = 64;
  report.classes = 10;
  EXPECT_THAT(ToJson(report), HasSubstr(R"("image_size": 64, "classes": 10, "length": null)"));
  report.image_size = report.classes = 0;
  report.length = 128;
  EXPECT_THAT(ToJson(report), HasSubstr(R"("image_size": null, "classes": null, "length": 128)"));
}

TEST_F(VerificationTest, HoldsTheLimit) {
  const auto model = MakeTrainedModel(&network_.model);
  Agent agent(&network_.model, options_);
  Verification verification(&agent, model.get(), &batch_, 7, 1);
  ASSERT_TRUE(verification.Prepare().ok());
  Verified verified = verification.Verify(ShareOfStoreAll{0.7}).value();
  EXPECT_FALSE(verified.limit_held.has_value());
  verification.CheckLimit(&verified);
  EXPECT_EQ(verified.limit_held, true);
  EXPECT_THAT(verified.faults, ::testing::IsEmpty());
  // A peak that no step comes near: nothing fails.
  verified.run.steps[0].peak = verified.run.steps[0].peak + verified.run.steps[0].peak;
  verification.CheckLimit(&verified);
  EXPECT_EQ(verified.limit_held, false);
  EXPECT_THAT(verified.faults, ::testing::ElementsAre(HasSubstr("64 bytes below the peak")));
}

// Each thing that may be wrong is a fault of its own.
TEST_F(VerificationTest, FindsEveryDifference) {
  const auto model = MakeTrainedModel(&network_.model);
  Agent agent(&network_.model, options_);
  Verification verification(&agent, model.get(), &batch_, 7, 2);
  ASSERT_TRUE(verification.Prepare().ok());
  const Verified good = verification.Verify(ShareOfStoreAll{0.7}).value();
  const auto faults = [&good](const std::function<void(Verified*)>& spoil) {
    Verified bad = good;
    spoil(&bad);
    return Faults(bad.adopted.plan, bad.run, bad.equal);
  };
  const auto one = [](const char* words) {
    return ::testing::ElementsAre(::testing::HasSubstr(words));
  };
  EXPECT_THAT(faults([](Verified*) {}), ::testing::IsEmpty());
  EXPECT_THAT(faults([](Verified* v) { v->equal.loss = false; }), one("the loss"));
  EXPECT_THAT(faults([](Verified* v) { v->equal.gradients = false; }), one("gradients"));
  EXPECT_THAT(faults([](Verified* v) { v->equal.parameters = false; }), one("parameters"));
  EXPECT_THAT(faults([](Verified* v) { v->equal.buffers = false; }), one("buffers"));
  EXPECT_THAT(faults([](Verified* v) { v->equal.random = false; }), one("random state"));
  EXPECT_THAT(faults([](Verified* v) { v->run.steps[1].peak = v->adopted.plan.budget + Bytes(1); }),
              one("exceeds the budget"));
  EXPECT_THAT(faults([](Verified* v) { ++v->run.steps[1].recomputed_forwards; }), one("step 2: "));
  EXPECT_THAT(
      faults([](Verified* v) { ++v->run.steps[0].counts[static_cast<size_t>(Op::kOffloadStart)]; }),
      one("1 times offload-start, 0 were planned"));
}

// The random state is part of what is compared.
TEST_F(TrainingComparisonTest, ADrawOfARandomNumberShows) {
  const StepFunction drawing = [this](const Batch& batch) {
    torch::rand({1});
    return Plain(batch);
  };
  const Equality equality =
      Compare(training_.Train(1, step_).value(), training_.Train(1, drawing).value());
  EXPECT_FALSE(equality.random);
  EXPECT_TRUE(equality.gradients);
}

}  // namespace
}  // namespace stowage

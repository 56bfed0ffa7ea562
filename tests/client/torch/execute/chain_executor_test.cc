// What the executor refuses, and what it leaves behind when a step fails.
#include "client/torch/execute/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/torch.h>

#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/offload/simulated_device.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using testing::HasSubstr;

Chain ProfiledChain(const TestNetwork& network, ExecutionDevice* device = nullptr) {
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device;
  auto profile = ProfileChain(network.model, network.input, network.target, options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return std::get<Chain>(profile.value().problem);
}

class ChainExecution : public testing::Test {
 protected:
  explicit ChainExecution(const TrainingDevice& device)
      : device_(device),
        meter_(device.meter()),
        network_(MakeTestNetwork("norm_cnn", device)),
        chain_(ProfiledChain(network_, device.execution)),
        buffers_(BufferState::Capture(network_.model.buffers())),
        random_(RandomState::Capture(device.device)) {}
  ~ChainExecution() override { device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  std::unique_ptr<Executor> Make(const Schedule& schedule) {
    auto executor = Executor::Create(&network_.model, chain_, schedule, device_.execution);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return std::move(executor).value();
  }

  void Rewind() {
    buffers_.Restore();
    random_.Restore();
    network_.model.ZeroGradients();
  }

  void ExpectStateUntouched() {
    EXPECT_TRUE(BufferState::Capture(network_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture(device_.device) == random_);
  }

  // A step of `executor` from the first state is a plain step.
  void ExpectLikePlain(Executor* executor) {
    Rewind();
    auto plain = PlainStep(network_.model, network_.input, network_.target, meter_);
    ASSERT_TRUE(plain.ok()) << plain.status();
    const Digest gradients = GradientDigest(network_.model);
    const Digest buffers = BufferDigest(network_.model);
    const RandomState random = RandomState::Capture(device_.device);
    Rewind();
    auto report = executor->Step(network_.input, network_.target);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->loss, plain->loss);
    EXPECT_EQ(GradientDigest(network_.model), gradients);
    EXPECT_EQ(BufferDigest(network_.model), buffers);
    EXPECT_TRUE(RandomState::Capture(device_.device) == random);
  }

  Schedule RandomSchedule(unsigned seed) {
    std::mt19937 random(seed);
    return Disturb(chain_, RandomPersistentSchedule(chain_, &random), 2, &random);
  }

  const TrainingDevice& device_;
  MemoryMeter* const meter_;
  TestNetwork network_;
  Chain chain_;
  BufferState buffers_;
  RandomState random_;
};

class ChainExecutorTest : public ChainExecution, public testing::WithParamInterface<std::string> {
 protected:
  ChainExecutorTest() : ChainExecution(TrainingDeviceNamed(GetParam())) {}
};

// What comes after its last saved tensor is not run again.
TEST_P(ChainExecutorTest, ARecomputeRightBeforeItsBackwardStopsAtItsLastSavedTensor) {
  int begun = 0, ended = 0;
  ChainModel model("counts");
  torch::nn::Linear first(8, 8), last(8, 8);
  ModelStage stage;
  stage.name = "stage";
  stage.op_kind = "counts";
  stage.forward = [first, last, &begun, &ended](const at::Tensor& x) mutable {
    ++begun;
    at::Tensor y = last->forward(first->forward(x).tanh());
    ++ended;
    return y;
  };
  stage.parameters = first->parameters();
  for (const at::Tensor& parameter : last->parameters()) stage.parameters.push_back(parameter);
  model.AddStage(std::move(stage));
  // Saves its input and parameters alone: there is nothing to run it again for.
  int products = 0;
  torch::nn::Linear plain(8, 4);
  model.AddStage({"product", "linear",
                  [plain, &products](const at::Tensor& x) mutable {
                    ++products;
                    return plain->forward(x);
                  },
                  plain->parameters()});
  model.SetLoss("mean", [](const at::Tensor& x, const at::Tensor&) { return x.mean(); });
  MoveTo(device_.device, model);
  const at::Tensor input = torch::randn({5, 8}).to(device_.device);
  const at::Tensor target = torch::zeros({1}).to(device_.device);
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device_.execution;
  const auto profile = ProfileChain(model, input, target, options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Chain chain = std::get<Chain>(profile->problem);
  EXPECT_TRUE(chain.stage(1).stops());
  EXPECT_TRUE(chain.stage(2).stops());
  EXPECT_EQ(chain.stage(2).stopped_saved(), Bytes(0));
  const Schedule schedule = {ForwardNoSave(1), ForwardNoSave(2), ForwardSave(3), Backward(3),
                             ForwardSave(2),   Backward(2),      ForwardSave(1), Backward(1)};
  auto executor = Executor::Create(&model, chain, schedule, device_.execution);
  ASSERT_TRUE(executor.ok()) << executor.status();
  model.ZeroGradients();
  ASSERT_TRUE(PlainStep(model, input, target, meter_).ok());
  const Digest gradients = GradientDigest(model);
  begun = ended = products = 0;
  model.ZeroGradients();
  const auto report = (*executor)->Step(input, target);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(products, 1);
  EXPECT_LE(report->peak, (*executor)->prediction().peak);
  // Elsewhere plans count whole blocks.
  if (device_.exact) {
    EXPECT_EQ(report->peak, (*executor)->prediction().peak);
  }
  EXPECT_EQ(report->recomputed_forwards, 2);
  EXPECT_EQ(GradientDigest(model), gradients);
}

TEST_P(ChainExecutorTest, OutOfMemoryAtAnyPointLeavesNothingBehind) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  auto executor = Make(RandomSchedule(3));
  const Bytes live = device_.live();
  const int64_t peak = executor->prediction().peak.value();
  int failures = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 60) {
    Rewind();
    device_.LimitMemory(Bytes(extra));
    const absl::Status status = executor->Step(network_.input, network_.target).status();
    device_.ClearLimit();
    if (status.ok()) continue;
    ++failures;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(meter_->current(), live);
    ExpectStateUntouched();
  }
  EXPECT_GT(failures, 30);
  ExpectLikePlain(executor.get());
}

TEST_P(ChainExecutorTest, PlainStepsFailAsCleanly) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Bytes live = device_.live();
  device_.LimitMemory(Bytes(20000));
  const absl::Status status =
      PlainStep(network_.model, network_.input, network_.target, meter_).status();
  device_.ClearLimit();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(meter_->current(), live);
  ExpectStateUntouched();
}

TEST_P(ChainExecutorTest, CountsInstructions) {
  auto executor = Make(StoreAllSchedule(chain_));
  const StepReport report = executor->Step(network_.input, network_.target).value();
  const int stages = chain_.length() + 1;
  EXPECT_EQ(report.count(Op::kForwardSave), stages);
  EXPECT_EQ(report.count(Op::kBackward), stages);
  EXPECT_EQ(report.count(Op::kDiscard), 0);
  EXPECT_EQ(report.recomputed_forwards, 0);
  EXPECT_GT(report.wall_time, Nanos(0));
}

TEST_P(ChainExecutorTest, AnInputOnAnotherDeviceIsRefusedBeforeAnythingRuns) {
  auto executor = Make(StoreAllSchedule(chain_));
  const c10::Device elsewhere(device_.device.is_cpu() ? torch::kMeta : torch::kCPU);
  const absl::Status status =
      executor->Step(network_.input.to(elsewhere), network_.target).status();
  EXPECT_EQ(status,
            absl::InvalidArgumentError("the input is on " + elsewhere.str() +
                                       ", the device to train on is " + device_.device.str()));
  ExpectStateUntouched();
}

TEST_P(ChainExecutorTest, ASmallerBatchRunsWithinThePrediction) {
  auto executor = Make(RandomSchedule(1));
  const auto report =
      executor->Step(network_.input.narrow(0, 0, 2), network_.target.narrow(0, 0, 2));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LT(report->peak, executor->prediction().peak);
}

TEST_P(ChainExecutorTest, AWrongShapeIsAnErrorThatNamesTheStage) {
  auto executor = Make(StoreAllSchedule(chain_));
  const Bytes live = meter_->current();
  const absl::Status status =
      executor->Step(torch::zeros({3, 1, 16, 16}).to(device_.device), network_.target).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction 0 (forward-save 1), stage 1 (conv1"));
  EXPECT_EQ(meter_->current(), live);
}

// A model whose last stage fails at a call that the test chooses.
TEST_P(ChainExecutorTest, AnyExceptionLeavesACleanState) {
  TestNetwork network = MakeTestNetwork("norm_cnn", device_);
  int calls_until_failure = -1;
  network.model.AddFunction("fragile", "mul", [&](const at::Tensor& x) {
    if (calls_until_failure-- == 0) throw std::runtime_error("a stage broke");
    return x.exp() * 1.5 +
           at::rand_like(x);  // saves something of its own, or it would not run again
  });
  const Chain chain = ProfiledChain(network, device_.execution);
  Schedule schedule;
  schedule.push_back(ForwardNoSave(1));
  const int last = chain.length();
  for (int l = 2; l <= last; ++l) schedule.push_back(ForwardNoSave(l));
  schedule.push_back(ForwardSave(last + 1));
  schedule.push_back(Backward(last + 1));
  for (int l = last; l >= 1; --l) {
    schedule.push_back(ForwardSave(l));
    schedule.push_back(Backward(l));
  }
  auto executor = Executor::Create(&network.model, chain, schedule, device_.execution).value();
  const BufferState buffers = BufferState::Capture(network.model.buffers());
  const RandomState random = RandomState::Capture(device_.device);
  const Bytes live = device_.live();
  for (const int call : {0, 1}) {
    calls_until_failure = call;
    network.model.ZeroGradients();
    const absl::Status status = executor->Step(network.input, network.target).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("stage 9 (fragile, mul): a stage broke"));
    EXPECT_TRUE(BufferState::Capture(network.model.buffers()) == buffers);
    EXPECT_TRUE(RandomState::Capture(device_.device) == random);
    EXPECT_EQ(meter_->current(), live);
  }
  calls_until_failure = -1;
  network.model.ZeroGradients();
  const double loss = executor->Step(network.input, network.target).value().loss;
  const Digest gradients = GradientDigest(network.model);
  buffers.Restore();
  random.Restore();
  network.model.ZeroGradients();
  EXPECT_EQ(PlainStep(network.model, network.input, network.target, meter_).value().loss, loss);
  EXPECT_EQ(GradientDigest(network.model), gradients);
}

// As c10d's Reducer, which waits there for other ranks. The plan has no part in it, also where it is memory that they lack.
TEST_P(ChainExecutorTest, WhatOthersDoAtTheEndOfTheBackwardMayFail) {
  auto executor = Make(StoreAllSchedule(chain_));
  const at::Tensor parameter = network_.model.parameters().front();
  for (const bool is_memory : {false, true}) {
    Rewind();
    const auto hook = parameter.register_hook([is_memory](const at::Tensor& gradient) {
      torch::autograd::Engine::get_default_engine().queue_callback([is_memory] {
        if (is_memory) C10_THROW_ERROR(OutOfMemoryError, "of another rank");
        throw std::runtime_error("of another rank");
      });
      return gradient;
    });
    const absl::Status status = executor->Step(network_.input, network_.target).status();
    parameter.remove_hook(hook);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the end of the backward: of another rank"));
    EXPECT_FALSE(GetStepFailure(status));
    ExpectStateUntouched();
  }
  ExpectLikePlain(executor.get());
}

INSTANTIATE_TEST_SUITE_P(Devices, ChainExecutorTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

class ChainRefusalTest : public ChainExecution, public testing::WithParamInterface<std::string> {
 protected:
  ChainRefusalTest() : ChainExecution(TrainingDeviceNamed(GetParam())) {}

  absl::Status CreateError(const Chain& chain, const Schedule& schedule) {
    return Executor::Create(&network_.model, chain, schedule, device_.execution).status();
  }

  at::Tensor Zeros(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) const {
    return torch::zeros(sizes, type).to(device_.device);
  }
};

TEST_P(ChainRefusalTest, CommunicationBesideComputeIsUnimplemented) {
  Schedule schedule = StoreAllSchedule(chain_);
  schedule[1].stream = Stream::kCommunication;
  const absl::Status status = CreateError(chain_, schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction 1 (communication: forward-save 2): communication beside"));
}

TEST_P(ChainRefusalTest, WhatNobodyReadsIsNotSaved) {
  Schedule schedule = StoreAllSchedule(chain_);
  const int last = chain_.length() + 1;
  schedule.insert(schedule.begin() + last + 1, ForwardSave(last));
  EXPECT_TRUE(Evaluator(chain_).Run(schedule).ok());
  EXPECT_EQ(CreateError(chain_, schedule),
            absl::UnimplementedError("instruction 10 (forward-save 9): its backward has run, and "
                                     "nothing else reads what it saves"));
}

TEST_P(ChainRefusalTest, AScheduleThatTheEvaluatorRefusesIsRefused) {
  Schedule schedule = StoreAllSchedule(chain_);
  schedule.pop_back();
  EXPECT_EQ(CreateError(chain_, schedule).code(), absl::StatusCode::kInvalidArgument);
  schedule = StoreAllSchedule(chain_);
  schedule.push_back(ForwardSave(chain_.length() + 2));
  EXPECT_EQ(CreateError(chain_, schedule).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ChainRefusalTest, AChainOfAnotherModelIsRefused) {
  ChainSpec shorter = chain_.spec();
  shorter.stages.pop_back();
  const Chain short_chain = Chain::Create(shorter).value();
  EXPECT_THAT(std::string(CreateError(short_chain, StoreAllSchedule(short_chain)).message()),
              HasSubstr("the chain has 7 stages, the model 8"));
  ChainSpec renamed = chain_.spec();
  renamed.stages[2].op_kind = "gelu";
  const Chain renamed_chain = Chain::Create(renamed).value();
  EXPECT_THAT(std::string(CreateError(renamed_chain, StoreAllSchedule(renamed_chain)).message()),
              HasSubstr("the chain says 'gelu' where the model has stage 3 (drop, dropout)"));
}

TEST_P(ChainRefusalTest, ALargerInputIsRefusedBeforeAnythingRuns) {
  auto executor = Make(StoreAllSchedule(chain_));
  const absl::Status status = executor->Step(Zeros({4, 3, 16, 16}), Zeros({4}, at::kLong)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the input has 12288 bytes"));
  EXPECT_EQ(executor->Step(at::Tensor(), network_.target).status().code(),
            absl::StatusCode::kInvalidArgument);
  ExpectStateUntouched();
}

TEST_P(ChainRefusalTest, ABatchOfAnotherShapeIsRefused) {
  auto executor =
      Executor::Create(&network_.model, chain_, StoreAllSchedule(chain_), device_.execution,
                       BatchShape::Of(network_.input, network_.target))
          .value();
  const at::Tensor target = network_.target;
  const auto error = [&](const at::Tensor& input, const at::Tensor& labels) {
    const absl::Status status = executor->Step(input, labels).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  // No more bytes than planned, but a larger side.
  EXPECT_EQ(error(Zeros({1, 3, 16, 48}), target.narrow(0, 0, 1)),
            "the input is Float[1, 3, 16, 48], the plan is for Float[3, 3, 16, 16] at most");
  EXPECT_THAT(error(Zeros({3, 3, 16, 16}, at::kHalf), target), HasSubstr("Half["));
  EXPECT_THAT(error(Zeros({3, 3, 16}), target), HasSubstr("the input is Float[3, 3, 16],"));
  EXPECT_EQ(error(network_.input, Zeros({4}, at::kLong)),
            "the target is Long[4], the plan is for Long[3] at most");
  EXPECT_THAT(error(network_.input, Zeros({3})), HasSubstr("the target is Float[3]"));
  EXPECT_THAT(error(network_.input, at::Tensor()),
              HasSubstr("the target is undefined, the plan is for Long[3]"));
  ExpectStateUntouched();
  ExpectLikePlain(executor.get());
  EXPECT_TRUE(executor->Step(network_.input.narrow(0, 0, 2), target.narrow(0, 0, 2)).ok());
}

// The chain of a profile that somebody else made.
TEST_P(ChainRefusalTest, AStageThatTrainsWhatItDoesNotListIsRefused) {
  ChainModel model("hidden");
  const at::Tensor weight = torch::ones({4}).to(device_.device);
  model.AddFunction("hidden", "mul", [weight](const at::Tensor& x) { return x * weight; });
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const TestNetwork network{std::move(model), Zeros({2, 4}), Zeros({1})};
  const Chain chain = ProfiledChain(network, device_.execution);
  weight.requires_grad_();
  auto executor =
      Executor::Create(&network.model, chain, StoreAllSchedule(chain), device_.execution).value();
  const absl::Status status = executor->Step(network.input, network.target).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 1 (hidden, mul): it trains parameters that it does not list"));
}

INSTANTIATE_TEST_SUITE_P(Devices, ChainRefusalTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// Of the CPU's link, whose copies fail where the test has it.
class SimulatedCopyTest : public ChainExecution {
 protected:
  SimulatedCopyTest() : ChainExecution(TrainingDeviceNamed("cpu")) {}
};

TEST_F(SimulatedCopyTest, OfTheInputThatFailsIsNamed) {
  const CopyCost cost{int64_t{8} << 30, Nanos(1000)};
  const auto device = SimulatedDevice::Create({cost, cost, false, Bytes(1 << 20)}).value();
  Schedule schedule = StoreAllSchedule(chain_);
  const TensorKind kind = TensorKind::kActivation;
  for (const Instruction& i : {PrefetchStart(kind, 0), PrefetchWait(kind, 0)}) {
    schedule.insert(schedule.end() - 1, i);
  }
  for (const Instruction& i : {OffloadWait(kind, 0), OffloadStart(kind, 0)}) {
    schedule.insert(schedule.begin() + 1, i);
  }
  const auto executor = Executor::Create(&network_.model, chain_, schedule, device.get()).value();
  device->FailCopyAfter(0);
  const absl::Status status = executor->Step(network_.input, network_.target).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("(offload-wait activation 0), the input: the simulated copy failed"));
}

TEST(StateDigestTest, SeesEveryBit) {
  const TestNetwork network = MakeTestNetwork("norm_cnn");
  const Digest parameters = ParameterDigest(network.model);
  const Digest buffers = BufferDigest(network.model);
  EXPECT_EQ(ParameterDigest(MakeTestNetwork("norm_cnn").model), parameters);
  auto* byte = static_cast<unsigned char*>(network.model.parameters().back().data_ptr());
  *byte ^= 1;
  EXPECT_NE(ParameterDigest(network.model), parameters);
  *byte ^= 1;
  EXPECT_EQ(ParameterDigest(network.model), parameters);
  network.model.buffers()[0].add_(1);
  EXPECT_NE(BufferDigest(network.model), buffers);
}

}  // namespace
}  // namespace stowage

// Chains trained by schedules that move tensors to the host and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/execute/chain_training.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

class ChainTransfers : public testing::Test, protected ChainTraining {
 protected:
  ChainTransfers(const std::string& network, const TrainingDevice& device)
      : ChainTraining(network, device), device_(NewDevice(/*full_duplex=*/false)) {}
  ~ChainTransfers() override { training_device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(training_device_); }

  // Null where there is none.
  std::unique_ptr<ExecutionDevice> NewDevice(bool full_duplex) const {
    if (!training_device_.missing.empty()) return nullptr;
    return MakeLinkedDevice(training_device_, FastLink(full_duplex));
  }

  std::unique_ptr<Executor> Make(const Chain& chain, const Schedule& schedule) {
    auto executor = Executor::Create(&network_.model, chain, schedule, device_.get());
    EXPECT_TRUE(executor.ok()) << executor.status();
    return std::move(executor).value();
  }

  void ExpectUntouched(const absl::Status& status, absl::StatusCode code, const std::string& why) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_TRUE(BufferState::Capture(network_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture(training_device_.device) == random_);
  }

  std::unique_ptr<ExecutionDevice> device_;
};

class ChainTransferTest : public ChainTransfers, public testing::WithParamInterface<NetworkCase> {
 protected:
  ChainTransferTest()
      : ChainTransfers(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}

  bool exact() const { return training_device_.exact; }
};

TEST_P(ChainTransferTest, RandomSchedulesAreExact) {
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  const int schedules = std::get<0>(GetParam()) == "resnet18" ? 12 : exact() ? 60 : 20;
  std::mt19937 random(7);
  int trips = 0;
  int parts = 0;
  for (int i = 0; i < schedules; ++i) {
    device_ = NewDevice(/*full_duplex=*/i % 2 == 1);
    const Schedule recomputing =
        Disturb(chain, RandomPersistentSchedule(chain, &random), i % 5, &random);
    const Schedule schedule = WithTrips(chain, *device_->link(), recomputing, 1 + i % 9, &random);
    SCOPED_TRACE(Text(schedule));
    ExpectExact(Make(chain, schedule).get(), schedule, plain);
    EXPECT_EQ(device_->host()->held(), Bytes(0));
    for (const Instruction& instruction : schedule) {
      trips += instruction.op == Op::kOffloadStart ? 1 : 0;
      parts += instruction.part > 0 ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(trips, 3 * schedules);
  EXPECT_GT(parts, schedules / 3);
}

// As slow as moves are worth while.
Chain WithTimes(const Chain& chain) {
  ChainSpec spec = chain.spec();
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(20000 + stage.saved.value() / 8);
    stage.backward_time = stage.forward_time + stage.forward_time;
  }
  return Chain::Create(std::move(spec)).value();
}

TEST_P(ChainTransferTest, PlansOfAllSolversThatMoveTensorsAreExact) {
  const Chain chain = WithTimes(Profiled());
  const Outcome plain = Plain();
  const Bytes all = Evaluator(chain).Run(StoreAllSchedule(chain)).value().peak;
  const Instance instance(chain, *device_->link());
  for (const Solver* solver : SolversOf(ProblemKind::kChain)) {
    if (!solver->info().copies) continue;
    const Bytes least = solver->LeastBudget(instance, {}).value();
    int moving = 0;
    bool recomputing = false;
    for (const Bytes budget : {least, Bytes((least + all).value() / 2)}) {
      SCOPED_TRACE(absl::StrCat(solver->info().name, " ", budget.value()));
      const auto plan = solver->Solve(instance, budget, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      // Not all of them find what is possible.
      if (plan->status != PlanStatus::kFound) continue;
      const StepReport report =
          ExpectExact(Make(chain, plan->schedule).get(), plan->schedule, plain);
      EXPECT_LE(report.peak, budget);
      moving += report.count(Op::kOffloadStart) > 0 ? 1 : 0;
      recomputing = recomputing || plan->prediction.recomputed_forwards > 0;
    }
    EXPECT_GE(moving, least < all && !recomputing ? 1 : 0) << solver->info().name;
  }
}

TEST_P(ChainTransferTest, ALimitAtThePeakHoldsAnd64BytesLessDoesNot) {
  if (!training_device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  std::mt19937 random(18);
  for (int i = 0; i < 6; ++i) {
    const Schedule schedule =
        WithTrips(chain, *device_->link(), RandomPersistentSchedule(chain, &random), 6, &random);
    SCOPED_TRACE(Text(schedule));
    const auto executor = Make(chain, schedule);
    // Input and sums are counted to the byte: their blocks may be larger.
    const int64_t counted = 1 + static_cast<int64_t>(network_.model.tied_parameters().size());
    const Bytes top = TiedSums(network_.model) + executor->prediction().peak +
                      Bytes(counted * (device_->granularity().value() - 1));
    training_device_.LimitMemory(top);
    ExpectExact(executor.get(), schedule, plain);
    training_device_.ClearLimit();
    // Elsewhere plans count whole blocks.
    if (!exact()) continue;
    Rewind();
    const Bytes live = meter_->current();
    const at::Tensor input = network_.input.clone();
    training_device_.LimitMemory(top - chain.activation(0) - Bytes(64));
    const absl::Status status = executor->Step(input, network_.target).status();
    training_device_.ClearLimit();
    ExpectUntouched(status, absl::StatusCode::kResourceExhausted, "out of memory");
    EXPECT_EQ(meter_->current(), live + chain.activation(0));
    EXPECT_EQ(device_->host()->held(), Bytes(0));
    EXPECT_TRUE(input.equal(network_.input));
    ExpectExact(executor.get(), schedule, plain);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ChainTransferTest,
                         testing::Combine(testing::ValuesIn(TestNetworkNames()),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, ChainTransferTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "tied", "transformer"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

class OneChainTransfer : public ChainTransfers {
 protected:
  explicit OneChainTransfer(const TrainingDevice& device)
      : ChainTransfers("norm_cnn", device), chain_(Profiled()) {
    if (device_ == nullptr) return;
    std::mt19937 random(3);
    schedule_ =
        WithTrips(chain_, *device_->link(), RandomPersistentSchedule(chain_, &random), 8, &random);
  }

  // Null on other devices than the CPU.
  SimulatedDevice* simulated() { return dynamic_cast<SimulatedDevice*>(device_.get()); }

  const Chain chain_;
  Schedule schedule_;
};

// Of the CPU alone: copies of its link fail where the test has it, and what is refused does not depend on the device.
class SimulatedChainTransferTest : public OneChainTransfer {
 protected:
  SimulatedChainTransferTest() : OneChainTransfer(TrainingDeviceNamed("cpu")) {}
};

TEST_F(SimulatedChainTransferTest, AfterAnyCopyThatFailsTheNextStepIsRight) {
  const Outcome plain = Plain();
  const auto executor = Make(chain_, schedule_);
  const Bytes live = meter_->current();
  int copies = 0;
  for (const Instruction& i : schedule_) {
    copies += i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart ? 1 : 0;
  }
  ASSERT_GT(copies, 8);
  for (int copy = 0; copy < copies; ++copy) {
    Rewind();
    simulated()->FailCopyAfter(copy);
    const absl::Status status = executor->Step(network_.input, network_.target).status();
    ExpectUntouched(status, absl::StatusCode::kInternal, "the simulated copy failed");
    EXPECT_THAT(std::string(status.message()), HasSubstr("-wait "));
    EXPECT_EQ(meter_->current(), live);
    EXPECT_EQ(device_->host()->held(), Bytes(0));
  }
  ExpectExact(executor.get(), schedule_, plain);
}

class OneChainTransferTest : public OneChainTransfer,
                             public testing::WithParamInterface<std::string> {
 protected:
  OneChainTransferTest() : OneChainTransfer(TrainingDeviceNamed(GetParam())) {}
};

TEST_P(OneChainTransferTest, HostMemoryCanRunOut) {
  const Outcome plain = Plain();
  const auto executor = Make(chain_, schedule_);
  const Bytes host_peak = ExpectExact(executor.get(), schedule_, plain).host_peak;
  {
    const size_t rest = static_cast<size_t>(host_peak.value()) - 1;
    const HostPool::Block others = device_->host()->Allocate((size_t{1} << 30) - rest);
    Rewind();
    ExpectUntouched(executor->Step(network_.input, network_.target).status(),
                    absl::StatusCode::kResourceExhausted, "out of host memory: ");
  }
  EXPECT_EQ(device_->host()->held(), Bytes(0));
  ExpectExact(executor.get(), schedule_, plain);
}

TEST_F(SimulatedChainTransferTest, WithoutALinkTransfersAreRefused) {
  Schedule schedule = StoreAllSchedule(chain_);
  schedule.insert(schedule.begin() + 3, OffloadStart(kActivation, 0));
  const absl::Status status = Executor::Create(&network_.model, chain_, schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("instruction 3 (offload-start activation 0): the device has no link"));
}

TEST_F(SimulatedChainTransferTest, PartsThatTheProfileDoesNotListAreRefused) {
  Schedule schedule = StoreAllSchedule(chain_);
  schedule.insert(schedule.begin() + 2, {OffloadStart(kSaved, 2, 1), OffloadWait(kSaved, 2, 1),
                                         PrefetchStart(kSaved, 2, 1), PrefetchWait(kSaved, 2, 1)});
  ASSERT_GE(chain_.stage(2).saved_tensors.size(), 2U);
  const auto error = [&](const std::vector<Bytes>& listed) {
    ChainSpec spec = chain_.spec();
    spec.stages[1].saved_tensors = listed;
    const auto executor = Make(Chain::Create(std::move(spec)).value(), schedule);
    const absl::Status status = executor->Step(network_.input, network_.target).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(GetStepFailure(status).value().fault, StepFault::kImmovable);
    return std::string(status.message());
  };
  EXPECT_THAT(error({Bytes(8)}), HasSubstr("of its own, the profile lists 1"));
  std::vector<Bytes> smaller = chain_.stage(2).saved_tensors;
  smaller[0] -= Bytes(1);
  EXPECT_THAT(error(smaller), HasSubstr("saved tensor 1 has "));
}

// After the first forward, up to the last backward.
Schedule WithInputAway(const Chain& chain) {
  Schedule schedule = StoreAllSchedule(chain);
  schedule.insert(schedule.end() - 1,
                  {PrefetchStart(kActivation, 0), PrefetchWait(kActivation, 0)});
  schedule.insert(schedule.begin() + 1,
                  {OffloadStart(kActivation, 0), OffloadWait(kActivation, 0)});
  return schedule;
}

TEST_P(OneChainTransferTest, AnInputThatCannotBeLentIsCopied) {
  const auto executor = Make(chain_, WithInputAway(chain_));
  const Outcome plain = Plain();
  const at::Tensor larger = torch::cat({network_.input, network_.input});
  const at::Tensor input = larger.narrow(0, 0, 3);
  Rewind();
  const auto report = executor->Step(input, network_.target);
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectEqual(plain, After(*report));
  EXPECT_LE(report->peak, executor->prediction().peak);
  EXPECT_EQ(report->offloaded, Bytes(static_cast<int64_t>(input.nbytes())));
  EXPECT_TRUE(larger.equal(torch::cat({network_.input, network_.input})));
  if (simulated() == nullptr) return;
  EXPECT_EQ(report->peak, executor->prediction().peak);
  simulated()->FailCopyAfter(0);
  EXPECT_THAT(std::string(executor->Step(input, network_.target).status().message()),
              HasSubstr("the input: the simulated copy failed"));
}

TEST_P(OneChainTransferTest, AnInputThatIsTheTargetIsCopied) {
  ChainModel model("same again");
  model.AddStage(network_.model.stage(1));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor& x) { return y.sum() + x.sum(); });
  const Chain chain =
      ChainWithTimes(model, network_.input, network_.input, training_device_.execution);
  auto executor = Executor::Create(&model, chain, WithInputAway(chain), device_.get()).value();
  const auto plain = PlainStep(model, network_.input, network_.input, meter_);
  EXPECT_EQ(executor->Step(network_.input, network_.input).value().loss, plain.value().loss);
}

INSTANTIATE_TEST_SUITE_P(Devices, OneChainTransferTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// What the stages do besides computing is up to the tests. Of the CPU, whose copies take as long as the link says, and which
// knows of the first step what its graphs hold.
struct SmallChain {
  ChainModel model{"small"};
  at::Tensor input = torch::ones({4, 1024});
  at::Tensor target = torch::zeros({1});

  void Add(const std::function<at::Tensor(const at::Tensor&)>& stage) {
    model.AddFunction("stage", "function", stage);
  }

  Chain Profiled() {
    model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
    ProfileOptions options;
    options.bytes_only = true;
    return std::get<Chain>(ProfileChain(model, input, target, options).value().problem);
  }
};

at::Tensor Weight() { return torch::full({1024}, 0.5).requires_grad_(); }

TEST(ChainTransfers, CopiesRunWhileStagesCompute) {
  SimulatedDevice* device = nullptr;
  int seen = 0;
  SmallChain chain;
  ModelStage first;
  first.name = "first";
  first.op_kind = "mul";
  const at::Tensor weight = Weight();
  first.parameters = {weight};
  first.forward = [weight](const at::Tensor& x) { return x * weight; };
  chain.model.AddStage(first);
  chain.Add([](const at::Tensor& x) { return x.tanh(); });
  chain.Add([&](const at::Tensor& x) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    if (device != nullptr && device->running() == 1) {
      while (device->running() > 0 && std::chrono::steady_clock::now() < limit) {
        std::this_thread::yield();
      }
      ++seen;
    }
    return x * 2;
  });
  const Chain profile = chain.Profiled();
  TransferModel link = FastLink(/*full_duplex=*/false);
  link.to_host.latency =
      Nanos(500000000);  // long beside what a loaded machine takes to begin a stage
  const auto simulated = SimulatedDevice::Create(link).value();
  Schedule schedule = StoreAllSchedule(profile);
  schedule.insert(schedule.begin() + 2, OffloadStart(kSaved, 2));
  schedule.insert(schedule.begin() + 4, OffloadWait(kSaved, 2));
  schedule.insert(schedule.begin() + 5, PrefetchStart(kSaved, 2));
  schedule.insert(schedule.begin() + 6, PrefetchWait(kSaved, 2));
  auto executor = Executor::Create(&chain.model, profile, schedule, simulated.get()).value();
  device = simulated.get();
  const auto report = executor->Step(chain.input, chain.target);
  ASSERT_TRUE(report.ok()) << report.status();
  // The copy was there when the stage began and had ended before the stage had.
  EXPECT_EQ(seen, 1);
}

TEST(ChainTransfers, WhatAutogradHasNotSavedCannotMove) {
  SmallChain chain;
  const at::Tensor weight = Weight();
  ModelStage stage;
  stage.name = "hiding";
  stage.op_kind = "mul";
  stage.parameters = {weight};
  stage.forward = [weight](const at::Tensor& x) {
    const at::Tensor y = x * weight;
    const at::Tensor hidden = y.detach() * 3;
    if (y.requires_grad()) y.register_hook([hidden](const at::Tensor&) {});
    return y;
  };
  chain.model.AddStage(stage);
  const Chain profile = chain.Profiled();
  Schedule schedule = StoreAllSchedule(profile);
  schedule.insert(schedule.begin() + 1, {OffloadStart(kSaved, 1), OffloadWait(kSaved, 1),
                                         PrefetchStart(kSaved, 1), PrefetchWait(kSaved, 1)});
  const auto device = SimulatedDevice::Create(FastLink(/*full_duplex=*/false)).value();
  auto executor = Executor::Create(&chain.model, profile, schedule, device.get()).value();
  const absl::Status status = executor->Step(chain.input, chain.target).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("its graph holds 16384 bytes"));
  EXPECT_EQ(GetStepFailure(status).value().fault, StepFault::kImmovable);
}

}  // namespace
}  // namespace stowage

// What an executor tells of a step beside its report: what each instruction took, its name to LibTorch's
// profilers, and where and why a step failed.
#include "client/torch/execute/step_run.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/measured_step.h"
#include "tests/client/torch/execute/chain_training.h"
#include "tests/client/torch/measured_peaks.h"
#include "tests/client/torch/profile/clocked_device.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"

namespace stowage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StepRunTest : public testing::Test, protected ChainTraining {
 protected:
  StepRunTest() : ChainTraining("norm_cnn"), chain_(Profiled()) {
    std::mt19937 random(5);
    schedule_ =
        WithTrips(chain_, *device_->link(), RandomPersistentSchedule(chain_, &random), 6, &random);
  }
  ~StepRunTest() override { TrackingAllocator::Get()->ClearLimit(); }

  std::unique_ptr<Executor> Make(const Schedule& schedule, ExecutionDevice* device) {
    return Executor::Create(&network_.model, chain_, schedule, device).value();
  }

  // Of the step that must fail.
  StepFailure FailureOf(Executor* executor) {
    Rewind();
    const absl::Status status = executor->Step(network_.input, network_.target).status();
    const std::optional<StepFailure> failure = GetStepFailure(status);
    EXPECT_TRUE(failure) << status;
    if (!failure) return {};
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("instruction " + std::to_string(failure->instruction) + " ("));
    return *failure;
  }

  std::unique_ptr<SimulatedDevice> device_ =
      SimulatedDevice::Create(FastLink(/*full_duplex=*/false)).value();
  const Chain chain_;
  Schedule schedule_;
};

TEST_F(StepRunTest, MeasuresWhatTheEvaluatorPredicts) {
  Later<MeasuredStep> measured;
  const auto executor = Make(schedule_, device_.get());
  executor->MeasureInto(&measured);
  Rewind();
  const auto report = executor->Step(network_.input, network_.target);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(CheckMeasuredStep(measured, schedule_).ok());
  EXPECT_EQ(measured.Get().peak, report->peak);
  EXPECT_EQ(measured.Get().step_time, report->wall_time.Get());
  EXPECT_LE(measured.Get().instructions.back().end, measured.Get().step_time);
  std::vector<TimelinePoint> planned;
  ASSERT_TRUE(Evaluator(Instance(chain_, *device_->link())).Run(schedule_, &planned).ok());
  for (size_t i = 0; i < planned.size(); ++i) {
    // The last backward drops the input, which the caller holds.
    const Bytes callers = i + 1 < planned.size() ? Bytes(0) : chain_.activation(0);
    EXPECT_EQ(measured.Get().instructions[i].held_after.value(),
              (planned[i].held + callers).value())
        << "instruction " << i;
  }
  ExpectPeaksAsPredicted(schedule_, measured, planned, Bytes(0));
  const auto read = ParseMeasuredStep(MeasuredStepText(measured));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, measured.Get());
}

TEST_F(StepRunTest, MeasuresNothingUnlessAskedNorOfAStepThatFails) {
  Later<MeasuredStep> measured;
  const auto executor = Make(schedule_, device_.get());
  Rewind();
  ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
  EXPECT_EQ(measured.Get(), MeasuredStep());
  executor->MeasureInto(&measured);
  device_->FailCopyAfter(0);
  Rewind();
  EXPECT_FALSE(executor->Step(network_.input, network_.target).ok());
  EXPECT_EQ(measured.Get(), MeasuredStep());
  Rewind();
  ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
  EXPECT_EQ(measured.Get().instructions.size(), schedule_.size());
  measured = MeasuredStep();
  executor->MeasureInto(nullptr);
  Rewind();
  ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
  EXPECT_EQ(measured.Get(), MeasuredStep());
}

// Of an allocator with an observer.
class ToldMeter final : public MemoryMeter {
 public:
  Bytes current() const override { return TrackingAllocator::Get()->current(); }
  Bytes peak() const override { return TrackingAllocator::Get()->peak(); }
  void ResetPeak() override {}
  RefusalLog* refusals() override { return &log; }

  RefusalLog log;
};

class RefusingDevice final : public ClockedDevice {
 public:
  MemoryMeter* meter() override { return &told; }

  ToldMeter told;
};

// Whatever the error says, and in whatever language.
TEST(StepFailureOf, ARefusalIsWhatTheObserverWasTold) {
  RefusingDevice device;
  const auto failure_of = [&device](const std::string& words) {
    try {
      throw c10::OutOfMemoryError({"", "", 0}, words);
    } catch (...) {
      return CurrentStepFailure(3, &device);
    }
  };
  const Bytes live = device.meter()->current();
  device.told.log.Note({Bytes(1), Bytes(1), Bytes(1), Bytes(1), Bytes(0)});
  device.told.log.Note({Bytes(700), Bytes(11), Bytes(2000), Bytes(2500), Bytes(0)});
  const StepFailure told = failure_of("kein Speicher");
  EXPECT_EQ(told.fault, StepFault::kDeviceMemory);
  EXPECT_EQ(told.asked, Bytes(700));
  EXPECT_EQ(told.allocated, std::min(Bytes(11), device.meter()->peak()));
  EXPECT_EQ(told.limit, Bytes(2500));
  EXPECT_EQ(told.rounding, Bytes(0));
  // Once: the next error is another's.
  EXPECT_EQ(failure_of("kein Speicher").asked, Bytes(0));
  EXPECT_EQ(failure_of("kein Speicher").allocated, live);
  EXPECT_EQ(
      failure_of(WordsOfRefusal({Bytes(512), Bytes(11), Bytes(11), Bytes(600), Bytes(0)})).asked,
      Bytes(512));
}

class CapturingDevice final : public ClockedDevice {
 public:
  bool IsCapturing() const override { return capturing; }

  bool capturing = true;
};

TEST_F(StepRunTest, AStepThatIsCapturedInAGraphIsRefusedBeforeAnythingRuns) {
  CapturingDevice device;
  const auto executor = Make(StoreAllSchedule(chain_), &device);
  Rewind();
  const absl::Status status = executor->Step(network_.input, network_.target).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("captured"));
  EXPECT_FALSE(GetStepFailure(status));
  device.capturing = false;
  EXPECT_TRUE(executor->Step(network_.input, network_.target).ok());
}

// Where stage l takes l; what the executor does between two instructions does not count.
TEST(StepRun, TimesAreThoseOfTheDevicesClock) {
  ClockedDevice device;
  const Schedule schedule = {ForwardNoSave(1), ForwardSave(2), Discard(TensorKind::kSaved, 2),
                             ForwardSave(1)};
  StepRecorder recorder(&device, Bytes(0));
  const auto run = [&device](const Instruction& i) {
    if (IsForward(i.op)) device.Advance(Nanos(i.stage));
  };
  size_t next = 0;
  StepReport report;
  const auto describe = [](int) { return std::string(); };
  ASSERT_TRUE(
      RunInstructions(schedule, 3, {&device, run, describe, &recorder}, &next, &report).ok());
  device.Advance(Nanos(100));
  ASSERT_TRUE(
      RunInstructions(schedule, 4, {&device, run, describe, &recorder}, &next, &report).ok());
  const MeasuredStep step = recorder.Finish(schedule, report);
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const MeasuredInstruction& i : step.instructions) {
    times.emplace_back(i.start.value(), i.end.value());
  }
  EXPECT_THAT(times,
              ElementsAre(std::pair(0, 1), std::pair(1, 3), std::pair(3, 3), std::pair(3, 4)));
  EXPECT_THAT(device.collected(), ElementsAre(4U));
}

class GraphStepRunTest : public testing::TestWithParam<std::string>, protected GraphTraining {
 protected:
  GraphStepRunTest()
      : GraphTraining("mixed", TrainingDeviceNamed(GetParam())), profile_(Profiled()) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const Profile profile_;
};

TEST_P(GraphStepRunTest, StepsOfGraphsAreMeasured) {
  const Graph& graph = std::get<Graph>(profile_.problem);
  const Schedule schedule = StoreAllSchedule(graph);
  const auto executor = Executor::Create(&graph_.model, graph, schedule, device_.execution).value();
  Later<MeasuredStep> measured;
  executor->MeasureInto(&measured);
  Rewind();
  const auto report = executor->Step(Inputs(), graph_.target);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(CheckMeasuredStep(measured, schedule).ok());
  EXPECT_EQ(measured.Get().peak, report->peak);
  std::vector<TimelinePoint> planned;
  ASSERT_TRUE(Evaluator(graph).Run(schedule, &planned).ok());
  // Inputs are there before the plan has them and after it, a loss goes as soon as it is read. Elsewhere plans count whole
  // blocks.
  for (size_t i = 0; device_.exact && i < planned.size(); ++i) {
    const Bytes more = measured.Get().instructions[i].held_after - planned[i].held;
    EXPECT_LE(std::abs(more.value()), InputBytes().value()) << "instruction " << i;
  }
  ExpectPeaksAsPredicted(schedule, measured, planned, InputBytes());
}

TEST_P(GraphStepRunTest, AnInputOnAnotherDeviceIsRefusedBeforeAnythingRuns) {
  const auto executor = Executor::Create(&graph_.model, std::get<Graph>(profile_.problem),
                                         Instance(profile_).store_all_schedule(), device_.execution)
                            .value();
  std::vector<at::Tensor> inputs = Inputs();
  inputs.back() = at::empty(inputs.back().sizes(), inputs.back().options().device(at::kMeta));
  const absl::Status status = executor->Step(inputs, graph_.target).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(" is on meta, the device to train on is " + device_.device.str()));
  EXPECT_FALSE(GetStepFailure(status));
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphStepRunTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

std::vector<std::string>* heard = nullptr;

std::unique_ptr<at::ObserverContext> Hear(const at::RecordFunction& function) {
  const std::string name = function.name();
  if (absl::StartsWith(name, "stowage ")) heard->push_back(name);
  return nullptr;
}

TEST_F(StepRunTest, InstructionsHaveNamesForThoseWhoListen) {
  const Schedule schedule = StoreAllSchedule(chain_);
  const auto executor = Make(schedule, device_.get());
  std::vector<std::string> names;
  heard = &names;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&Hear).scopes(
          {at::RecordScope::USER_SCOPE, at::RecordScope::BACKWARD_FUNCTION}));
  Rewind();
  const absl::Status status = executor->Step(network_.input, network_.target).status();
  at::removeCallback(handle);
  ASSERT_TRUE(status.ok()) << status;
  std::vector<std::string> expected;
  for (const Instruction& i : schedule) {
    expected.push_back("stowage " + ToString(i) + ", " + network_.model.Describe(i.stage));
  }
  EXPECT_EQ(names, expected);
  Rewind();
  ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
  EXPECT_EQ(names.size(), expected.size());
}

TEST_F(StepRunTest, AStepWithoutDeviceMemorySaysWhereAndHowMuch) {
  TrackingAllocator* const allocator = TrackingAllocator::Get();
  const auto executor = Make(schedule_, device_.get());
  Rewind();
  const Bytes before = allocator->current() - chain_.activation(0);
  const Bytes limit = before + executor->prediction().peak - Bytes(64);
  allocator->SetLimit(limit);
  const StepFailure failure = FailureOf(executor.get());
  allocator->ClearLimit();
  EXPECT_EQ(failure.fault, StepFault::kDeviceMemory);
  EXPECT_EQ(failure.instruction, executor->prediction().peak_instruction);
  EXPECT_EQ(failure.rounding, Bytes(0));
  EXPECT_EQ(failure.limit, limit);
  EXPECT_EQ(failure.allocated, failure.reserved);
  EXPECT_LE(failure.allocated, limit);
  EXPECT_GT(failure.allocated + failure.asked, limit);
  std::vector<TimelinePoint> planned;
  ASSERT_TRUE(Evaluator(Instance(chain_, *device_->link())).Run(schedule_, &planned).ok());
  ASSERT_GT(failure.instruction, 0U);
  EXPECT_LE(failure.live_after, before + planned[failure.instruction - 1].held);
}

// What an operation held when it failed is gone when the failure is looked at, as on a GPU; and before that
// it may have held more.
TEST(StepRun, ARefusalIsTheInstantNotWhatIsLeft) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const auto device = SimulatedDevice::Create(FastLink(/*full_duplex=*/true)).value();
  TrackingAllocator* const allocator = TrackingAllocator::Get();
  const auto bytes = [](int64_t size) { return at::empty({size}, at::kByte); };
  const auto fail_after = [&](int64_t earlier) {
    const auto run = [&](const Instruction&) {
      if (earlier > 0) bytes(earlier);
      const at::Tensor workspace = bytes(5 * kMiB + 7);
      bytes(16 * kMiB);
    };
    size_t next = 0;
    StepReport report;
    const auto describe = [](int) { return std::string(); };
    allocator->ResetPeak();
    const absl::Status status =
        RunInstructions({ForwardNoSave(1)}, 1, {device.get(), run, describe}, &next, &report);
    return GetStepFailure(status).value_or(StepFailure());
  };
  const Bytes before = allocator->current();
  allocator->SetLimit(before + Bytes(15 * kMiB));
  const StepFailure failure = fail_after(0);
  const StepFailure later = fail_after(9 * kMiB);
  allocator->ClearLimit();
  EXPECT_EQ(failure.fault, StepFault::kDeviceMemory);
  EXPECT_EQ(failure.asked, Bytes(16 * kMiB));
  EXPECT_EQ(failure.live_after, before);
  EXPECT_EQ(failure.allocated, before + Bytes(5 * kMiB + 7));
  EXPECT_EQ(failure.reserved, failure.allocated);
  // The peak says another instant.
  EXPECT_EQ(later.rounding, Bytes(0));
  EXPECT_EQ(later.allocated, failure.allocated);
}

TEST_F(StepRunTest, AStepWithoutHostMemorySaysSo) {
  const auto executor = Make(schedule_, device_.get());
  const HostPool::Block others = device_->host()->Allocate(
      static_cast<size_t>(
          (device_->link()->host_memory - executor->prediction().host_peak).value()) +
      1);
  const StepFailure failure = FailureOf(executor.get());
  EXPECT_EQ(failure.fault, StepFault::kHostMemory);
  EXPECT_EQ(schedule_[failure.instruction].op, Op::kOffloadStart);
}

TEST_F(StepRunTest, OtherFailuresNameTheirInstruction) {
  const auto executor = Make(schedule_, device_.get());
  device_->FailCopyAfter(0);
  const StepFailure failure = FailureOf(executor.get());
  EXPECT_EQ(failure.fault, StepFault::kOther);
  EXPECT_EQ(schedule_[failure.instruction].op, Op::kOffloadWait);
  EXPECT_FALSE(GetStepFailure(absl::InternalError("of something else")));
  EXPECT_FALSE(GetStepFailure(absl::OkStatus()));
}

}  // namespace
}  // namespace stowage

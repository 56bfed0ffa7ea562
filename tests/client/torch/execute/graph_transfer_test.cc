// Networks of any shape trained by schedules that move tensors to the host and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class GraphTransfers : public testing::Test, protected GraphTraining {
 protected:
  GraphTransfers(const std::string& name, const TrainingDevice& device)
      : GraphTraining(name, device), profile_(Profiled()), store_all_(StoreAllSchedule(graph())) {
    if (!device.missing.empty()) return;
    linked_ = MakeLinkedDevice(device, FastLink(/*full_duplex=*/true));
  }
  ~GraphTransfers() override { device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const Graph& graph() const { return std::get<Graph>(profile_.problem); }

  const Profile profile_;
  const Schedule store_all_;
  std::unique_ptr<ExecutionDevice> linked_;  // null where the device is missing
};

class GraphTransferTest : public GraphTransfers, public testing::WithParamInterface<NetworkCase> {
 protected:
  GraphTransferTest()
      : GraphTransfers(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}
};

TEST_P(GraphTransferTest, RandomSchedulesTrainAlike) {
  const GraphOutcome plain = Plain();
  std::mt19937 random(11);
  const int schedules = std::get<0>(GetParam()) != "mixed" ? 6 : device_.exact ? 60 : 12;
  int trips = 0;
  for (int i = 0; i < schedules; ++i) {
    const Schedule schedule = WithTrips(graph(), *linked_->link(), store_all_, 2 + i % 12, &random);
    SCOPED_TRACE(Text(schedule));
    trips += ExpectLikePlain(graph(), schedule, plain, linked_.get()).count(Op::kOffloadStart);
    EXPECT_EQ(linked_->host()->held(), Bytes(0));
    if (HasFailure()) return;
  }
  EXPECT_GT(trips, 3 * schedules);
}

TEST_P(GraphTransferTest, PlansThatRecomputeAndMoveTrainAlike) {
  const Graph fixed = WithFixedCosts(graph());
  const GraphOutcome plain = Plain();
  int moving = 0;
  for (const double share : {0.85, 0.6}) {
    SCOPED_TRACE(share);
    // The first schedule that moves will do.
    StopToken stop(std::chrono::steady_clock::now() + std::chrono::seconds(60));
    Schedule found;
    PlanOptions options;
    options.solver = "joint";
    options.solve.incumbent = [&](const Schedule& fits) {
      found = fits;
      for (const Instruction& instruction : fits) {
        if (instruction.op == Op::kOffloadStart) return stop.RequestStop();
      }
    };
    const Instance instance(fixed, *linked_->link());
    options.solve.stop = &stop;
    const Bytes budget = ResolveBudget(instance, ShareOfStoreAll{share}, options).value();
    const auto plan = MakePlan(instance, budget, options);
    ASSERT_TRUE(plan.ok() || !found.empty()) << plan.status();
    if (plan.ok()) found = plan->schedule;
    if (found.empty()) continue;  // nothing fits
    SCOPED_TRACE(Text(found));
    const StepReport report = ExpectLikePlain(graph(), found, plain, linked_.get());
    moving += report.count(Op::kOffloadStart) > 0 ? 1 : 0;
  }
  EXPECT_GT(moving, 0);
}

INSTANTIATE_TEST_SUITE_P(Graphs, GraphTransferTest,
                         testing::Combine(testing::Values("mixed", "decoder", "resnet18"),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, GraphTransferTest,
                         testing::Combine(testing::Values("mixed", "decoder"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

class GraphTransferFailures : public GraphTransfers {
 protected:
  explicit GraphTransferFailures(const TrainingDevice& device) : GraphTransfers("mixed", device) {
    if (linked_ == nullptr) return;
    std::mt19937 random(5);
    schedule_ = WithTrips(graph(), *linked_->link(), store_all_, 10, &random);
  }

  std::unique_ptr<Executor> Make(const Schedule& schedule) {
    auto executor = Executor::Create(&graph_.model, graph(), schedule, linked_.get());
    EXPECT_TRUE(executor.ok()) << executor.status();
    return std::move(executor).value();
  }

  void ExpectUntouched(const absl::Status& status, absl::StatusCode code, const std::string& why) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_TRUE(BufferState::Capture(graph_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture(device_.device) == random_);
    EXPECT_EQ(linked_->host()->held(), Bytes(0));
  }

  // Null on other devices than the CPU.
  SimulatedDevice* simulated() { return dynamic_cast<SimulatedDevice*>(linked_.get()); }

  Schedule schedule_;
};

// Of the CPU alone: copies of its link fail where the test has it.
class SimulatedGraphTransferTest : public GraphTransferFailures {
 protected:
  SimulatedGraphTransferTest() : GraphTransferFailures(TrainingDeviceNamed("cpu")) {}
};

TEST_F(SimulatedGraphTransferTest, AfterAnyCopyThatFailsTheNextStepIsRight) {
  const GraphOutcome plain = Plain();
  const auto executor = Make(schedule_);
  for (int copy = 0; copy < 12; ++copy) {
    Rewind();
    simulated()->FailCopyAfter(copy);
    ExpectUntouched(executor->Step(Inputs(), graph_.target).status(), absl::StatusCode::kInternal,
                    "the simulated copy failed");
  }
  ExpectLikePlain(graph(), schedule_, plain, linked_.get());
}

class GraphTransferFailureTest : public GraphTransferFailures,
                                 public testing::WithParamInterface<std::string> {
 protected:
  GraphTransferFailureTest() : GraphTransferFailures(TrainingDeviceNamed(GetParam())) {}
};

TEST_P(GraphTransferFailureTest, InputsThatTheCallerHoldsComeBack) {
  // Both inputs are away when the step ends or fails.
  Schedule schedule = store_all_;
  for (const auto& [v, index] : graph_.model.inputs()) {
    schedule.push_back(OffloadStart(TensorKind::kActivation, v + 1));
    schedule.push_back(OffloadWait(TensorKind::kActivation, v + 1));
  }
  const auto discarded = [&](const Instruction& i) {
    return i.op == Op::kDiscard && graph_.model.is_input(i.stage - 1);
  };
  schedule.erase(std::remove_if(schedule.begin(), schedule.end(), discarded), schedule.end());
  const auto executor = Make(schedule);
  const std::vector<at::Tensor> inputs = Inputs();
  for (const int failing : {-1, 0, 1}) {
    if (failing >= 0 && simulated() == nullptr) continue;
    Rewind();
    if (failing >= 0) simulated()->FailCopyAfter(failing);
    const Bytes live = device_.live();
    EXPECT_EQ(executor->Step(inputs, graph_.target).ok(), failing < 0);
    EXPECT_EQ(device_.live(), live);
    EXPECT_EQ(linked_->host()->held(), Bytes(0));
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(inputs[i].equal(graph_.inputs[i]));
    }
  }
}

TEST_P(GraphTransferFailureTest, OutOfMemoryAnywhereLeavesACleanState) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const GraphOutcome plain = Plain();
  const auto executor = Make(schedule_);
  const int64_t peak = executor->prediction().peak.value();
  int failures = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 25) {
    Rewind();
    std::vector<at::Tensor> inputs = Inputs();
    device_.LimitMemory(Bytes(extra));
    const absl::Status status = executor->Step(std::move(inputs), graph_.target).status();
    device_.ClearLimit();
    if (status.ok()) continue;
    ++failures;
    ExpectUntouched(status, absl::StatusCode::kResourceExhausted, "out of memory");
  }
  EXPECT_GT(failures, 12);
  ExpectLikePlain(graph(), schedule_, plain, linked_.get());
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphTransferFailureTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

TEST_F(SimulatedGraphTransferTest, WithoutALinkTransfersAreRefused) {
  const absl::Status status = Executor::Create(&graph_.model, graph(), schedule_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the device has no link"));
}

}  // namespace
}  // namespace stowage

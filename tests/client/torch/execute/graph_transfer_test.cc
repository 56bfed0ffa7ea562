// Networks of any shape trained by schedules that move tensors to the host and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class GraphTransferTest : public testing::TestWithParam<std::string>, protected GraphTraining {
 protected:
  explicit GraphTransferTest(const std::string& name = GetParam())
      : GraphTraining(name), profile_(Profiled()), store_all_(StoreAllSchedule(graph())) {
    device_ = SimulatedDevice::Create(FastLink(/*full_duplex=*/true)).value();
  }
  ~GraphTransferTest() override { TrackingAllocator::Get()->ClearLimit(); }

  const Graph& graph() const { return std::get<Graph>(profile_.problem); }

  const Profile profile_;
  const Schedule store_all_;
  std::unique_ptr<SimulatedDevice> device_;
};

TEST_P(GraphTransferTest, RandomSchedulesTrainAlike) {
  const GraphOutcome plain = Plain();
  std::mt19937 random(11);
  const int schedules = GetParam() == "mixed" ? 60 : 6;
  int trips = 0;
  for (int i = 0; i < schedules; ++i) {
    const Schedule schedule = WithTrips(graph(), *device_->link(), store_all_, 2 + i % 12, &random);
    SCOPED_TRACE(Text(schedule));
    trips += ExpectLikePlain(graph(), schedule, plain, device_.get()).count(Op::kOffloadStart);
    EXPECT_EQ(device_->host()->held(), Bytes(0));
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
    const StopToken stop(std::chrono::steady_clock::now() + std::chrono::seconds(20));
    PlanOptions options;
    options.solver = "joint";
    const Instance instance(fixed, *device_->link());
    options.solve.stop = &stop;
    const Bytes budget = ResolveBudget(instance, ShareOfStoreAll{share}, options).value();
    const auto plan = MakePlan(instance, budget, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->status != PlanStatus::kFound) continue;
    SCOPED_TRACE(Text(plan->schedule));
    const StepReport report = ExpectLikePlain(graph(), plan->schedule, plain, device_.get());
    moving += report.count(Op::kOffloadStart) > 0 ? 1 : 0;
  }
  EXPECT_GT(moving, 0);
}

INSTANTIATE_TEST_SUITE_P(Graphs, GraphTransferTest, testing::Values("mixed", "decoder", "resnet18"),
                         [](const auto& graph) { return graph.param; });

class GraphTransferFailureTest : public GraphTransferTest {
 protected:
  GraphTransferFailureTest() : GraphTransferTest("mixed") {
    std::mt19937 random(5);
    schedule_ = WithTrips(graph(), *device_->link(), store_all_, 10, &random);
  }

  void ExpectUntouched(const absl::Status& status, absl::StatusCode code, const std::string& why) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_TRUE(BufferState::Capture(graph_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture() == random_);
    EXPECT_EQ(device_->host()->held(), Bytes(0));
  }

  Schedule schedule_;
};

TEST_F(GraphTransferFailureTest, AfterAnyCopyThatFailsTheNextStepIsRight) {
  const GraphOutcome plain = Plain();
  auto executor = Executor::Create(&graph_.model, graph(), schedule_, device_.get()).value();
  for (int copy = 0; copy < 12; ++copy) {
    Rewind();
    device_->FailCopyAfter(copy);
    ExpectUntouched(executor->Step(Inputs(), graph_.target).status(), absl::StatusCode::kInternal,
                    "the simulated copy failed");
  }
  ExpectLikePlain(graph(), schedule_, plain, device_.get());
}

TEST_F(GraphTransferFailureTest, InputsThatTheCallerHoldsComeBack) {
  const GraphOutcome plain = Plain();
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
  auto executor = Executor::Create(&graph_.model, graph(), schedule, device_.get());
  ASSERT_TRUE(executor.ok()) << executor.status();
  const std::vector<at::Tensor> inputs = Inputs();
  for (const int failing : {-1, 0, 1}) {
    Rewind();
    device_->FailCopyAfter(failing);
    const Bytes live = TrackingAllocator::Get()->current();
    EXPECT_EQ((*executor)->Step(inputs, graph_.target).ok(), failing < 0);
    EXPECT_EQ(TrackingAllocator::Get()->current(), live);
    EXPECT_EQ(device_->host()->held(), Bytes(0));
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(inputs[i].equal(graph_.inputs[i]));
    }
  }
}

TEST_F(GraphTransferFailureTest, OutOfMemoryAnywhereLeavesACleanState) {
  const GraphOutcome plain = Plain();
  auto executor = Executor::Create(&graph_.model, graph(), schedule_, device_.get()).value();
  TrackingAllocator* const allocator = TrackingAllocator::Get();
  const int64_t peak = executor->prediction().peak.value();
  int failures = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 25) {
    Rewind();
    std::vector<at::Tensor> inputs = Inputs();
    allocator->SetLimit(allocator->current() + Bytes(extra));
    const absl::Status status = executor->Step(std::move(inputs), graph_.target).status();
    allocator->ClearLimit();
    if (status.ok()) continue;
    ++failures;
    ExpectUntouched(status, absl::StatusCode::kResourceExhausted, "out of memory");
  }
  EXPECT_GT(failures, 12);
  ExpectLikePlain(graph(), schedule_, plain, device_.get());
}

TEST_F(GraphTransferFailureTest, WithoutALinkTransfersAreRefused) {
  const absl::Status status = Executor::Create(&graph_.model, graph(), schedule_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the device has no link"));
}

}  // namespace
}  // namespace stowage

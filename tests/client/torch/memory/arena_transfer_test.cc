// Chains and graphs whose steps are served from a region at planned offsets while copies to the host
// and back read and write its blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/memory/step_arena.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/execute/chain_training.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

// So slow that copies are on their way while others of the region's blocks come and go.
std::unique_ptr<SimulatedDevice> Device(bool full_duplex) {
  const CopyCost cost{int64_t{2} << 30, Nanos(60000)};
  return SimulatedDevice::Create({cost, cost, full_duplex, Bytes(int64_t{1} << 30)}).value();
}

// A step that was right, and what was reserved when it began.
struct Stepped {
  StepReport report;
  Bytes reserved;
};

using StepIn = std::function<Stepped(StepArena*)>;

std::unique_ptr<StepArena> Recorded(const StepIn& step) {
  std::unique_ptr<StepArena> arena = StepArena::Create({}).value();
  step(arena.get());
  EXPECT_TRUE(arena->Prepare().ok());
  return arena;
}

// The step is served from the region alone, so often. What outlives it is the caller's and was there
// before: nothing is reserved beyond that and the region.
void ExpectServed(const StepIn& step, int times, StepArena* arena) {
  const Bytes extent = arena->report().extent;
  for (int i = 0; i < times; ++i) {
    const Stepped served = step(arena);
    const ArenaReport report = arena->report();
    EXPECT_EQ(report.counts.departed, 0);
    EXPECT_GT(report.counts.served, report.counts.outside);
    EXPECT_EQ(report.extent, extent);
    EXPECT_EQ(served.report.peak_reserved, served.reserved);
  }
}

// Recorded with the same peak as served; of a network whose blocks are known, close to what is used.
void ExpectRecordedAndServed(const StepIn& step, const std::string& network) {
  const Bytes peak = step(nullptr).report.peak;
  const std::unique_ptr<StepArena> arena = Recorded(step);
  const ArenaReport planned = arena->report();
  if (AllocatesAlikeEverywhere(network)) {
    EXPECT_LE(static_cast<double>(planned.extent.value()),
              1.03 * static_cast<double>(planned.live_peak.value()));
  }
  EXPECT_GE(planned.extent, planned.live_peak);
  ExpectServed(step, 3, arena.get());
  EXPECT_EQ(step(arena.get()).report.peak, peak);
}

// After every copy that fails the region is free again, and the next step is served and right.
void ExpectFreeAfterFailures(const StepIn& step, const std::function<absl::Status()>& failing,
                             const Schedule& schedule, SimulatedDevice* device, StepArena* arena) {
  int copies = 0;
  for (const Instruction& i : schedule) {
    copies += i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart ? 1 : 0;
  }
  ASSERT_GT(copies, 6);
  for (int copy = 0; copy < copies; ++copy) {
    device->FailCopyAfter(copy);
    const Bytes live = TrackingAllocator::Get()->current();
    const absl::Status status = failing();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_EQ(TrackingAllocator::Get()->current(), live);
    ExpectServed(step, 1, arena);
  }
}

class ArenaChainTest : public testing::TestWithParam<std::string>, protected ChainTraining {
 protected:
  ArenaChainTest() : ChainTraining(GetParam()), chain_(Profiled()), plain_(Plain()) {}

  Schedule RandomSchedule(int trips, std::mt19937* random) const {
    const Schedule schedule =
        Disturb(chain_, RandomPersistentSchedule(chain_, random), trips % 4, random);
    return WithTrips(chain_, *device_->link(), schedule, trips, random);
  }

  // The caller holds on to the input, which may be away for a while.
  StepIn StepsBy(const Schedule& schedule) {
    std::shared_ptr<Executor> executor =
        Executor::Create(&network_.model, chain_, schedule, device_.get()).value();
    return [this, executor](StepArena* arena) -> Stepped {
      Rewind();
      const at::Tensor input = network_.input.clone();
      const Bytes reserved = TrackingAllocator::Get()->reserved();
      absl::StatusOr<StepReport> report = [&] {
        const ArenaScope scope(arena);
        return executor->Step(input, network_.target);
      }();
      EXPECT_TRUE(report.ok()) << report.status();
      if (!report.ok()) return {};
      EXPECT_TRUE(input.equal(network_.input));
      ExpectEqual(plain_, After(*report));
      EXPECT_EQ(report->peak, executor->prediction().peak);
      EXPECT_EQ(report->offloaded, executor->prediction().offloaded);
      EXPECT_EQ(report->prefetched, executor->prediction().prefetched);
      return {*report, reserved};
    };
  }

  std::unique_ptr<SimulatedDevice> device_ = Device(/*full_duplex=*/false);
  const Chain chain_;
  const Outcome plain_;
};

TEST_P(ArenaChainTest, StepsWithCopiesAreServedFromTheRegion) {
  std::mt19937 random(21);
  for (int i = 0; i < (GetParam() == "resnet18" ? 3 : 10); ++i) {
    device_ = Device(/*full_duplex=*/i % 2 == 1);
    const Schedule schedule = RandomSchedule(2 + i % 8, &random);
    SCOPED_TRACE(Text(schedule));
    ExpectRecordedAndServed(StepsBy(schedule), GetParam());
    if (HasFailure()) return;
  }
}

TEST_P(ArenaChainTest, OtherCopiesInTheRegionOnlyDepart) {
  std::mt19937 random(22);
  const std::unique_ptr<StepArena> arena = Recorded(StepsBy(StoreAllSchedule(chain_)));
  for (int i = 0; i < 4; ++i) {
    const Schedule schedule = RandomSchedule(6, &random);
    SCOPED_TRACE(Text(schedule));
    StepsBy(schedule)(arena.get());
    EXPECT_GT(arena->report().counts.served, 0);
  }
  ExpectServed(StepsBy(StoreAllSchedule(chain_)), 1, arena.get());
}

TEST_P(ArenaChainTest, AfterACopyThatFailsTheRegionIsFree) {
  if (GetParam() != "norm_cnn" && GetParam() != "mlp") GTEST_SKIP() << "as the others";
  std::mt19937 random(23);
  const Schedule schedule = RandomSchedule(7, &random);
  const StepIn step = StepsBy(schedule);
  const std::unique_ptr<StepArena> arena = Recorded(step);
  const auto executor = Executor::Create(&network_.model, chain_, schedule, device_.get()).value();
  const auto failing = [&] {
    Rewind();
    const at::Tensor input = network_.input.clone();
    const ArenaScope scope(arena.get());
    return executor->Step(input, network_.target).status();
  };
  ExpectFreeAfterFailures(step, failing, schedule, device_.get(), arena.get());
}

INSTANTIATE_TEST_SUITE_P(Networks, ArenaChainTest, testing::ValuesIn(TestNetworkNames()),
                         [](const auto& network) { return network.param; });

class ArenaGraphTest : public testing::TestWithParam<std::string>, protected GraphTraining {
 protected:
  ArenaGraphTest()
      : GraphTraining(GetParam()),
        graph_profile_(std::get<Graph>(Profiled().problem)),
        plain_(Plain()) {}

  Schedule RandomSchedule(int trips, std::mt19937* random) const {
    return WithTrips(graph_profile_, *device_->link(), StoreAllSchedule(graph_profile_), trips,
                     random);
  }

  // The caller holds on to the inputs, or gives them away.
  StepIn StepsBy(const Schedule& schedule, bool holds) {
    std::shared_ptr<Executor> executor =
        Executor::Create(&graph_.model, graph_profile_, schedule, device_.get()).value();
    return [this, executor, holds](StepArena* arena) -> Stepped {
      Rewind();
      std::vector<at::Tensor> inputs = Inputs();
      const std::vector<at::Tensor> held = holds ? inputs : std::vector<at::Tensor>();
      const Bytes reserved = TrackingAllocator::Get()->reserved();
      absl::StatusOr<StepReport> report = [&] {
        const ArenaScope scope(arena);
        return executor->Step(std::move(inputs), graph_.target);
      }();
      EXPECT_TRUE(report.ok()) << report.status();
      if (!report.ok()) return {};
      for (size_t i = 0; i < held.size(); ++i) EXPECT_TRUE(held[i].equal(graph_.inputs[i]));
      const GraphOutcome planned = After(report->loss);
      EXPECT_EQ(planned.loss, plain_.loss);
      EXPECT_EQ(planned.gradients, plain_.gradients);
      EXPECT_EQ(planned.buffers, plain_.buffers);
      EXPECT_TRUE(planned.random == plain_.random);
      EXPECT_EQ(report->offloaded, executor->prediction().offloaded);
      return {*report, reserved};
    };
  }

  std::unique_ptr<SimulatedDevice> device_ = Device(/*full_duplex=*/false);
  const Graph graph_profile_;
  const GraphOutcome plain_;
};

TEST_P(ArenaGraphTest, StepsWithCopiesAreServedFromTheRegion) {
  std::mt19937 random(31);
  for (int i = 0; i < (GetParam() == "mixed" ? 16 : 4); ++i) {
    device_ = Device(/*full_duplex=*/i % 2 == 1);
    const Schedule schedule = RandomSchedule(i % 9, &random);
    SCOPED_TRACE(Text(schedule));
    ExpectRecordedAndServed(StepsBy(schedule, /*holds=*/i % 4 < 2), GetParam());
    if (HasFailure()) return;
  }
}

TEST_P(ArenaGraphTest, OtherCopiesInTheRegionOnlyDepart) {
  std::mt19937 random(32);
  const std::unique_ptr<StepArena> arena = Recorded(StepsBy(RandomSchedule(5, &random), false));
  for (int i = 0; i < 4; ++i) {
    const Schedule schedule = RandomSchedule(8, &random);
    SCOPED_TRACE(Text(schedule));
    StepsBy(schedule, /*holds=*/i % 2 == 0)(arena.get());
    EXPECT_GT(arena->report().counts.served, 0);
  }
}

TEST_P(ArenaGraphTest, AfterACopyThatFailsTheRegionIsFree) {
  if (GetParam() != "mixed") GTEST_SKIP() << "as the others";
  std::mt19937 random(33);
  const Schedule schedule = RandomSchedule(8, &random);
  const StepIn step = StepsBy(schedule, /*holds=*/true);
  const std::unique_ptr<StepArena> arena = Recorded(step);
  const auto executor =
      Executor::Create(&graph_.model, graph_profile_, schedule, device_.get()).value();
  const auto failing = [&] {
    Rewind();
    const std::vector<at::Tensor> inputs = Inputs();
    const ArenaScope scope(arena.get());
    return executor->Step(inputs, graph_.target).status();
  };
  ExpectFreeAfterFailures(step, failing, schedule, device_.get(), arena.get());
}

INSTANTIATE_TEST_SUITE_P(Graphs, ArenaGraphTest, testing::Values("mixed", "decoder", "resnet18"),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace stowage

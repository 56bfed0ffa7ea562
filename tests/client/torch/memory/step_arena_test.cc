// Training served from a region at planned offsets, against plain training.
#include "client/torch/memory/step_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<StepArena> NewArena() { return StepArena::Create({}).value(); }

at::Tensor Block(int64_t bytes) { return torch::empty({bytes}, torch::kByte); }

// Blocks of 1000 and 900 bytes one after the other beside 3000, and one that outlives the step.
at::Tensor SmallStep() {
  at::Tensor a = Block(1000);
  const at::Tensor b = Block(3000);
  a.reset();
  const at::Tensor c = Block(900);
  return Block(128);
}

class StepArenaTest : public testing::Test {
 protected:
  StepArenaTest() : meter_(TrackingAllocator::Get()), live_(meter_->current()) {}
  ~StepArenaTest() override {
    meter_->ClearLimit();
    EXPECT_EQ(meter_->current(), live_);
    EXPECT_EQ(meter_->reserved(), live_);
  }

  // The arena after a small step that it recorded and planned.
  static std::unique_ptr<StepArena> Prepared() {
    std::unique_ptr<StepArena> arena = NewArena();
    {
      const ArenaScope scope(arena.get());
      SmallStep();
    }
    EXPECT_TRUE(arena->Prepare().ok());
    return arena;
  }

  TrackingAllocator* meter_;
  Bytes live_;
};

TEST_F(StepArenaTest, ServesARepeatedStepFromOneRegion) {
  const std::unique_ptr<StepArena> arena = Prepared();
  // Rounded up to 64 bytes; where 1000 bytes were, there is room for 900 and for most of 128.
  EXPECT_EQ(arena->report().extent, Bytes(3008 + 960 + 128));
  EXPECT_EQ(arena->report().fragmentation, Bytes(0));
  EXPECT_EQ(meter_->reserved(), live_ + arena->report().extent);
  for (int step = 0; step < 3; ++step) {
    meter_->ResetPeak();
    const ArenaScope scope(arena.get());
    SmallStep();
    EXPECT_EQ(arena->report().counts.served, 4);
    EXPECT_EQ(arena->report().counts.departed, 0);
    EXPECT_EQ(meter_->peak(), live_ + Bytes(3000 + 900 + 128));
    EXPECT_EQ(meter_->peak_reserved(), live_ + arena->report().extent);
  }
}

TEST_F(StepArenaTest, BlocksAreApartAlignedAndWritable) {
  const std::unique_ptr<StepArena> arena = Prepared();
  const ArenaScope scope(arena.get());
  const at::Tensor a = Block(1000).fill_(1);
  const at::Tensor b = Block(3000).fill_(2);
  // Planned where `a` still is: an ordinary block.
  const at::Tensor c = Block(900).fill_(3);
  for (const at::Tensor& t : {a, b, c}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data_ptr()) % 64, 0U);
  }
  EXPECT_EQ(a.sum().item<int64_t>(), 1000);
  EXPECT_EQ(b.sum().item<int64_t>(), 6000);
  EXPECT_EQ(c.sum().item<int64_t>(), 2700);
}

TEST_F(StepArenaTest, WhatOutlivesTheStepIsOutsideAndWhatDepartsIsCounted) {
  const std::unique_ptr<StepArena> arena = NewArena();
  at::Tensor kept;
  {
    const ArenaScope scope(arena.get());
    kept = SmallStep();
  }
  ASSERT_TRUE(arena->Prepare().ok());
  {
    const ArenaScope scope(arena.get());
    kept = SmallStep();
  }
  EXPECT_EQ(arena->report().counts.outside, 1);
  EXPECT_EQ(arena->report().counts.served, 3);
  {
    const ArenaScope scope(arena.get());
    const at::Tensor other = Block(5000);  // not planned
    const at::Tensor b = Block(3000);      // planned after one that is left out
    EXPECT_EQ(arena->report().counts.departed, 1);
    EXPECT_EQ(arena->report().counts.served, 1);
    EXPECT_EQ(meter_->reserved(), live_ + arena->report().extent + Bytes(5000 + 128));
  }
}

TEST_F(StepArenaTest, ABlockMayOutliveTheArena) {
  std::unique_ptr<StepArena> arena = Prepared();
  at::Tensor a;
  {
    const ArenaScope scope(arena.get());
    a = Block(1000).fill_(7);
  }
  const Bytes extent = arena->report().extent;
  arena.reset();
  EXPECT_EQ(meter_->reserved(), live_ + extent);
  EXPECT_EQ(a.sum().item<int64_t>(), 7000);
  a.reset();
  EXPECT_EQ(meter_->reserved(), live_);
}

TEST_F(StepArenaTest, OtherThreadsAreNotServedButMayFree) {
  const std::unique_ptr<StepArena> arena = Prepared();
  const ArenaScope scope(arena.get());
  at::Tensor a = Block(1000);
  std::thread([&a] {
    const at::Tensor other = Block(3000);
    a.reset();
  }).join();
  EXPECT_EQ(arena->report().counts.served, 1);
  const at::Tensor b = Block(3000);
  const at::Tensor c = Block(900);  // where `a` was
  EXPECT_EQ(arena->report().counts.served, 3);
}

TEST_F(StepArenaTest, ManyThreadsAllocateBesideAStep) {
  const std::unique_ptr<StepArena> arena = Prepared();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (int64_t i = 1; i < 2000; ++i) Block(i % 97 + 1);
    });
  }
  for (int step = 0; step < 200; ++step) {
    const ArenaScope scope(arena.get());
    SmallStep();
    EXPECT_EQ(arena->report().counts.served, 4);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(StepArenaTest, ForgettingRecordsAnew) {
  const std::unique_ptr<StepArena> arena = Prepared();
  arena->Forget();
  EXPECT_EQ(meter_->reserved(), live_);
  EXPECT_EQ(arena->report().extent, Bytes(0));
  {
    const ArenaScope scope(arena.get());
    Block(64);
  }
  ASSERT_TRUE(arena->Prepare().ok());
  EXPECT_EQ(arena->report().extent, Bytes(64));
}

TEST_F(StepArenaTest, TheLimitIsForWhatIsReserved) {
  const std::unique_ptr<StepArena> arena = Prepared();
  const Bytes extent = arena->report().extent;
  meter_->SetLimit(live_ + extent);
  {
    const ArenaScope scope(arena.get());
    SmallStep();  // within the region
    EXPECT_THROW(Block(5000), c10::OutOfMemoryError);
  }
  arena->Forget();
  meter_->SetLimit(live_ + extent - Bytes(1));
  const absl::Status status = arena->Prepare();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  meter_->SetLimit(live_ + extent);
  EXPECT_TRUE(arena->Prepare().ok());
}

TEST_F(StepArenaTest, RefusesWhatCannotBe) {
  const auto message = [](const absl::Status& status) { return std::string(status.message()); };
  StepArenaOptions options;
  options.alignment = Bytes(96);
  EXPECT_THAT(message(StepArena::Create(options).status()), HasSubstr("alignment: 96"));
  options = {};
  options.effort = -2;
  EXPECT_THAT(message(StepArena::Create(options).status()), HasSubstr("effort: -2"));
  const std::unique_ptr<StepArena> arena = NewArena();
  EXPECT_THAT(message(arena->Prepare()), HasSubstr("no step was recorded"));
  const ArenaScope scope(arena.get());
  EXPECT_THAT(message(arena->Prepare()), HasSubstr("a step is running"));
}

class ArenaTrainingTest : public testing::TestWithParam<std::string> {
 protected:
  ArenaTrainingTest()
      : network_(MakeTestNetwork(GetParam())),
        buffers_(BufferState::Capture(network_.model.buffers())),
        random_state_(RandomState::Capture()) {
    ProfileOptions options;
    options.bytes_only = true;
    chain_ = std::get<Chain>(
        ProfileChain(network_.model, network_.input, network_.target, options).value().problem);
  }

  void Rewind() {
    buffers_.Restore();
    random_state_.Restore();
    network_.model.ZeroGradients();
  }

  StepReport Plain() {
    Rewind();
    return PlainStep(network_.model, network_.input, network_.target).value();
  }

  std::string Digests() const {
    return GradientDigest(network_.model).ToHex() + BufferDigest(network_.model).ToHex();
  }

  // A step of the schedule in the arena, from where Plain started.
  StepReport Planned(Executor* executor, StepArena* arena) {
    Rewind();
    const ArenaScope scope(arena);
    return executor->Step(network_.input, network_.target).value();
  }

  std::unique_ptr<Executor> ExecutorOf(const Schedule& schedule) {
    return Executor::Create(&network_.model, *chain_, schedule).value();
  }

  TestNetwork network_;
  BufferState buffers_;
  RandomState random_state_;
  std::optional<Chain> chain_;
};

TEST_P(ArenaTrainingTest, EqualsPlainTrainingAndStaysInItsRegion) {
  const double loss = Plain().loss;
  const std::string plain = Digests();
  const RandomState random_after = RandomState::Capture();
  TrackingAllocator* const meter = TrackingAllocator::Get();
  const Bytes live = meter->current();
  std::mt19937 random(3);
  for (int i = 0; i < (GetParam() == "resnet18" ? 3 : 12); ++i) {
    const Schedule schedule =
        i == 0 ? StoreAllSchedule(*chain_)
               : Disturb(*chain_, RandomPersistentSchedule(*chain_, &random), i % 4, &random);
    const std::unique_ptr<Executor> executor = ExecutorOf(schedule);
    const std::unique_ptr<StepArena> arena = NewArena();
    const StepReport recorded = Planned(executor.get(), arena.get());
    EXPECT_EQ(recorded.peak_reserved,
              live + TiedSums(network_.model) - chain_->activation(0) + recorded.peak);
    ASSERT_TRUE(arena->Prepare().ok());
    const ArenaReport planned = arena->report();
    EXPECT_EQ(planned.fragmentation, planned.extent - planned.live_peak);
    EXPECT_GE(planned.extent, planned.live_peak);
    if (AllocatesAlikeEverywhere(GetParam())) {
      EXPECT_LE(static_cast<double>(planned.extent.value()),
                1.03 * static_cast<double>(planned.live_peak.value()));
    }
    for (int step = 0; step < 3; ++step) {
      const StepReport report = Planned(executor.get(), arena.get());
      EXPECT_EQ(report.loss, loss);
      EXPECT_EQ(Digests(), plain);
      EXPECT_TRUE(RandomState::Capture() == random_after);
      EXPECT_EQ(report.peak, recorded.peak);
      EXPECT_EQ(arena->report().extent, planned.extent);
      EXPECT_EQ(arena->report().counts.departed, 0);
      EXPECT_GT(arena->report().counts.served, chain_->length());
      // Nothing outlives the step; beside the region there is what was live before, the input among it.
      EXPECT_EQ(arena->report().counts.outside, 0);
      EXPECT_EQ(report.peak_reserved, live + planned.extent);
      EXPECT_EQ(meter->current(), live);
    }
  }
  EXPECT_EQ(meter->reserved(), live);
}

TEST_P(ArenaTrainingTest, AnotherScheduleInTheRegionOnlyDeparts) {
  Plain();
  const std::string plain = Digests();
  const std::unique_ptr<StepArena> arena = NewArena();
  Planned(ExecutorOf(StoreAllSchedule(*chain_)).get(), arena.get());
  ASSERT_TRUE(arena->Prepare().ok());
  std::mt19937 random(4);
  for (int i = 0; i < 4; ++i) {
    const Schedule schedule =
        Disturb(*chain_, RandomPersistentSchedule(*chain_, &random), 3, &random);
    Planned(ExecutorOf(schedule).get(), arena.get());
    EXPECT_EQ(Digests(), plain);
    EXPECT_GT(arena->report().counts.served, 0);
  }
}

TEST_P(ArenaTrainingTest, AStepThatRunsOutOfMemoryLeavesTheRegionFree) {
  Plain();
  const std::string plain = Digests();
  TrackingAllocator* const meter = TrackingAllocator::Get();
  const Bytes live = meter->current();
  const std::unique_ptr<Executor> stored = ExecutorOf(StoreAllSchedule(*chain_));
  const std::unique_ptr<StepArena> arena = NewArena();
  Planned(stored.get(), arena.get());
  ASSERT_TRUE(arena->Prepare().ok());
  // No room for anything that departs.
  meter->SetLimit(live + arena->report().extent);
  std::mt19937 random(5);
  int failures = 0;
  for (int i = 0; i < 4; ++i) {
    const std::unique_ptr<Executor> other =
        ExecutorOf(Disturb(*chain_, RandomPersistentSchedule(*chain_, &random), 3, &random));
    Rewind();
    {
      const ArenaScope scope(arena.get());
      const absl::Status status = other->Step(network_.input, network_.target).status();
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(status.ok(), arena->report().counts.departed == 0);
      failures += status.ok() ? 0 : 1;
    }
    EXPECT_EQ(meter->current(), live);
    Planned(stored.get(), arena.get());
    EXPECT_EQ(Digests(), plain);
    EXPECT_EQ(arena->report().counts.departed, 0);
  }
  meter->ClearLimit();
  EXPECT_TRUE(failures > 0 || GetParam() != "resnet18");
}

INSTANTIATE_TEST_SUITE_P(Networks, ArenaTrainingTest, testing::ValuesIn(TestNetworkNames()),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace stowage

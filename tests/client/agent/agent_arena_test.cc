// Agents whose steps are served from one reserved region.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/agent/agent.h"
#include "client/agent/step_arenas.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/state_digest.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"
#include "tests/support/units.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class AgentArenaTest : public ::testing::Test {
 protected:
  AgentArenaTest() {
    options_.profile.repeats = 1;
    options_.drift.replans = 0;
    options_.device_limit = DeviceLimit{Bytes(64 * kMiB)};
    options_.arena = ArenaOptions();
    options_.on_event = [this](const AgentEvent& event) {
      if (const auto* const arena = std::get_if<ArenaEvent>(&event)) events_.push_back(*arena);
    };
  }

  static Bytes Reserved() { return TrackingAllocator::Get()->reserved(); }

  void Train(Agent* agent, int steps, int64_t samples = 3) {
    for (int i = 0; i < steps; ++i) {
      const auto report =
          agent->Step(network_.input.narrow(0, 0, samples), network_.target.narrow(0, 0, samples));
      ASSERT_TRUE(report.ok()) << report.status();
      losses_.push_back(report->loss);
    }
  }

  std::string State() const {
    std::string state =
        GradientDigest(network_.model).ToHex() + BufferDigest(network_.model).ToHex();
    for (const double loss : losses_) state += " " + std::to_string(loss);
    return state;
  }

  // What an agent finds, with made-up times: plans and their placement are the same each time.
  Profile ProfileWithTimes(const Batch& batch) {
    Agent agent(&network_.model, options_);
    EXPECT_TRUE(agent.Plan(batch, ShareOfStoreAll{0.8}).ok());
    Profile profile = *agent.profile();
    profile.problem = ChainWithTimes(network_.model, network_.input, network_.target);
    return profile;
  }

  // What so many steps leave behind from the start, with these options.
  std::string StateAfter(const AgentOptions& options, int steps) {
    network_ = MakeTestNetwork("norm_mlp");
    losses_.clear();
    Agent agent(&network_.model, options);
    EXPECT_TRUE(agent.Plan({{network_.input}, network_.target}, ShareOfStoreAll{0.8}).ok());
    network_.model.ZeroGradients();
    Train(&agent, steps);
    return State();
  }

  TestNetwork network_ = MakeTestNetwork("norm_mlp");
  AgentOptions options_;
  std::vector<ArenaEvent> events_;
  std::vector<double> losses_;
};

TEST_F(AgentArenaTest, ServedStepsTrainAlikeWithinWhatIsReserved) {
  Agent agent(&network_.model, options_);
  Train(&agent, 1);
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_TRUE(events_[0].used);
  EXPECT_GE(events_[0].extent, events_[0].live_peak);
  EXPECT_EQ(events_[0].fragmentation, events_[0].extent - events_[0].live_peak);
  EXPECT_FALSE(agent.memory().served);
  const Bytes peak = agent.memory().peak;
  const Bytes before = Reserved() - events_[0].extent;
  Train(&agent, 3);
  const StepMemory& use = agent.memory();
  EXPECT_TRUE(use.served);
  EXPECT_EQ(use.peak, peak);
  EXPECT_LE(use.peak, use.budget);
  EXPECT_EQ(use.extent, events_[0].extent);
  EXPECT_EQ(use.fragmentation, events_[0].fragmentation);
  // The input was there before.
  const Bytes input(static_cast<int64_t>(network_.input.nbytes()));
  EXPECT_EQ(use.reserved_peak, use.extent + input);
  EXPECT_EQ(use.device_peak, before + use.extent);
  EXPECT_LE(use.device_peak, use.device_limit);
  EXPECT_THAT(events_, SizeIs(1));
}

TEST_F(AgentArenaTest, StepsWithAndWithoutLeaveTheSameBehind) {
  AgentOptions without = options_;
  without.arena.reset();
  const std::string plain = StateAfter(without, 4);
  EXPECT_THAT(events_, SizeIs(0));
  EXPECT_EQ(StateAfter(options_, 4), plain);
  EXPECT_THAT(events_, SizeIs(1));
}

// The second stage keeps a number, which takes 64 bytes of a region.
ChainModel WithANumberKept(const ChainModel& model) {
  ChainModel keeping("keeping");
  keeping.AddStage(model.stage(1));
  keeping.AddFunction("scale", "mul",
                      [](const at::Tensor& x) { return x * torch::full({1}, 1.5F); });
  for (int l = 2; l <= model.length(); ++l) keeping.AddStage(model.stage(l));
  keeping.SetLoss("loss", model.loss());
  return keeping;
}

TEST_F(AgentArenaTest, ARegionThatDoesNotFitIsNotUsed) {
  network_.model = WithANumberKept(network_.model);
  options_.device_limit.reset();
  const Batch batch{{network_.input}, network_.target};
  const Profile kept = ProfileWithTimes(batch);
  {
    // Room for the plan's peak to the byte: less than its blocks reach.
    Agent roomy(&network_.model, options_);
    ASSERT_TRUE(roomy.UseProfile(batch, kept).ok());
    const auto plan = roomy.Plan(batch, ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    options_.budget = Budget(plan->plan.prediction.peak);
  }
  Agent agent(&network_.model, options_);
  ASSERT_TRUE(agent.UseProfile(batch, kept).ok());
  Train(&agent, 3);
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_FALSE(events_[0].used);
  EXPECT_GT(events_[0].extent, events_[0].room);
  EXPECT_THAT(events_[0].why, HasSubstr("there is room for "));
  EXPECT_THAT(ToString(AgentEvent(events_[0])), HasSubstr("served from no region"));
  EXPECT_FALSE(agent.memory().served);
  EXPECT_EQ(agent.memory().device_limit, Bytes(0));
  EXPECT_EQ(agent.memory().fragmentation, Bytes(0));
}

TEST_F(AgentArenaTest, ShapesShareARegionAsLargeAsTheLargestNeeds) {
  options_.steps_by_larger = 0;
  Agent agent(&network_.model, options_);
  Train(&agent, 2, 2);
  const Bytes small = Reserved();
  Train(&agent, 2, 3);
  ASSERT_THAT(events_, SizeIs(2));
  EXPECT_LT(events_[0].extent, events_[1].extent);
  for (int i = 0; i < 4; ++i) {
    Train(&agent, 1, 2 + i % 2);
    EXPECT_TRUE(agent.memory().served);
    EXPECT_EQ(agent.memory().extent, events_[static_cast<size_t>(i % 2)].extent);
    EXPECT_EQ(Reserved(), small - events_[0].extent + events_[1].extent);
  }
  EXPECT_THAT(events_, SizeIs(2));
}

TEST_F(AgentArenaTest, AnotherPlanIsRecordedAnewAndProfilesHaveTheMemoryForThemselves) {
  Agent agent(&network_.model, options_);
  Train(&agent, 2);
  const Bytes extent = events_.back().extent;
  const Bytes before = Reserved() - extent;
  ASSERT_TRUE(agent.Refresh({{network_.input}, network_.target}, ShareOfStoreAll{0.7}).ok());
  EXPECT_EQ(Reserved(), before);
  Train(&agent, 2);
  EXPECT_TRUE(agent.memory().served);
  ASSERT_THAT(events_, SizeIs(2));
  EXPECT_LT(events_.back().extent, extent);
  EXPECT_EQ(Reserved(), before + events_.back().extent);
}

TEST_F(AgentArenaTest, TheKillSwitchGivesTheRegionUp) {
  bool off = false;
  options_.off = [&off] { return off; };
  Agent agent(&network_.model, options_);
  Train(&agent, 2);
  const Bytes reserved = Reserved();
  off = true;
  Train(&agent, 1);
  EXPECT_EQ(Reserved(), reserved - events_[0].extent);
  off = false;
  Train(&agent, 1);
  EXPECT_TRUE(agent.memory().served);
  EXPECT_EQ(Reserved(), reserved);
}

TEST_F(AgentArenaTest, GraphsAreServed) {
  TestGraph graph = MakeTestGraph("mixed");
  Agent agent(&graph.model, options_);
  for (int i = 0; i < 3; ++i) {
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& input : graph.inputs) inputs.push_back(input.clone());
    const auto report = agent.Step({std::move(inputs), graph.target});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(agent.memory().served, i > 0);
  }
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_TRUE(events_[0].used);
  EXPECT_LE(agent.memory().device_peak, agent.memory().device_limit);
}

TEST_F(AgentArenaTest, RefusesWhatCannotBe) {
  options_.arena->region.effort = -1;
  Agent agent(&network_.model, options_);
  const absl::Status status = agent.Plan({{network_.input}, network_.target}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("options.arena.region.effort = -1"));
}

TEST(StepArenas, StepsThatAreNeverAlikeAreRecordedAFewTimesThenLeftAlone) {
  AgentOptions options;
  options.arena = ArenaOptions();
  std::vector<ArenaEvent> events;
  EventSink sink(
      [&events](const AgentEvent& event) { events.push_back(std::get<ArenaEvent>(event)); });
  StepArenas arenas(options, &sink);
  int64_t size = 1000;
  for (int i = 0; i < 12; ++i) {
    const auto report = arenas.Run(
        "batch", Digest(), [] { return Bytes(kMiB); },
        [&]() -> absl::StatusOr<StepReport> {
          torch::empty({size += 1000}, torch::kByte);
          return StepReport();
        });
    EXPECT_TRUE(report.ok());
  }
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_TRUE(events[2].used);
  EXPECT_FALSE(events[3].used);
  EXPECT_THAT(events[3].why, HasSubstr("differ"));
  EXPECT_FALSE(arenas.used());
}

TEST(StepArenas, ARegionHasWhatNothingElseTakesAndTheReserve) {
  DeviceBudget shared;
  shared.device = Bytes(1000);
  shared.subtracted = {{"parameters", Bytes(300)}, {"reserve", Bytes(50), true}};
  EXPECT_EQ(RoomForRegion(shared, Bytes(0), Bytes(20)), Bytes(680));
  EXPECT_EQ(RoomForRegion(shared, Bytes(400), Bytes(20)), Bytes(600));
  EXPECT_EQ(RoomForRegion(shared, Bytes(2000), Bytes(20)), Bytes(0));
}

}  // namespace
}  // namespace stowage

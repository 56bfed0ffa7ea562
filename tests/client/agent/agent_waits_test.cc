// What an agent hands out waits for the device where a loop of plain training does, which reads no loss; what the device
// tells of a step is noted later.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "client/agent/agent.h"
#include "client/torch/execute/plain_step.h"
#include "tests/client/agent/agent_fixture.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/device/wait_count.h"

namespace stowage {
namespace {

class AgentWaitsTest : public AgentTest, public ::testing::WithParamInterface<std::string> {
 protected:
  AgentWaitsTest() : AgentTest(TrainingDeviceNamed(GetParam())) {
    // Looked at after each step, and never so far off that there would be another plan.
    options_.drift.window = 1;
    options_.drift.time = options_.drift.peak = 1e9;
  }

  // With a plan that recomputes.
  std::unique_ptr<Agent> Planned() {
    auto agent = std::make_unique<Agent>(&network_.model, options_);
    const auto adopted = agent->Plan(network_.input, network_.target, ShareOfStoreAll{0.7});
    EXPECT_TRUE(adopted.ok()) << adopted.status();
    EXPECT_GT(adopted.value().plan.prediction.recomputed_forwards, 0);
    return agent;
  }

  // Of ten steps that come one upon the other; the first ones take what is kept.
  int64_t WaitsOf(const std::function<void()>& step) const {
    for (int i = 0; i < 2; ++i) step();
    const WaitCount waits(device_.device);
    for (int i = 0; i < 10; ++i) step();
    return waits.count();
  }
  int64_t PlainWaits() const {
    const ChainModel& model = network_.model;
    return WaitsOf(
        [&] { model.loss()(PlainForward(model, network_.input), network_.target).backward(); });
  }
  // Of planned steps, measured by instruction or not.
  void ExpectWaits(int64_t waits, const std::function<void(Agent*)>& step) {
    for (const bool measures : {false, true}) {
      options_.measure_steps = measures;
      const auto agent = Planned();
      EXPECT_EQ(WaitsOf([&] { step(agent.get()); }), waits) << measures;
      EXPECT_EQ(agent->steps().planned, 12);
      EXPECT_EQ(agent->measured().instructions.empty(), !measures);
    }
  }
};

// Recomputed forwards wait where forwards do.
#define SKIP_IF_FORWARDS_WAIT(plain) \
  if ((plain) > 0) GTEST_SKIP() << "its forwards wait for the device"

TEST_P(AgentWaitsTest, OfForwardsAreThoseOfThePlainLoop) {
  const int64_t plain = PlainWaits();
  SKIP_IF_FORWARDS_WAIT(plain);
  ExpectWaits(plain, [this](Agent* agent) {
    const auto output = agent->Forward(network_.input, network_.target);
    ASSERT_TRUE(output.ok()) << output.status();
    network_.model.loss()(*output, network_.target).backward();
  });
}

TEST_P(AgentWaitsTest, OfStepsAreThoseOfThePlainLoop) {
  const int64_t plain = PlainWaits();
  SKIP_IF_FORWARDS_WAIT(plain);
  ExpectWaits(plain, [this](Agent* agent) {
    const auto report = agent->Step(network_.input, network_.target);
    ASSERT_TRUE(report.ok()) << report.status();
  });
}

TEST_P(AgentWaitsTest, InShadowAndSwitchedOffTheyAreThoseOfThePlainLoop) {
  const int64_t plain = PlainWaits();
  bool off = false;
  options_.off = [&off] { return off; };
  options_.shadow = true;
  options_.shadow_every = 1;
  options_.budget = ShareOfStoreAll{0.7};
  Agent agent(&network_.model, options_);
  const auto step = [&] {
    const auto report = agent.Step(network_.input, network_.target);
    ASSERT_TRUE(report.ok()) << report.status();
  };
  EXPECT_EQ(WaitsOf(step), plain);
  EXPECT_EQ(agent.steps().shadow, 12);
  off = true;
  EXPECT_EQ(WaitsOf(step), plain);
  EXPECT_EQ(agent.steps().plain, 12);
}

INSTANTIATE_TEST_SUITE_P(On, AgentWaitsTest, ::testing::Values("test", "cuda"),
                         [](const auto& device) { return device.param; });

// On a device that stands still until it is told to go on.
class AgentLateTest : public AgentTest {
 protected:
  AgentLateTest() : AgentTest(TrainingDeviceNamed("test")) {
    // Each step that is noted is off.
    options_.drift.window = 1;
    options_.drift.time = 1e-9;
    options_.drift.replans = 100;
    options_.on_event = [this](const AgentEvent& event) {
      if (std::holds_alternative<ReplanEvent>(event)) ++noted_;
    };
  }
  ~AgentLateTest() override { GoOn(); }

  static void GoOn() {
    TestDevice::compute().Resume();
    TestDevice::Synchronize();
  }

  // Of each way to make steps: three of them, which the device has not begun.
  void AfterThreeSteps(const std::function<void(Agent*)>& test) {
    for (const bool whole : {true, false}) {
      SCOPED_TRACE(whole ? "Step" : "Forward");
      noted_ = 0;
      Agent agent(&network_.model, options_);
      ASSERT_TRUE(agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.7}).ok());
      TestDevice::Synchronize();
      TestDevice::compute().Hold();
      for (int i = 0; i < 3; ++i) {
        if (whole) {
          const auto report = agent.Step(network_.input, network_.target);
          ASSERT_TRUE(report.ok()) << report.status();
        } else {
          const auto output = agent.Forward(network_.input, network_.target);
          ASSERT_TRUE(output.ok()) << output.status();
          network_.model.loss()(*output, network_.target).backward();
        }
      }
      // What the host knows is there.
      EXPECT_EQ(agent.steps().planned, 3);
      EXPECT_GT(agent.memory().peak, Bytes(0));
      EXPECT_FALSE(TestDevice::compute().idle());
      EXPECT_EQ(noted_, 0);
      test(&agent);
    }
  }

  int noted_ = 0;
};

TEST_F(AgentLateTest, TimesAreNotedWithTheFirstCallAfterTheDeviceHasDoneTheSteps) {
  AfterThreeSteps([this](Agent* agent) {
    GoOn();
    EXPECT_EQ(noted_, 0);
    agent->events();
    EXPECT_EQ(noted_, 3);
    agent->events();
    EXPECT_EQ(noted_, 3);
  });
}

// The job ends, or somebody wants to know now.
TEST_F(AgentLateTest, AReportWaitsForTheSteps) {
  AfterThreeSteps([this](Agent* agent) {
    agent->Report().IgnoreError();
    EXPECT_EQ(noted_, 3);
  });
}

TEST_F(AgentLateTest, WhatNoCallComesForIsNotNoted) {
  AfterThreeSteps([](Agent*) {});
  EXPECT_EQ(noted_, 0);
}

}  // namespace
}  // namespace stowage

// How an agent's plans stay true: drift, reports, shadow mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/agent/agent.h"
#include "solvers/model/chain.h"
#include "solvers/model/problem.h"
#include "tests/client/agent/agent_fixture.h"
#include "tests/client/agent/agent_life_fixture.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(AgentLifeTest, ReportsByItselfOnceAndSaysSo) {
  options_.report_after = 3;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  StepOften(agent.get(), 2);
  EXPECT_TRUE(service_.reports.empty());
  StepOften(agent.get(), 4);
  ASSERT_EQ(service_.reports.size(), 1u);
  EXPECT_EQ(service_.reports[0].steps, 3);
  EXPECT_EQ(service_.reports[0].plan_digest, Last<AdoptedEvent>().plan);
  EXPECT_EQ(Last<ReportSentEvent>().peak, Last<AdoptedEvent>().peak);
}

// Whatever other shape was stepped last.
TEST_F(AgentLifeTest, WhatIsReportedIsOfOneShape) {
  auto agent = MakeAgent();
  for (const int64_t n : {4, 8}) {
    ASSERT_TRUE(agent->Plan(FakeBatch(n), ShareOfStoreAll{0.7}).ok());
    StepOften(agent.get(), 2, n);
  }
  ASSERT_TRUE(agent->Profile(FakeBatch(4)).ok());
  ASSERT_TRUE(agent->Report().ok());
  const ExecutionMeasurement& sent = service_.reports.back();
  EXPECT_EQ(sent.reserved_peak, sent.peak + InputBytes(FakeBatch(4)));
}

TEST_F(AgentLifeTest, AReportThatIsRefusedStopsNothing) {
  options_.report_after = 1;
  service_.report_status = absl::UnavailableError("away");
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  StepOften(agent.get(), 2);
  EXPECT_EQ(agent->events().of<ReportRefusedEvent>(), 1);
  EXPECT_THAT(lines_, Contains(HasSubstr("away")));
}

TEST_F(AgentLifeTest, PlansAnewWhenStepsTakeLonger) {
  options_.drift.replans = 1;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  world_.slower = 1.2;  // within the tolerance
  StepOften(agent.get(), 8);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 0);
  world_.slower = 1.5;
  StepOften(agent.get(), 4);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
  EXPECT_EQ(Last<ReplanEvent>().reason, ReplanReason::kTime);
  const size_t measured = world_.measured.size();
  StepOften(agent.get(), 1);
  // By the server, with a fresh profile.
  EXPECT_EQ(world_.measured.size(), measured + 1);
  EXPECT_EQ(service_.computed, 2);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 2);
  // As often as the options say.
  StepOften(agent.get(), 20);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
}

TEST_F(AgentLifeTest, PlansAnewWhenThePeakIsHigher) {
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  world_.larger = 1.1;
  StepOften(agent.get(), 4);
  EXPECT_EQ(Last<ReplanEvent>().reason, ReplanReason::kPeak);
  // The old plan stays when there is no new one.
  world_.measure_fails = true;
  StepOften(agent.get(), 1);
  EXPECT_THAT(lines_.back(), HasSubstr("the profiler fails"));
  EXPECT_EQ(agent->steps().planned, 5);
}

TEST_F(AgentLifeTest, ShadowModePlansAndTrainsPlain) {
  options_.shadow = true;
  options_.shadow_every = 2;
  options_.report_after = 1;
  options_.budget = ShareOfStoreAll{0.6};
  auto agent = MakeAgent();
  StepOften(agent.get(), 4);
  EXPECT_EQ(world_.plain_steps, 4);
  EXPECT_EQ(world_.planned_steps, 0);
  EXPECT_EQ(agent->steps().shadow, 4);
  EXPECT_EQ(agent->events().of<ShadowEvent>(), 2);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 0);
  EXPECT_TRUE(service_.reports.empty());
  const ShadowEvent& shadow = Last<ShadowEvent>();
  EXPECT_EQ(shadow.measured_peak, shadow.plain_peak);
  EXPECT_EQ(shadow.measured_time, shadow.plain_time);
  EXPECT_LE(shadow.planned_peak, Bytes(shadow.plain_peak.value() * 6 / 10));
  EXPECT_GT(shadow.planned_time, shadow.plain_time);
}

TEST_F(AgentLifeTest, ShadowModeTrainsOnWithoutAPlan) {
  options_.shadow = true;
  world_.measure_fails = true;
  options_.budget = ShareOfStoreAll{0.6};
  auto agent = MakeAgent();
  StepOften(agent.get(), 3);
  EXPECT_EQ(agent->events().of<PlanFailedEvent>(), 1);
}

// A GPU that measures itself, in a process whose own memory nobody measures.
class OwnDevice : public ExecutionDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return &meter_; }

 private:
  FakeMeter meter_;
};

TEST_F(AgentLifeTest, PlainStepsAreMeasuredOnTheDevice) {
  OwnDevice device;
  options_.device = &device;
  options_.profile.meter = nullptr;
  options_.budget = ShareOfStoreAll{0.7};
  options_.shadow = true;
  StepOften(MakeAgent().get(), 1);
  EXPECT_EQ(world_.plain_meter, device.meter());
  world_.plain_meter = nullptr;
  options_.off = [] { return true; };
  StepOften(MakeAgent().get(), 1);
  EXPECT_EQ(world_.plain_meter, device.meter());
}

// The wish comes up while the job trains: it asks once in so many steps, measures, and sends what it found.
TEST_F(AgentLifeTest, AProfileThatIsWantedIsMeasuredBetweenSteps) {
  options_.wanted_profile_every = 5;
  auto agent = MakeAgent();
  const auto adopted = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  const int looked_up = service_.looked_up;
  const size_t measured = world_.measured.size();
  StepOften(agent.get(), 7);
  EXPECT_EQ(service_.looked_up, looked_up + 1);
  EXPECT_EQ(world_.measured.size(), measured);
  service_.profile_wanted = true;
  StepOften(agent.get(), 3);
  EXPECT_EQ(Last<ReplanEvent>().reason, ReplanReason::kProfileWanted);
  EXPECT_EQ(service_.computed, 1);
  StepOften(agent.get(), 1);
  EXPECT_EQ(world_.measured.size(), measured + 1);
  EXPECT_EQ(world_.measured.back(), CostSource::kMeasured);
  EXPECT_EQ(service_.computed, 2);
  EXPECT_EQ(Last<AdoptedEvent>().budget, adopted->plan.budget);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 2);
  // However often it is wanted, no sooner than that.
  service_.profile_wanted = true;
  StepOften(agent.get(), 3);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
  StepOften(agent.get(), 2);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 2);
  EXPECT_EQ(agent->steps().planned, 16);
}

// What it measures does not end training, and the plan stays.
TEST_F(AgentLifeTest, AProfileThatCannotBeTakenStopsNothing) {
  options_.wanted_profile_every = 2;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  service_.profile_wanted = true;
  world_.measure_fails = true;
  StepOften(agent.get(), 3);
  EXPECT_EQ(agent->events().of<PlanFailedEvent>(), 1);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 1);
}

TEST_F(AgentLifeTest, NobodyIsAskedWhetherAProfileIsWanted) {
  const auto asks = [this] {
    service_.profile_wanted = true;
    const int looked_up = service_.looked_up;
    auto agent = MakeAgent();
    EXPECT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    StepOften(agent.get(), 6);
    EXPECT_EQ(agent->events().of<ReplanEvent>(), 0);
    return service_.looked_up - looked_up;
  };
  options_.wanted_profile_every = 0;
  asks();  // nothing is cached yet
  const int of_the_plan = asks();
  options_.wanted_profile_every = 2;
  options_.shadow = true;
  EXPECT_EQ(asks(), of_the_plan);
  options_.shadow = false;
  options_.off = [] { return true; };
  EXPECT_EQ(asks(), 0);
}

// On a model that really trains.
class AgentDriftTest : public AgentTest, public ::testing::WithParamInterface<std::string> {
 protected:
  AgentDriftTest() : AgentTest(TrainingDeviceNamed(GetParam())) {}

  // What the model takes, but for times: no step is that fast.
  Profile TooFast(const Batch& batch) {
    Agent agent = LocalAgent();
    EXPECT_TRUE(agent.Profile(batch).ok());
    Profile profile = *agent.profile();
    ChainSpec spec = std::get<Chain>(profile.problem).spec();
    const auto run_at_once = [](Stage* stage) {
      stage->forward_time = stage->backward_time = Nanos(1);
      if (stage->stops()) stage->recompute_saving_time = Nanos(1);
    };
    for (Stage& stage : spec.stages) run_at_once(&stage);
    run_at_once(&spec.loss);
    profile.problem = Chain::Create(std::move(spec)).value();
    return profile;
  }
};

TEST_P(AgentDriftTest, StepsThatTakeLongerThanAProfileSaysAreMeasuredAnew) {
  options_.drift.window = 4;
  std::vector<ReplanReason> reasons;
  options_.on_event = [&reasons](const AgentEvent& event) {
    if (const auto* replan = std::get_if<ReplanEvent>(&event)) reasons.push_back(replan->reason);
  };
  const Batch batch{{network_.input}, network_.target};
  const Profile told = TooFast(batch);
  Agent agent = LocalAgent();
  const absl::Status known = agent.UseProfile(batch, told);
  ASSERT_TRUE(known.ok()) << known;
  const auto adopted = agent.Plan(batch, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  const auto step = [&] {
    const absl::StatusOr<StepReport> report = agent.Step(batch);
    ASSERT_TRUE(report.ok()) << report.status();
  };
  for (int i = 0; i < 4; ++i) step();
  // Elsewhere times come later: it waits for them.
  agent.Report().IgnoreError();
  // Peaks, which are looked at first, are the plan's.
  EXPECT_THAT(reasons, ElementsAre(ReplanReason::kTime));
  EXPECT_EQ(agent.events().of<ProfileTakenEvent>(), 0);
  step();
  EXPECT_EQ(agent.events().of<ProfileTakenEvent>(), 1);
  EXPECT_EQ(agent.events().of<AdoptedEvent>(), 2);
  EXPECT_GT(IdealTime(agent.profile()->problem), IdealTime(told.problem));
  EXPECT_EQ(agent.steps().planned, 5);
}

INSTANTIATE_TEST_SUITE_P(On, AgentDriftTest, ::testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage

// What an agent decides, on a model that only pretends to train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agent.h"
#include "client/agent/plan_token.h"
#include "client/torch/simulated_device.h"
#include "solvers/plan/problem_referee.h"
#include "solvers/planner.h"
#include "tests/client/agent/fake_training.h"
#include "tests/client/torch/random_schedule.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AgentLifeTest : public ::testing::Test {
 protected:
  AgentLifeTest() {
    options_.profile.meter = &world_.meter;
    options_.report_after = 0;
    options_.drift.window = 4;
    options_.on_event = [this](const AgentEvent& event) {
      kinds_.push_back(KindOf(event));
      lines_.push_back(ToString(event));
      events_.push_back(event);
    };
  }

  std::unique_ptr<Agent> MakeAgent() {
    return std::make_unique<Agent>(std::make_unique<FakeModel>(&world_), service_.Connect(),
                                   options_);
  }

  template <class Event>
  const Event& Last() const {
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      if (const Event* found = std::get_if<Event>(&*event)) return *found;
    }
    throw std::logic_error("there was no such event");
  }

  void StepOften(Agent* agent, int steps, int64_t n = 4) {
    for (int i = 0; i < steps; ++i) {
      const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(n));
      ASSERT_TRUE(report.ok()) << report.status();
    }
  }

  Bytes StoreAll(int64_t n) const {
    return PlainTraining(FakeProfile(FakeBatch(n), CostSource::kMeasured).problem)->peak;
  }

  FakeWorld world_;
  FakeService service_;
  AgentOptions options_;
  std::vector<std::string> kinds_, lines_;
  std::vector<AgentEvent> events_;
};

TEST_F(AgentLifeTest, TellsWhatItDoesInOrder) {
  auto first = MakeAgent();
  ASSERT_TRUE(first->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  EXPECT_THAT(kinds_, ElementsAre("profile_taken", "profile_taken", "planned", "adopted"));
  EXPECT_THAT(world_.measured, ElementsAre(CostSource::kBytesOnly, CostSource::kMeasured));
  EXPECT_EQ(Last<AdoptedEvent>().budget, Last<PlannedEvent>().budget);
  EXPECT_LE(Last<AdoptedEvent>().peak, Last<AdoptedEvent>().budget);
  EXPECT_GT(Last<AdoptedEvent>().recomputed_forwards, 0);
  // The next job of this structure times nothing.
  kinds_.clear();
  auto second = MakeAgent();
  ASSERT_TRUE(second->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  EXPECT_THAT(kinds_, ElementsAre("profile_taken", "cache_hit", "adopted"));
  EXPECT_EQ(world_.measured.back(), CostSource::kBytesOnly);
  EXPECT_EQ(second->events().of<CacheHitEvent>(), 1);
}

TEST_F(AgentLifeTest, AHitTakesShapesAlone) {
  ASSERT_TRUE(MakeAgent()->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  world_.tells_shapes = true;
  for (const Budget& budget : {Budget(ShareOfStoreAll{0.7}), Budget(StoreAll(4))}) {
    kinds_.clear();
    world_.measured.clear();
    auto agent = MakeAgent();
    const auto adopted = agent->Plan(FakeBatch(4), budget);
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    EXPECT_THAT(kinds_, ElementsAre("profile_taken", "cache_hit", "adopted"));
    EXPECT_TRUE(Last<ProfileTakenEvent>().from_shapes);
    EXPECT_THAT(lines_, Contains(HasSubstr("structure told from shapes")));
    EXPECT_TRUE(world_.measured.empty());
    EXPECT_EQ(agent->profile(), nullptr);
    StepOften(agent.get(), 3);
  }
  options_.plan_by_shapes = false;
  ASSERT_TRUE(MakeAgent()->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  EXPECT_THAT(world_.measured, ElementsAre(CostSource::kBytesOnly));
}

// When the plan that came by shapes does not fit, the job measures before it asks again.
TEST_F(AgentLifeTest, WhereMemoryRunsOutShapesDoNoMore) {
  world_.tells_shapes = true;
  ASSERT_TRUE(MakeAgent()->Plan(FakeBatch(4), StoreAll(4)).ok());
  world_.measured.clear();
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), StoreAll(4)).ok());
  EXPECT_TRUE(world_.measured.empty());
  world_.room = Bytes(StoreAll(4).value() * 9 / 10);
  EXPECT_TRUE(absl::IsResourceExhausted(agent->Step(FakeBatch(4)).status()));
  (void)agent->Step(FakeBatch(4));
  EXPECT_THAT(world_.measured, Contains(CostSource::kBytesOnly));
}

TEST_F(AgentLifeTest, ShapesThatAreOffAreAskedOnce) {
  world_.tells_shapes = world_.shapes_are_off = true;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  EXPECT_FALSE(Last<ProfileTakenEvent>().from_shapes);
  EXPECT_THAT(Last<ProfileTakenEvent>().not_shapes, HasSubstr("another structure"));
  ASSERT_TRUE(agent->Plan(FakeBatch(5), ShareOfStoreAll{0.7}).ok());
  EXPECT_EQ(world_.told_shapes, 1);
  // What is kept is kept under the measured key.
  world_.measured.clear();
  world_.tells_shapes = false;
  ASSERT_TRUE(MakeAgent()->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  EXPECT_THAT(world_.measured, ElementsAre(CostSource::kBytesOnly));
}

TEST_F(AgentLifeTest, EveryShapeHasAPlanWithinTheSameBytes) {
  auto agent = MakeAgent();
  const auto large = agent->Plan(FakeBatch(8), ShareOfStoreAll{0.6});
  ASSERT_EQ(large->plan.status, PlanStatus::kFound);
  // For two steps the larger plan serves; then the shape gets its own, which keeps all.
  EXPECT_GT(agent->Step(FakeBatch(4))->recomputed_forwards, 0);
  EXPECT_GT(agent->Step(FakeBatch(4))->recomputed_forwards, 0);
  EXPECT_EQ(service_.computed, 1);
  EXPECT_EQ(agent->Step(FakeBatch(4))->recomputed_forwards, 0);
  EXPECT_EQ(agent->steps().by_larger, 2);
  EXPECT_EQ(agent->steps().planned, 1);
  EXPECT_EQ(Last<AdoptedEvent>().budget, large->plan.budget);
  // A larger one has none to serve it, and less room for each of its samples.
  EXPECT_GT(agent->Step(FakeBatch(9))->recomputed_forwards,
            large->plan.prediction.recomputed_forwards - 1);
  EXPECT_EQ(Last<AdoptedEvent>().budget, large->plan.budget);
  EXPECT_EQ(agent->steps().planned, 2);
}

TEST_F(AgentLifeTest, ALargerPlanServesNoOtherMode) {
  options_.steps_by_larger = 100;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(8), ShareOfStoreAll{0.7}).ok());
  Batch other = FakeBatch(4);
  other.mode = "eval";
  ASSERT_TRUE(agent->Step(other).ok());
  EXPECT_EQ(agent->steps().by_larger, 0);
  ASSERT_TRUE(agent->Step(FakeBatch(4)).ok());
  EXPECT_EQ(agent->steps().by_larger, 1);
}

TEST_F(AgentLifeTest, ForgetsTheShapeThatWasLongestNotMet) {
  options_.max_shapes = 2;
  options_.steps_by_larger = 0;
  options_.budget = ShareOfStoreAll{1.0};
  auto agent = MakeAgent();
  for (const int64_t n : {8, 6, 8, 4}) ASSERT_TRUE(agent->Step(FakeBatch(n)).ok());
  EXPECT_EQ(agent->forgotten_shapes(), 1);
  const size_t measured = world_.measured.size();
  ASSERT_TRUE(agent->Step(FakeBatch(8)).ok());
  EXPECT_EQ(world_.measured.size(), measured);
  ASSERT_TRUE(agent->Step(FakeBatch(6)).ok());
  EXPECT_GT(world_.measured.size(), measured);
}

TEST_F(AgentLifeTest, AnOptionSaysWithinWhatToPlan) {
  auto unsaid = MakeAgent();
  EXPECT_EQ(unsaid->Step(FakeBatch(4)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(unsaid->Plan(FakeBatch(4)).status().code(), absl::StatusCode::kFailedPrecondition);
  DeviceLimit device;
  device.memory = StoreAll(4);
  device.reserve = 0.25;
  options_.device_limit = device;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Step(FakeBatch(4)).ok());
  // Sixteen bytes of parameters, as much of gradients.
  EXPECT_EQ(Last<BudgetSharedEvent>().budget.activations,
            Bytes(StoreAll(4).value() - StoreAll(4).value() / 4 - 32));
  EXPECT_EQ(Last<AdoptedEvent>().budget, Last<BudgetSharedEvent>().budget.activations);
  EXPECT_GT(Last<AdoptedEvent>().recomputed_forwards, 0);
}

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

TEST_F(AgentLifeTest, AfterOutOfMemoryTheNextStepTakesLess) {
  auto agent = MakeAgent();
  const auto adopted = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
  const Bytes peak = adopted->plan.prediction.peak;
  world_.room = Bytes(peak.value() * 85 / 100);
  EXPECT_EQ(agent->Step(FakeBatch(4)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Last<OutOfMemoryEvent>().wanted, peak);
  EXPECT_EQ(Last<OutOfMemoryEvent>().got, world_.room);
  EXPECT_FALSE(Last<OutOfMemoryEvent>().retried);
  const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->peak, world_.room);
  EXPECT_GT(report->recomputed_forwards, 0);
  EXPECT_EQ(Last<AdoptedEvent>().budget, Last<ReplanEvent>().budget);
  // Shapes that come later are planned within as much.
  EXPECT_TRUE(agent->Step(FakeBatch(5)).ok());
}

TEST_F(AgentLifeTest, AStepIsMadeOnceMoreIfTheOptionsSaySo) {
  options_.out_of_memory.retry_step = true;
  auto agent = MakeAgent();
  const auto adopted = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
  world_.room = Bytes(adopted->plan.prediction.peak.value() * 9 / 10);
  const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->peak, world_.room);
  EXPECT_TRUE(Last<OutOfMemoryEvent>().retried);
  EXPECT_EQ(agent->steps().planned, 1);
}

TEST_F(AgentLifeTest, TriesEndSomeTime) {
  options_.out_of_memory.tries = 2;
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0}).ok());
  world_.room = Bytes(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(agent->Step(FakeBatch(4)).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 2);
  EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 5);
}

// Where copies take next to no time beside the stages.
class AgentOnALinkTest : public AgentLifeTest {
 protected:
  AgentOnALinkTest() {
    options_.device = device_.get();
    options_.out_of_memory.retry_step = true;
  }

  // Its plan copies.
  std::unique_ptr<Agent> Planned() {
    auto agent = MakeAgent();
    const absl::StatusOr<AdoptedPlan> adopted = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
    EXPECT_TRUE(adopted.ok()) << adopted.status();
    EXPECT_GT(adopted->plan.prediction.sent, Bytes(0));
    first_ = adopted->plan;
    return agent;
  }

  std::unique_ptr<SimulatedDevice> device_ =
      SimulatedDevice::Create(FastLink(/*full_duplex=*/true)).value();
  stowage::Plan first_;
};

TEST_F(AgentOnALinkTest, WhereSomethingCannotMovePlansCopyNothing) {
  world_.immovable = true;
  auto agent = Planned();
  const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->recomputed_forwards, 0);
  EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 0);
  EXPECT_EQ(agent->events().of<CopiesForbiddenEvent>(), 1);
  EXPECT_EQ(Last<CopiesForbiddenEvent>().reason, ReplanReason::kImmovable);
  EXPECT_THAT(Last<ReplanEvent>().words, HasSubstr("it holds what cannot move"));
  EXPECT_EQ(Last<AdoptedEvent>().budget, first_.budget);
  EXPECT_EQ(Last<AdoptedEvent>().sent, Bytes(0));
  // Nor do those of shapes that come later.
  StepOften(agent.get(), 1, 5);
  EXPECT_EQ(Last<AdoptedEvent>().sent, Bytes(0));
  EXPECT_EQ(agent->events().of<CopiesForbiddenEvent>(), 1);
}

TEST_F(AgentOnALinkTest, AStepThatIsNotMadeAgainFailsOnce) {
  options_.out_of_memory.retry_step = false;
  world_.immovable = true;
  auto agent = Planned();
  EXPECT_EQ(agent->Step(FakeBatch(4)).status().code(), absl::StatusCode::kInvalidArgument);
  StepOften(agent.get(), 2);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
}

TEST_F(AgentOnALinkTest, WithoutAnotherPlanItAsksOnce) {
  options_.out_of_memory.retry_step = false;
  world_.immovable = true;
  auto agent = MakeAgent();
  PlanOptions recompute;
  recompute.recompute_only = true;
  const Profile profile = FakeProfile(FakeBatch(4), CostSource::kMeasured);
  const Bytes least = ResolveBudget(profile, LeastBudget{}, recompute).value();
  const auto adopted = agent->Plan(FakeBatch(4), Budget(least - Bytes(1)));
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(agent->Step(FakeBatch(4)).ok());
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
  EXPECT_EQ(agent->events().of<PlanFailedEvent>(), 1);
}

TEST_F(AgentOnALinkTest, WhereHostMemoryRunsOutPlansTakeLessOfIt) {
  auto agent = Planned();
  world_.host_room = first_.prediction.host_peak - Bytes(1);
  const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
  ASSERT_TRUE(report.ok()) << report.status();
  const OutOfMemoryEvent& event = Last<OutOfMemoryEvent>();
  EXPECT_TRUE(event.host);
  EXPECT_TRUE(event.retried);
  EXPECT_EQ(event.wanted, first_.prediction.host_peak);
  EXPECT_THAT(ToString(AgentEvent(event)), HasSubstr("out of host memory after "));
  EXPECT_EQ(Last<ReplanEvent>().reason, ReplanReason::kHostMemory);
  // The device has as much as before.
  EXPECT_EQ(Last<AdoptedEvent>().budget, first_.budget);
  EXPECT_LT(agent->profile()->device.host_memory, first_.prediction.host_peak);
  EXPECT_EQ(agent->events().of<CopiesForbiddenEvent>(), 0);
}

// What the step of one shape found out holds for the plans of all.
TEST_F(AgentOnALinkTest, PlansOfOtherShapesThatCopyAreReplacedBeforeTheyFail) {
  options_.out_of_memory.retry_step = false;
  auto agent = Planned();
  const absl::StatusOr<AdoptedPlan> other = agent->Plan(FakeBatch(5), ShareOfStoreAll{0.7});
  ASSERT_GT(other->plan.prediction.sent, Bytes(0));
  ASSERT_EQ(agent->Plan(FakeBatch(6), ShareOfStoreAll{1.0})->plan.prediction.sent, Bytes(0));
  world_.immovable = true;
  EXPECT_FALSE(agent->Step(FakeBatch(4)).ok());
  EXPECT_EQ(agent->events().of<CopiesForbiddenEvent>(), 1);
  EXPECT_THAT(Last<ReplanEvent>().words, HasSubstr("of host memory, plans may take 0 B"));
  StepOften(agent.get(), 2, 5);
  EXPECT_EQ(Last<AdoptedEvent>().sent, Bytes(0));
  EXPECT_EQ(Last<AdoptedEvent>().budget, other->plan.budget);
  StepOften(agent.get(), 2, 4);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 5);
  // That copies nothing, and stays.
  StepOften(agent.get(), 2, 6);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 5);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 2);
}

TEST_F(AgentOnALinkTest, SoAreThoseThatTakeMoreHostMemoryThanThereIs) {
  options_.out_of_memory.retry_step = false;
  auto agent = Planned();
  const absl::StatusOr<AdoptedPlan> larger = agent->Plan(FakeBatch(5), ShareOfStoreAll{0.7});
  ASSERT_GE(larger->plan.prediction.host_peak, first_.prediction.host_peak);
  const absl::StatusOr<AdoptedPlan> small = agent->Plan(FakeBatch(1), ShareOfStoreAll{0.7});
  ASSERT_GT(small->plan.prediction.host_peak, Bytes(0));
  ASSERT_LT(small->plan.prediction.host_peak.value(), first_.prediction.host_peak.value() / 2);
  world_.host_room = first_.prediction.host_peak - Bytes(1);
  EXPECT_FALSE(agent->Step(FakeBatch(4)).ok());
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 2);
  StepOften(agent.get(), 1, 5);
  StepOften(agent.get(), 1, 4);
  StepOften(agent.get(), 1, 1);
  EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 1);
  EXPECT_EQ(agent->events().of<AdoptedEvent>(), 5);
  EXPECT_EQ(agent->events().of<CopiesForbiddenEvent>(), 0);
}

TEST_F(AgentOnALinkTest, WhereThereIsNoHostMemoryTheLastTryCopiesNothing) {
  options_.out_of_memory.retry_step = false;
  world_.host_room = Bytes(0);
  auto agent = Planned();
  int failed = 0;
  for (int i = 0; i < 6; ++i) failed += agent->Step(FakeBatch(4)).ok() ? 0 : 1;
  EXPECT_GE(failed, 1);
  EXPECT_LE(failed, options_.out_of_memory.tries);
  EXPECT_EQ(Last<AdoptedEvent>().sent, Bytes(0));
  EXPECT_EQ(Last<AdoptedEvent>().budget, first_.budget);
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

TEST_F(AgentLifeTest, TheKillSwitchHoldsFromTheNextStepOn) {
  bool off = false;
  options_.off = [&off] { return off; };
  options_.off_variable = "STOWAGE_OFF_IN_A_TEST";
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  StepOften(agent.get(), 1);
  EXPECT_EQ(world_.plain_steps, 0);
  off = true;
  StepOften(agent.get(), 2);
  EXPECT_EQ(world_.plain_steps, 2);
  EXPECT_EQ(agent->events().of<KilledEvent>(), 1);
  // Nothing is asked, and no job ends because of it.
  const size_t measured = world_.measured.size();
  EXPECT_EQ(agent->Plan(FakeBatch(6), Bytes(1000))->plan.status, PlanStatus::kNotFound);
  EXPECT_TRUE(agent->Profile(FakeBatch(6)).ok());
  EXPECT_EQ(world_.measured.size(), measured);
  off = false;
  StepOften(agent.get(), 1);
  EXPECT_FALSE(Last<KilledEvent>().killed);
  ASSERT_EQ(setenv("STOWAGE_OFF_IN_A_TEST", "1", 1), 0);
  StepOften(agent.get(), 1);
  EXPECT_THAT(Last<KilledEvent>().by, HasSubstr("STOWAGE_OFF_IN_A_TEST"));
  ASSERT_EQ(setenv("STOWAGE_OFF_IN_A_TEST", "0", 1), 0);
  StepOften(agent.get(), 1);
  EXPECT_EQ(agent->steps().plain, 3);
  EXPECT_EQ(agent->steps().planned, 3);
}

TEST_F(AgentLifeTest, AJobComesBackToItsPlan) {
  auto before = MakeAgent();
  EXPECT_EQ(before->Token(), "");
  const auto adopted = before->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
  const std::string token = before->Token();
  auto after = MakeAgent();
  const auto resumed = after->Resume(token, FakeBatch(4));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->digest, adopted->digest);
  EXPECT_EQ(resumed->source, PlanSource::kCache);
  EXPECT_TRUE(Last<ResumedEvent>().same_plan);
  EXPECT_EQ(after->Token(), token);
  EXPECT_EQ(after->Resume("nonsense", FakeBatch(4)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AgentLifeTest, AJobIsToldThatItsPlanIsAnother) {
  auto before = MakeAgent();
  ASSERT_TRUE(before->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  // Another plan is served now under the same key.
  auto& kept = service_.kept[Last<AdoptedEvent>().key];
  kept = {*MakePlan(FakeProfile(FakeBatch(4), CostSource::kMeasured), ShareOfStoreAll{0.5}, {})};
  auto after = MakeAgent();
  ASSERT_TRUE(after->Resume(before->Token(), FakeBatch(4)).ok());
  EXPECT_FALSE(Last<ResumedEvent>().same_plan);
  EXPECT_THAT(Last<ResumedEvent>().words, HasSubstr("not the schedule of"));
  ASSERT_TRUE(after->Resume(before->Token(), FakeBatch(5)).ok());
  EXPECT_THAT(Last<ResumedEvent>().words, HasSubstr("is not that of"));
}

TEST_F(AgentLifeTest, WrongOptionsAreTheAnswerToEveryCall) {
  options_.drift.window = 0;
  auto agent = MakeAgent();
  for (const absl::Status& status :
       {agent->Plan(FakeBatch(4), Bytes(1000)).status(), agent->Step(FakeBatch(4)).status(),
        agent->Profile(FakeBatch(4)), agent->Report().status(),
        agent->Resume("", FakeBatch(4)).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("options.drift.window = 0: must be >= 1"));
  }
}

}  // namespace
}  // namespace stowage

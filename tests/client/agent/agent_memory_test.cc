// What an agent does when memory runs out, of the device or of the host, or cannot move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "client/agent/agent.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/planner.h"
#include "tests/client/agent/agent_life_fixture.h"
#include "tests/client/torch/random_schedule.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

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
    first_ = adopted.value().plan;
    EXPECT_GT(first_.prediction.offloaded, Bytes(0));
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
  EXPECT_EQ(Last<AdoptedEvent>().offloaded, Bytes(0));
  // Nor do those of shapes that come later.
  StepOften(agent.get(), 1, 5);
  EXPECT_EQ(Last<AdoptedEvent>().offloaded, Bytes(0));
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
  ASSERT_GT(other.value().plan.prediction.offloaded, Bytes(0));
  ASSERT_EQ(agent->Plan(FakeBatch(6), ShareOfStoreAll{1.0}).value().plan.prediction.offloaded,
            Bytes(0));
  world_.immovable = true;
  EXPECT_FALSE(agent->Step(FakeBatch(4)).ok());
  EXPECT_EQ(agent->events().of<CopiesForbiddenEvent>(), 1);
  EXPECT_THAT(Last<ReplanEvent>().words, HasSubstr("of host memory, plans may take 0 B"));
  StepOften(agent.get(), 2, 5);
  EXPECT_EQ(Last<AdoptedEvent>().offloaded, Bytes(0));
  EXPECT_EQ(Last<AdoptedEvent>().budget, other.value().plan.budget);
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
  ASSERT_GE(larger.value().plan.prediction.host_peak, first_.prediction.host_peak);
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
  EXPECT_EQ(Last<AdoptedEvent>().offloaded, Bytes(0));
  EXPECT_EQ(Last<AdoptedEvent>().budget, first_.budget);
}

}  // namespace
}  // namespace stowage

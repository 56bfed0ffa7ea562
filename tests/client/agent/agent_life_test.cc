// What an agent does with the shapes it meets, on a model that only pretends to train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "client/agent/agent.h"
#include "solvers/planner.h"
#include "tests/client/agent/agent_life_fixture.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  ASSERT_EQ(large.value().plan.status, PlanStatus::kFound);
  // For two steps the larger plan serves; then the shape gets its own, which keeps all.
  EXPECT_GT(agent->Step(FakeBatch(4)).value().recomputed_forwards, 0);
  EXPECT_GT(agent->Step(FakeBatch(4)).value().recomputed_forwards, 0);
  EXPECT_EQ(service_.computed, 1);
  EXPECT_EQ(agent->Step(FakeBatch(4)).value().recomputed_forwards, 0);
  EXPECT_EQ(agent->steps().by_larger, 2);
  EXPECT_EQ(agent->steps().planned, 1);
  EXPECT_EQ(Last<AdoptedEvent>().budget, large.value().plan.budget);
  // A larger one has none to serve it, and less room for each of its samples.
  EXPECT_GT(agent->Step(FakeBatch(9)).value().recomputed_forwards,
            large.value().plan.prediction.recomputed_forwards - 1);
  EXPECT_EQ(Last<AdoptedEvent>().budget, large.value().plan.budget);
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
  EXPECT_EQ(agent->Plan(FakeBatch(6), Bytes(1000)).value().plan.status, PlanStatus::kNotFound);
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

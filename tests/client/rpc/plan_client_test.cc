#include "client/rpc/plan_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "client/rpc/mock_plan_connection.h"
#include "solvers/schedule/instance.h"
#include "tests/client/rpc/fake_server.h"
#include "tests/client/rpc/plan_client_fixture.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::_;
using testing::ElementsAre;
using testing::Field;
using testing::NiceMock;
using testing::Return;

using Clock = CallOptions::Clock;

TEST_F(PlanClientTest, OnAHitTheFullProfileIsNeverAskedFor) {
  PlanReply cached = Cached(ShareOfStoreAll{0.8});
  cached.profile_wanted = true;
  EXPECT_CALL(connection_, GetPlan).WillOnce(Return(cached));
  EXPECT_CALL(connection_, ComputePlan).Times(0);
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(source_.full_profiles, 0);
  EXPECT_FALSE(plan->profiled);
  EXPECT_TRUE(plan->reply.profile_wanted);
  EXPECT_EQ(plan->reply.source, PlanSource::kCache);
  EXPECT_EQ(plan->reply.plan.schedule, cached.plan.schedule);
  // The times are those of whoever planned, for this job has none.
  EXPECT_EQ(plan->reply.plan.prediction.makespan, cached.plan.prediction.makespan);
}

TEST_F(PlanClientTest, AMissIsComputedWithTheFullProfile) {
  EXPECT_CALL(connection_,
              ComputePlan(Field(&Profile::cost_source, CostSource::kMeasured), _, _, _))
      .WillOnce(SolveHere);
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(source_.full_profiles, 1);
  EXPECT_TRUE(plan->profiled);
  EXPECT_EQ(plan->reply.source, PlanSource::kSolved);
}

TEST_F(PlanClientTest, AsksByTheKeyThatTheFullProfileHas) {
  PlanClientOptions options;
  options.key.slots = 77;
  options.other_keys = {PlanKey{1, Sha256("the next larger shape")}};
  std::vector<PlanKey> asked;
  ON_CALL(connection_, GetPlan)
      .WillByDefault([&asked](const std::vector<PlanKey>& keys, auto&&...) {
        asked = keys;
        return absl::StatusOr<PlanReply>(absl::NotFoundError("none"));
      });
  ASSERT_TRUE(Plan(options).ok());
  EXPECT_THAT(asked, ElementsAre(MakePlanKey(source_.full(), options.key), options.other_keys[0]));
}

// The tenant is part of the key, and only the server knows it.
TEST_F(PlanClientTest, LearnsItsTenantOnce) {
  Capabilities capabilities;
  capabilities.tenant = "vision";
  EXPECT_CALL(connection_, GetCapabilities).WillOnce(Return(capabilities));
  KeyOptions of_tenant;
  of_tenant.tenant = "vision";
  EXPECT_CALL(connection_, GetPlan(ElementsAre(MakePlanKey(source_.full(), of_tenant)), _, _))
      .Times(2)
      .WillRepeatedly(Return(absl::NotFoundError("none")));
  PlanClient client(&connection_, {});
  EXPECT_TRUE(client.Plan(&source_, ShareOfStoreAll{0.8}, {}).ok());
  EXPECT_TRUE(client.Plan(&source_, ShareOfStoreAll{0.8}, {}).ok());
}

TEST_F(PlanClientTest, AServerThatDoesNotTellTheTenantIsAskedAgain) {
  EXPECT_CALL(connection_, GetCapabilities)
      .Times(testing::AtLeast(2))
      .WillRepeatedly(Return(absl::InternalError("no")));
  PlanClient client(&connection_, {});
  EXPECT_TRUE(client.Plan(&source_, ShareOfStoreAll{0.8}, {}).ok());
}

// SmallProfile at another batch: sizes as many times as large.
class BatchSource : public ProfileSource {
 public:
  explicit BatchSource(int64_t batch) {
    ChainSpec spec = std::get<Chain>(SmallProfile().problem).spec();
    spec.input = Bytes(spec.input.value() * batch);
    for (Stage& stage : spec.stages) {
      for (auto size : {&Stage::output, &Stage::output_gradient, &Stage::saved}) {
        stage.*size = Bytes((stage.*size).value() * batch);
      }
    }
    profile_ = Profile{"small", Device(), *Chain::Create(spec), CostSource::kModelled};
  }
  absl::StatusOr<const Profile*> Structure() override { return &*profile_; }
  absl::StatusOr<const Profile*> Full() override {
    ++full_profiles;
    return &*profile_;
  }
  PlanKey key() const { return MakePlanKey(*profile_, KeyOptions()); }
  Bytes store_all() const { return Instance(profile_->problem).store_all()->peak; }

  int full_profiles = 0;

 private:
  std::optional<Profile> profile_;
};

TEST_F(PlanClientTest, AsksByTheKeysOfLargerShapesThatItKnows) {
  PlanClient client(&connection_, {});
  BatchSource small(8), medium(12), large(16), larger(24);
  std::vector<PlanKey> asked;
  ON_CALL(connection_, GetPlan)
      .WillByDefault([&asked](const std::vector<PlanKey>& keys, auto&&...) {
        asked = keys;
        return absl::StatusOr<PlanReply>(absl::NotFoundError("none"));
      });
  for (BatchSource* source : {&larger, &small, &large, &large}) {
    ASSERT_TRUE(client.Plan(source, ShareOfStoreAll{0.8}, {}).ok());
  }
  ASSERT_TRUE(client.Plan(&medium, ShareOfStoreAll{0.8}, {}).ok());
  EXPECT_THAT(asked, ElementsAre(medium.key(), large.key(), larger.key()));
  // It keeps the last eight of them in mind.
  for (int64_t batch = 100; batch < 108; ++batch) {
    BatchSource source(batch);
    ASSERT_TRUE(client.Plan(&source, ShareOfStoreAll{0.8}, {}).ok());
  }
  ASSERT_TRUE(client.Plan(&small, ShareOfStoreAll{0.8}, {}).ok());
  EXPECT_EQ(asked.size(), 9u);
  EXPECT_EQ(asked[1], BatchSource(100).key());
}

TEST_F(PlanClientTest, TakesAPlanForALargerShapeUnlessAllCanBeKept) {
  PlanClient client(&connection_, {});
  BatchSource small(14), large(16);
  const Bytes budget(large.store_all().value() * 8 / 10);
  ASSERT_LT(budget, small.store_all());
  const auto first = client.Plan(&large, budget, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->for_larger);
  ASSERT_GT(first->reply.plan.prediction.recomputed_forwards, 0);
  PlanReply cached = first->reply;
  cached.source = PlanSource::kCache;
  ON_CALL(connection_, GetPlan).WillByDefault(Return(cached));

  const auto taken = client.Plan(&small, budget, {});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->for_larger);
  EXPECT_FALSE(taken->profiled);
  EXPECT_EQ(small.full_profiles, 0);
  EXPECT_EQ(taken->reply.plan.schedule, cached.plan.schedule);
  EXPECT_LT(taken->reply.plan.prediction.peak, cached.plan.prediction.peak);
  EXPECT_LE(taken->reply.plan.prediction.peak, budget);

  const auto refused = client.Plan(&small, small.store_all(), {});
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->for_larger);
  EXPECT_EQ(small.full_profiles, 1);
  EXPECT_EQ(refused->reply.plan.prediction.recomputed_forwards, 0);
}

// What is cached for a larger budget, or for nobody, is no answer.
TEST_F(PlanClientTest, ACachedPlanThatDoesNotHoldHereIsAMiss) {
  PlanReply nothing = Cached(Bytes(1));
  ASSERT_EQ(nothing.plan.status, PlanStatus::kProvenInfeasible);
  for (const PlanReply& cached : {Cached(ShareOfStoreAll{1.0}), nothing}) {
    source_.full_profiles = 0;
    EXPECT_CALL(connection_, GetPlan).WillOnce(Return(cached));
    const auto plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(source_.full_profiles, 1);
    EXPECT_LE(plan->reply.plan.prediction.peak, plan->reply.plan.budget);
  }
}

TEST_F(PlanClientTest, ASolvedPlanThatDoesNotFitIsRefused) {
  EXPECT_CALL(connection_, ComputePlan).WillOnce(Return(Cached(ShareOfStoreAll{1.0})));
  EXPECT_TRUE(absl::IsInternal(Plan().status()));
}

TEST_F(PlanClientTest, ErrorsOfTheServerAreAnswers) {
  EXPECT_CALL(connection_, GetPlan).WillOnce(Return(absl::PermissionDeniedError("no")));
  EXPECT_TRUE(absl::IsPermissionDenied(Plan().status()));
  EXPECT_EQ(source_.full_profiles, 0);
}

TEST_F(PlanClientTest, ComputeSendsAFreshProfileInAnyCase) {
  EXPECT_CALL(connection_, GetPlan).Times(0);
  PlanClient client(&connection_, {});
  const auto plan = client.Compute(&source_, ShareOfStoreAll{0.8}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->profiled);
}

TEST_F(PlanClientTest, ProfilingIsNotTakenFromTheTimeOfTheCall) {
  source_.structure_takes = milliseconds(60);
  Clock::time_point deadline;
  EXPECT_CALL(connection_, GetPlan)
      .WillOnce([&deadline](const auto&, const auto&, const CallOptions& options) {
        deadline = options.deadline;
        return absl::StatusOr<PlanReply>(absl::PermissionDeniedError("seen enough"));
      });
  const Clock::time_point limit = Clock::now() + seconds(5);
  CallOptions call;
  call.deadline = limit;
  (void)PlanClient(&connection_, {}).Plan(&source_, ShareOfStoreAll{0.8}, call);
  EXPECT_GE(deadline - limit, milliseconds(60));
}

// A budget in shares is one of this job's own profile: servers are asked in bytes.
TEST_F(PlanClientTest, BudgetsAreResolvedHere) {
  EXPECT_CALL(connection_, GetPlan(_, testing::VariantWith<Bytes>(_), _));
  EXPECT_CALL(connection_, ComputePlan(_, testing::VariantWith<Bytes>(_), _, _))
      .WillOnce(SolveHere);
  EXPECT_TRUE(Plan().ok());
}

// Asked again, the server need not send a schedule that it has sent.
TEST_F(PlanClientTest, SaysWhichPlanItHolds) {
  const PlanReply cached = Cached(ShareOfStoreAll{0.8});
  std::vector<std::shared_ptr<const stowage::Plan>> held;
  ON_CALL(connection_, GetPlan)
      .WillByDefault([&](auto&&, auto&&, const CallOptions& call) -> absl::StatusOr<PlanReply> {
        held.push_back(call.held);
        return cached;
      });
  PlanClient client(&connection_, {});
  for (int asked = 0; asked < 2; ++asked) {
    const auto plan =
        client.Plan(&source_, ShareOfStoreAll{0.8}, CallOptions::Within(std::chrono::seconds(10)));
    ASSERT_TRUE(plan.ok()) << plan.status();
  }
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0], nullptr);
  ASSERT_NE(held[1], nullptr);
  EXPECT_EQ(held[1]->schedule, cached.plan.schedule);
}

}  // namespace
}  // namespace stowage

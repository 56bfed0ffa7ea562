// Plans asked for by structure that was told from shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "client/rpc/plan_client.h"
#include "solvers/schedule/evaluator.h"
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

// A source that can tell structure without running anything: CountingSource, its workspaces not known.
class ShapesSource : public ProfileSource {
 public:
  ShapesSource() : measured_(SmallProfile()) {
    ChainSpec spec = std::get<Chain>(measured_.problem).spec();
    for (Stage& stage : spec.stages) {
      stage.forward_time = stage.backward_time = Nanos(0);
      stage.forward_overhead = stage.forward_saving_overhead = stage.backward_overhead = Bytes(0);
    }
    shapes_ = Profile{"small", Device(), *Chain::Create(spec), CostSource::kBytesOnly};
    for (Stage& stage : spec.stages) {
      stage.forward_overhead = stage.forward_saving_overhead = kWorkspace;
      stage.backward_overhead = kWorkspace;
    }
    measured_.problem = *Chain::Create(spec);
    measured_.cost_source = CostSource::kMeasured;
  }

  const Profile* Shapes() override {
    ++asked_for_shapes;
    return &*shapes_;
  }
  absl::StatusOr<const Profile*> Structure() override {
    ++measured_bytes;
    return &measured_;
  }
  absl::StatusOr<const Profile*> Full() override {
    ++full_profiles;
    return &measured_;
  }

  const Profile& shapes() const { return *shapes_; }
  const Profile& measured() const { return measured_; }

  int asked_for_shapes = 0;
  int measured_bytes = 0;
  int full_profiles = 0;

 private:
  static constexpr Bytes kWorkspace{1000};

  Profile measured_;
  std::optional<Profile> shapes_;
};

class ShapesClientTest : public PlanClientTest {
 protected:
  // Planned under workspaces.
  PlanReply CachedFor(const Budget& budget) {
    PlanReply reply = *SolveHere(shapes_source_.measured(), budget, {}, {});
    reply.source = PlanSource::kCache;
    return reply;
  }
  absl::StatusOr<ClientPlan> PlanWithin(const Budget& budget) {
    return PlanClient(&connection_, {}).Plan(&shapes_source_, budget, {});
  }
  Bytes StoreAll() const { return Instance(shapes_source_.measured().problem).store_all()->peak; }

  ShapesSource shapes_source_;
};

TEST_F(ShapesClientTest, AHitByShapesMeasuresNothing) {
  ASSERT_EQ(MakePlanKey(shapes_source_.shapes(), {}), MakePlanKey(shapes_source_.measured(), {}));
  for (const Budget& budget :
       {Budget(Bytes(StoreAll().value() * 8 / 10)), Budget(ShareOfStoreAll{0.8})}) {
    shapes_source_.asked_for_shapes = 0;
    const PlanReply cached = CachedFor(budget);
    ASSERT_GT(cached.plan.prediction.recomputed_forwards, 0);
    EXPECT_CALL(connection_, GetPlan).WillOnce(Return(cached));
    const auto plan = PlanWithin(budget);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(shapes_source_.asked_for_shapes, 1);
    EXPECT_EQ(shapes_source_.measured_bytes, 0);
    EXPECT_FALSE(plan->profiled);
    EXPECT_EQ(plan->reply.plan.schedule, cached.plan.schedule);
    // A share is the same number of bytes as for whoever measured; the peak is with workspaces.
    EXPECT_EQ(plan->reply.plan.budget, Bytes(StoreAll().value() * 8 / 10));
    EXPECT_EQ(plan->reply.plan.prediction.peak, cached.plan.prediction.peak);
    EXPECT_EQ(plan->reply.plan.bounds.store_all_peak, StoreAll());
  }
}

// The structure alone would fit; with the workspaces of those who measured the plan does not.
TEST_F(ShapesClientTest, WhatFitsOnlyWithoutWorkspacesIsMeasured) {
  const PlanReply cached = CachedFor(ShareOfStoreAll{0.8});
  const Bytes less = cached.plan.prediction.peak - Bytes(1);
  ASSERT_LE(Evaluator(shapes_source_.shapes().problem).Run(cached.plan.schedule)->peak, less);
  EXPECT_CALL(connection_, GetPlan).Times(2).WillRepeatedly(Return(cached));
  const auto plan = PlanWithin(less);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(shapes_source_.measured_bytes, 1);
  EXPECT_EQ(shapes_source_.full_profiles, 1);
  EXPECT_LE(plan->reply.plan.prediction.peak, less);
}

// A plan of a catalogue: made for modelled costs, which know no workspaces, and a profile is wanted. The job
// measures its own bytes, and asks for plans that leave its workspaces room.
TEST_F(ShapesClientTest, WorkspacesThatNobodyHasMeasuredAreMeasured) {
  Profile modelled = shapes_source_.measured();
  ChainSpec spec = std::get<Chain>(modelled.problem).spec();
  for (Stage& stage : spec.stages) {
    stage.forward_overhead = stage.forward_saving_overhead = stage.backward_overhead = Bytes(0);
  }
  modelled.problem = *Chain::Create(spec);
  std::vector<Bytes> asked;
  ON_CALL(connection_, GetPlan)
      .WillByDefault([&](const auto&, const Budget& budget, const CallOptions&) {
        absl::StatusOr<PlanReply> reply = SolveHere(modelled, budget, {}, {});
        reply->source = PlanSource::kCache;
        reply->profile_wanted = true;
        asked.push_back(reply->plan.budget);
        return reply;
      });
  const Bytes budget(StoreAll().value() * 9 / 10);
  const auto plan = PlanWithin(budget);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(shapes_source_.measured_bytes, 1);
  EXPECT_EQ(shapes_source_.full_profiles, 0);
  EXPECT_EQ(plan->reply.source, PlanSource::kCache);
  EXPECT_TRUE(plan->reply.profile_wanted);
  EXPECT_LE(Evaluator(std::get<Chain>(shapes_source_.measured().problem))
                .Run(plan->reply.plan.schedule)
                ->peak,
            budget);
  ASSERT_GE(asked.size(), 3u) << "by shapes, by bytes, and for less";
  EXPECT_EQ(asked[1], budget);
  EXPECT_LT(asked[2], budget);

  // Nobody is asked for ever, nor for what no plan can mend.
  asked.clear();
  const auto least = PlanWithin(Bytes(1));
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(shapes_source_.full_profiles, 1);
  EXPECT_LE(asked.size(), 2u);
}

// A server whose costs say less than the structure takes is not believed, in peaks or in shares.
TEST_F(ShapesClientTest, CostsBelowTheStructureAreNotBelieved) {
  PlanReply low_peak = CachedFor(ShareOfStoreAll{0.8});
  low_peak.plan.prediction.peak = Bytes(1);
  PlanReply low_store_all = CachedFor(ShareOfStoreAll{0.8});
  low_store_all.plan.bounds.store_all_peak = low_store_all.plan.prediction.peak;
  for (const PlanReply& cached : {low_peak, low_store_all}) {
    shapes_source_.measured_bytes = 0;
    EXPECT_CALL(connection_, GetPlan).Times(2).WillRepeatedly(Return(cached));
    ASSERT_TRUE(PlanWithin(ShareOfStoreAll{0.8}).ok());
    EXPECT_EQ(shapes_source_.measured_bytes, 1);
  }
}

TEST_F(ShapesClientTest, AMissGoesStraightToTimes) {
  EXPECT_CALL(connection_, GetPlan).WillOnce(Return(absl::NotFoundError("none")));
  const auto plan = PlanWithin(ShareOfStoreAll{0.8});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(shapes_source_.measured_bytes, 0);
  EXPECT_EQ(shapes_source_.full_profiles, 1);
}

// The least is found by a solver, under the job's own workspaces.
TEST_F(ShapesClientTest, TheLeastBudgetIsMeasured) {
  ASSERT_TRUE(PlanWithin(LeastBudget()).ok());
  EXPECT_EQ(shapes_source_.asked_for_shapes, 0);
  EXPECT_EQ(shapes_source_.measured_bytes, 1);
}

// A plan for a larger shape holds by its own key's structure, and here by this job's own workspaces.
TEST_F(ShapesClientTest, KeysOfLargerShapesAreAskedWithWhatIsMeasured) {
  PlanClientOptions options;
  options.other_keys = {PlanKey{1, Sha256("the next larger shape")}};
  std::vector<size_t> asked;
  ON_CALL(connection_, GetPlan)
      .WillByDefault([&asked](const std::vector<PlanKey>& keys, auto&&...) {
        asked.push_back(keys.size());
        return absl::StatusOr<PlanReply>(absl::NotFoundError("none"));
      });
  ASSERT_TRUE(PlanClient(&connection_, options).Plan(&shapes_source_, Bytes(1 << 30), {}).ok());
  EXPECT_THAT(asked, ElementsAre(1u, 2u));
  EXPECT_EQ(shapes_source_.measured_bytes, 1);
}

}  // namespace
}  // namespace stowage

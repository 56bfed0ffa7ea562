// Over a store that loses, delays, mixes up and spoils what it is given, answers go on and are right.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "server/service/plan_solver.h"
#include "server/store/faulty_plan_store.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "tests/server/service/planning_fixture.h"

namespace stowage::testing {
namespace {

class FaultyStoreTest : public ::testing::Test {
 protected:
  static FaultPolicy Policy() {
    FaultPolicy policy;
    policy.miss = policy.failed_put = policy.stale = policy.flipped = 0.2;
    return policy;
  }

  absl::StatusOr<ComputeAnswer> Compute(const Profile& profile, Bytes budget) {
    service_.ComputePlan(ComputeRequest{profile, budget, KeyOptions(), std::nullopt},
                         answers_.Of(++asked_));
    return answers_.WaitFor(asked_);
  }
  absl::StatusOr<ComputeAnswer> GetFrontier(const Profile& profile) {
    service_.GetFrontier(ComputeRequest{profile, Bytes(0), KeyOptions(), std::nullopt},
                         answers_.Of(++asked_));
    return answers_.WaitFor(asked_);
  }

  void ExpectRight(const Profile& profile, Bytes budget, const Plan& plan) {
    if (plan.status != PlanStatus::kFound) {
      EXPECT_LT(budget, LeastPeak(profile));
      return;
    }
    const auto replay = Evaluator(profile.problem).Run(plan.schedule);
    ASSERT_TRUE(replay.ok()) << replay.status();
    EXPECT_LE(replay->peak, budget);
    EXPECT_EQ(replay->peak, plan.prediction.peak);
    EXPECT_EQ(replay->makespan, plan.prediction.makespan);
  }

  void ExpectRight(const Profile& profile, const Frontier& frontier) {
    ASSERT_FALSE(frontier.points().empty());
    for (const Frontier::Point& point : frontier.points()) {
      const auto replay = Evaluator(profile.problem).Run(point.schedule.Unpack());
      ASSERT_TRUE(replay.ok()) << replay.status();
      EXPECT_EQ(replay->peak, point.peak);
      EXPECT_EQ(replay->makespan, point.makespan);
    }
  }

  Answers answers_;
  CountingMetrics metrics_;
  LibraryPlanSolver solver_;
  FaultyPlanStore store_{std::make_unique<MemoryPlanStore>(Bytes(64 << 20)), Policy()};
  PlanningService service_{PlanningOptions(), &store_, &solver_, &metrics_};
  int asked_ = 0;
};

TEST_F(FaultyStoreTest, AnswersGoOnAndAreRight) {
  std::mt19937 random(3);
  const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
  int hits = 0;
  for (int i = 0; i < 600; ++i) {
    ProfileShape shape;
    shape.stages = 5 + below(3);
    shape.forward_time = 100 + below(8);
    const Profile profile = ChainProfile(shape);
    const Bytes budget(900 + 200 * below(6));
    const auto answer = Compute(profile, budget);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ExpectRight(profile, budget, answer->plan);
    hits += answer->source == AnswerSource::kCache ? 1 : 0;
    if (i % 10 != 0) continue;
    const auto curve = GetFrontier(profile);
    ASSERT_TRUE(curve.ok()) << curve.status();
    ExpectRight(profile, *curve->frontier);
  }
  for (const Fault fault : {Fault::kMiss, Fault::kFailedPut, Fault::kStale, Fault::kFlipped}) {
    EXPECT_GT(store_.injected(fault), 10);
  }
  EXPECT_GT(hits, 100);
}

}  // namespace
}  // namespace stowage::testing

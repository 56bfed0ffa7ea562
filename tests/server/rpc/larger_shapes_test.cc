// A plan for a larger shape answers a smaller one: batches and lengths in buckets, through the real service.
#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "client/rpc/grpc_connection.h"
#include "client/rpc/plan_client.h"
#include "solvers/schedule/evaluator.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {
namespace {

Profile AtBatch(int64_t batch) {
  ProfileShape shape;
  shape.output = 10 * batch;
  return ChainProfile(shape);
}

class OneProfile final : public ProfileSource {
 public:
  explicit OneProfile(Profile profile) : profile_(std::move(profile)) {}
  absl::StatusOr<const Profile*> Structure() override { return &profile_; }
  absl::StatusOr<const Profile*> Full() override {
    ++profilings;
    return &profile_;
  }
  int profilings = 0;

 private:
  const Profile profile_;
};

struct LargerShapes : public ::testing::Test {
  LargerShapes() {
    GrpcOptions options;
    options.address = fixture.server->address();
    connection = MakeGrpcConnection(options);
  }
  absl::StatusOr<ClientPlan> Plan(PlanClient* client, OneProfile* source, Bytes budget) {
    return client->Plan(source, budget, CallOptions::Within(std::chrono::seconds(20)));
  }

  RpcFixture fixture;
  std::unique_ptr<PlanConnection> connection;
};

// Of batch 16 with a budget in which not even batch 13 can keep all.
Bytes TightBudget() { return Bytes(StoreAllPeak(AtBatch(16)).value() * 3 / 4); }

TEST_F(LargerShapes, TheLastBatchOfAnEpochTakesThePlanOfTheOthers) {
  PlanClient client(connection.get(), {});
  OneProfile full(AtBatch(16)), last(AtBatch(13));
  const auto solved = Plan(&client, &full, TightBudget());
  ASSERT_TRUE(solved.ok()) << solved.status();
  ASSERT_EQ(solved->reply.source, PlanSource::kSolved);
  const auto answer = Plan(&client, &last, TightBudget());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->for_larger);
  EXPECT_EQ(last.profilings, 0);
  EXPECT_EQ(answer->reply.key, MakePlanKey(AtBatch(16), KeyOptions()));
  EXPECT_EQ(answer->reply.plan.schedule, solved->reply.plan.schedule);
  // What it takes on the smaller batch, by that one's own profile.
  const auto own = Evaluator(std::get<Chain>(AtBatch(13).problem)).Run(answer->reply.plan.schedule);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(answer->reply.plan.prediction.peak, own->peak);
  EXPECT_LE(own->peak, TightBudget());
  EXPECT_EQ(fixture.solver.started(), 1);
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kDominance), 1);
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kHit), 0);
  EXPECT_EQ(fixture.metrics.profilings_saved, 1);
}

TEST_F(LargerShapes, AJobAsksByTheKeyOfItsBucket) {
  OneProfile bucket(AtBatch(16)), inside(AtBatch(13)), beyond(AtBatch(20));
  PlanClient other(connection.get(), {});
  ASSERT_TRUE(Plan(&other, &bucket, TightBudget()).ok());
  PlanClientOptions options;
  options.other_keys = {MakePlanKey(AtBatch(16), KeyOptions())};
  PlanClient job(connection.get(), options);
  const auto answer = Plan(&job, &inside, TightBudget());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->for_larger);
  EXPECT_EQ(inside.profilings, 0);
  // Who does not fit the bucket is told by its own evaluator.
  const auto not_inside = Plan(&job, &beyond, TightBudget());
  ASSERT_TRUE(not_inside.ok()) << not_inside.status();
  EXPECT_FALSE(not_inside->for_larger);
  EXPECT_EQ(beyond.profilings, 1);
}

}  // namespace
}  // namespace stowage::testing

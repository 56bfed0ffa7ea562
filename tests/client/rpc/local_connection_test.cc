// Plans and batches made in this process.
#include "client/rpc/local_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "client/rpc/local_frontier.h"
#include "solvers/model/field_error.h"
#include "tests/client/rpc/fake_server.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using Clock = CallOptions::Clock;

// SmallProfile with tensors and times that grow with the batch.
Profile AtBatch(int64_t batch) {
  Profile profile = SmallProfile();
  ChainSpec spec = std::get<Chain>(profile.problem).spec();
  spec.input = Bytes(batch * spec.input.value());
  for (Stage& stage : spec.stages) {
    stage.output = stage.output_gradient = Bytes(batch * stage.output.value());
    stage.saved = Bytes(batch * stage.saved.value());
    stage.forward_time = Nanos(batch * stage.forward_time.value());
    stage.backward_time = Nanos(batch * stage.backward_time.value());
  }
  profile.problem = *Chain::Create(std::move(spec));
  return profile;
}

BatchQuery TwoBatches() {
  BatchQuery query;
  query.profiles = {{2, AtBatch(2)}, {4, AtBatch(4)}};
  query.device_budget = Bytes(20000);
  query.reserved = Bytes(5000);
  return query;
}

TEST(LocalConnection, Plans) {
  const auto local = MakeLocalConnection();
  const auto reply = local->ComputePlan(SmallProfile(), Budget(ShareOfStoreAll{0.8}), {}, {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.status, PlanStatus::kFound);
  EXPECT_LE(reply->plan.prediction.peak, reply->plan.budget);
  EXPECT_EQ(reply->source, PlanSource::kLocal);
  EXPECT_EQ(reply->key, MakePlanKey(SmallProfile(), {}));
}

TEST(LocalFrontier, HasThePlansOfAllBudgets) {
  double share = 0;
  const auto made = MakeLocalFrontier(SmallProfile(), {}, 2, [&share](double s) { share = s; }, {});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(share, 1.0);
  EXPECT_LE(made->reply.points.size(), 2u);
  const auto local = MakeLocalConnection();
  // Those that the reply leaves out, too.
  for (const Frontier::Point& point : made->frontier.points()) {
    const auto plan = PlanFrom(*made, SmallProfile(), {}, point.peak);
    const auto solved = local->ComputePlan(SmallProfile(), point.peak, {}, {});
    ASSERT_TRUE(plan.ok() && solved.ok()) << plan.status();
    EXPECT_EQ(plan->plan.prediction.makespan, solved->plan.prediction.makespan);
    EXPECT_EQ(plan->plan.bounds.lower_bound, solved->plan.bounds.lower_bound);
    EXPECT_EQ(plan->plan.provenance.solver_version, solved->plan.provenance.solver_version);
    EXPECT_EQ(plan->key, solved->key);
    EXPECT_LE(plan->plan.prediction.peak, point.peak);
  }
  const auto least = PlanFrom(*made, SmallProfile(), {}, LeastBudget());
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->plan.budget, made->frontier.points().front().peak);
  EXPECT_EQ(PlanFrom(*made, SmallProfile(), {}, Bytes(1)).value().plan.status,
            PlanStatus::kProvenInfeasible);
  EXPECT_FALSE(PlanFrom(*made, SmallProfile(), {}, ShareOfStoreAll{2}).ok());
}

TEST(LocalConnection, TakesSolverFromTheOptions) {
  const auto local = MakeLocalConnection();
  KeyOptions options;
  options.solver = "store_all";
  const auto reply = local->ComputePlan(SmallProfile(), Budget(Bytes(10)), options, {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(reply->plan.provenance.solver, "store_all");
  options.solver = "no such solver";
  const auto unknown = local->ComputePlan(SmallProfile(), Budget(Bytes(10)), options, {});
  EXPECT_TRUE(absl::IsInvalidArgument(unknown.status())) << unknown.status();
}

TEST(LocalConnection, HasNoCacheAndKnowsItsSolvers) {
  const auto local = MakeLocalConnection();
  EXPECT_TRUE(absl::IsNotFound(local->GetPlan({PlanKey()}, Budget(LeastBudget{}), {}).status()));
  const auto capabilities = local->GetCapabilities({});
  ASSERT_TRUE(capabilities.ok());
  EXPECT_GE(capabilities->solvers.size(), 3u);
  EXPECT_EQ(local->name(), "local planning");
}

TEST(LocalConnection, DeadlineReachesTheSolver) {
  CallOptions options;
  options.deadline = Clock::now() + milliseconds(10);
  // A tenth of a second without it. Stages that differ: no two rows of a table are alike.
  ChainSpec spec = std::get<Chain>(SmallProfile(1000).problem).spec();
  for (size_t i = 0; i < spec.stages.size(); ++i) {
    const Bytes more(static_cast<int64_t>(7919 * (i % 97)));
    spec.stages[i].output += more;
    spec.stages[i].saved += more;
  }
  Profile large = SmallProfile();
  large.problem = *Chain::Create(spec);
  const auto start = Clock::now();
  const auto reply =
      MakeLocalConnection()->ComputePlan(large, Budget(ShareOfStoreAll{0.3}), {}, options);
  EXPECT_FALSE(reply.ok());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

TEST(LocalConnection, FindsTheLargestBatch) {
  const auto local = MakeLocalConnection();
  const auto fit = local->FitBatch(TwoBatches(), {});
  ASSERT_TRUE(fit.ok()) << fit.status();
  ASSERT_GT(fit->largest, 4);
  const auto plan_at = [&](int64_t batch) {
    return local->ComputePlan(AtBatch(batch), Budget(Bytes(15000)), {}, {}).value().plan.status;
  };
  EXPECT_EQ(plan_at(fit->largest), PlanStatus::kFound);
  EXPECT_NE(plan_at(fit->largest + 1), PlanStatus::kFound);
  EXPECT_GT(fit->samples_per_second, 0);
  EXPECT_GE(fit->points.size(), 3u);
  BatchQuery bounded = TwoBatches();
  bounded.max_batch_size = 3;
  EXPECT_EQ(local->FitBatch(bounded, {}).value().largest, 3);
}

TEST(LocalConnection, NamesTheFieldOfABadBatchQuery) {
  const auto local = MakeLocalConnection();
  const auto field_of = [&local](const BatchQuery& query) {
    const auto violation = GetFieldViolation(local->FitBatch(query, {}).status());
    return violation ? violation->field : "none";
  };
  EXPECT_EQ(field_of({}), "profiles");
  BatchQuery query = TwoBatches();
  query.reserved = Bytes(20001);
  EXPECT_EQ(field_of(query), "reserved_bytes");
  query = TwoBatches();
  query.device_budget = Bytes(-1);
  EXPECT_EQ(field_of(query), "device_budget_bytes");
  query = TwoBatches();
  query.max_batch_size = int64_t{1} << 40;
  EXPECT_EQ(field_of(query), "max_batch_size");
  query = TwoBatches();
  query.profiles[1].batch_size = 2;
  EXPECT_EQ(field_of(query), "profiles[1].batch_size");
}

}  // namespace
}  // namespace stowage

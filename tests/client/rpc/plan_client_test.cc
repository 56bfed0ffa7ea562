#include "client/rpc/plan_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/rpc/job_name.h"
#include "client/rpc/local_connection.h"
#include "client/rpc/mock_plan_connection.h"
#include "solvers/plan/problem_referee.h"
#include "tests/client/rpc/fake_server.h"

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

// A job whose structure is cheap, and which counts how often it is asked for more.
class CountingSource : public ProfileSource {
 public:
  CountingSource() : full_(SmallProfile()) {
    full_.cost_source = CostSource::kMeasured;
    ChainSpec spec = std::get<Chain>(full_.problem).spec();
    for (Stage& stage : spec.stages) stage.forward_time = stage.backward_time = Nanos(0);
    structure_ = Profile{"small", Device(), *Chain::Create(spec), CostSource::kBytesOnly};
  }

  absl::StatusOr<const Profile*> Structure() override {
    std::this_thread::sleep_for(structure_takes);
    return &*structure_;
  }
  absl::StatusOr<const Profile*> Full() override {
    ++full_profiles;
    return &full_;
  }

  const Profile& full() const { return full_; }

  int full_profiles = 0;
  milliseconds structure_takes{0};

 private:
  Profile full_;
  std::optional<Profile> structure_;
};

absl::StatusOr<PlanReply> SolveHere(const Profile& profile, const Budget& budget,
                                    const KeyOptions& key, const CallOptions& call) {
  absl::StatusOr<PlanReply> reply = MakeLocalConnection()->ComputePlan(profile, budget, key, call);
  if (reply.ok()) reply->source = PlanSource::kSolved;
  return reply;
}

class PlanClientTest : public testing::Test {
 protected:
  PlanClientTest() {
    ON_CALL(connection_, GetCapabilities).WillByDefault(Return(Capabilities()));
    ON_CALL(connection_, GetPlan).WillByDefault(Return(absl::NotFoundError("none")));
    ON_CALL(connection_, ComputePlan).WillByDefault(SolveHere);
  }

  PlanReply Cached(const Budget& budget) {
    PlanReply reply = *SolveHere(source_.full(), budget, {}, {});
    reply.source = PlanSource::kCache;
    return reply;
  }

  absl::StatusOr<ClientPlan> Plan(const PlanClientOptions& options = {}) {
    return PlanClient(&connection_, options)
        .Plan(&source_, ShareOfStoreAll{0.8}, CallOptions::Within(seconds(10)));
  }

  NiceMock<MockPlanConnection> connection_;
  CountingSource source_;
};

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
  Bytes store_all() const { return PlainTraining(profile_->problem)->peak; }

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
  Bytes StoreAll() const { return PlainTraining(shapes_source_.measured().problem)->peak; }

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
  ASSERT_LE(Simulate(shapes_source_.shapes().problem, cached.plan.schedule)->peak, less);
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
  EXPECT_LE(
      Simulate(std::get<Chain>(shapes_source_.measured().problem), plan->reply.plan.schedule)->peak,
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

// A budget in shares is one of this job's own profile: servers are asked in bytes.
TEST_F(PlanClientTest, BudgetsAreResolvedHere) {
  EXPECT_CALL(connection_, GetPlan(_, testing::VariantWith<Bytes>(_), _));
  EXPECT_CALL(connection_, ComputePlan(_, testing::VariantWith<Bytes>(_), _, _))
      .WillOnce(SolveHere);
  EXPECT_TRUE(Plan().ok());
}

// The environment without anything that names a job, until the test ends.
class JobNameTest : public testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }
  static void Clear() {
    for (const char* name :
         {"STOWAGE_JOB", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "LSB_JOBINDEX",
          "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
      unsetenv(name);
    }
  }
};

// Ranks differ in host, process and step, and in nothing that is looked at.
TEST_F(JobNameTest, IsOneForAllRanksOfALaunchersJob) {
  const std::vector<std::array<std::string, 3>> least_first = {
      {"OMPI_MCA_ess_base_jobid", "99", "openmpi:99"},
      {"PMIX_NAMESPACE", "prterun-a-7@1", "pmix:prterun-a-7@1"},
      {"TORCHELASTIC_RUN_ID", "bert", "torchelastic:bert"},
      {"LSB_JOBID", "12", "lsf:12"},
      {"LSB_JOBINDEX", "3", "lsf:12.3"},
      {"PBS_JOBID", "8[1].head", "pbs:8[1].head"},
      {"SLURM_JOB_ID", "4711", "slurm:4711"},
      {"SLURM_STEP_ID", "2", "slurm:4711"},
      {"STOWAGE_JOB", "mine", "mine"}};
  for (const auto& [name, value, job] : least_first) {
    setenv(name.c_str(), value.c_str(), 1);
    EXPECT_EQ(JobName(), job);
  }
  Clear();
  // What torchrun says without an id is the same for all jobs.
  setenv("TORCHELASTIC_RUN_ID", "none", 1);
  EXPECT_THAT(JobName(), testing::EndsWith(":" + std::to_string(getpid())));
}

TEST_F(JobNameTest, IsTheUsersOrTellsProcessesApart) {
  EXPECT_THAT(JobName(), testing::EndsWith(":" + std::to_string(getpid())));
  EXPECT_LE(JobName().size(), 128u);
  setenv("STOWAGE_JOB", "bert-7", 1);
  EXPECT_EQ(JobName(), "bert-7");
  setenv("STOWAGE_JOB", std::string(500, 'x').c_str(), 1);
  EXPECT_EQ(JobName(), std::string(128, 'x'));
}

}  // namespace
}  // namespace stowage

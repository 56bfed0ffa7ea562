#include "server/catalogue/catalogue_import.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/entries/entry_learning.h"
#include "server/entries/plan_lookup.h"
#include "server/entries/reports.h"
#include "server/entries/revisions.h"
#include "server/store/memory_plan_store.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/generate.h"
#include "tests/server/service/planning_fixture.h"
#include "tests/server/store/sqlite_files.h"

namespace stowage::testing {
namespace {

constexpr Bytes kAmple{64 << 20};

const std::vector<NetworkCatalogue>& Networks() {
  static const auto* const kNetworks =
      new std::vector<NetworkCatalogue>{*Generate({"alexnet", {224}, {8}, {"v100", "cpu"}}),
                                        *Generate({"vgg11", {64}, {4}, {"v100"}})};
  return *kNetworks;
}

CatalogueEnvironment Gpu(const std::string& tenant = "") {
  CatalogueEnvironment environment{"v100", tenant, Device()};
  environment.device.model = "Tesla V100-PCIE-16GB";
  environment.device.framework = "libtorch 2.11.0";
  environment.device.math_settings = "deterministic=0";
  environment.device.allocation_granularity = Bytes(512);
  return environment;
}

// What a job on such a device would send, its costs `factor` times those that are modelled, with as much
// workspace in every stage.
Profile JobProfile(const std::string& network, int64_t image, int64_t batch, int64_t factor = 1,
                   Bytes workspace = Bytes(0)) {
  const Chain modelled =
      *NetworkChain({network, image, batch, 1000}, FindDeviceKind("v100")->model);
  ChainSpec spec = modelled.spec();
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(factor * stage.forward_time.value());
    stage.backward_time = Nanos(factor * stage.backward_time.value());
    for (Bytes Stage::*overhead :
         {&Stage::forward_saving_overhead, &Stage::forward_overhead, &Stage::backward_overhead}) {
      stage.*overhead += workspace;
    }
  }
  return {network, Gpu().device, *Chain::Create(spec), CostSource::kMeasured};
}

PlanKey JobKey(const std::string& tenant = "") {
  KeyOptions options;
  options.tenant = tenant;
  return MakePlanKey(JobProfile("alexnet", 224, 8), options);
}

TEST(CatalogueImport, FillsAnyStoreUnderTheKeysOfJobs) {
  NoMetrics metrics;
  const TemporaryFolder folder;
  MemoryPlanStore memory(kAmple);
  const auto file = MustOpen(folder / "plans", &metrics);
  for (PlanStore* store : std::vector<PlanStore*>{&memory, file.get()}) {
    const CatalogueImport first = ImportCatalogue(Networks(), {Gpu(), Gpu("vision")}, store);
    EXPECT_EQ(first.imported, 4) << first.why;
    EXPECT_EQ(first.failed, 0) << first.why;
    for (const char* tenant : {"", "vision"}) {
      const auto entry = store->Get(JobKey(tenant), Access::kLookup);
      ASSERT_NE(entry, nullptr) << tenant;
      EXPECT_EQ(entry->tenant, tenant);
      EXPECT_EQ(entry->name, "alexnet");
      EXPECT_TRUE(entry->samples.empty());
      EXPECT_TRUE(ProfileWanted(*entry));
      EXPECT_LE(entry->plans.size(), kMaxPlansPerEntry);
      EXPECT_TRUE(entry->updated_s);
    }
    const CatalogueImport again = ImportCatalogue(Networks(), {Gpu(), Gpu("vision")}, store);
    EXPECT_EQ(again.imported, 0);
    EXPECT_EQ(again.present, 4);
  }
}

TEST(CatalogueImport, EveryBudgetThatAPlanFitsIsServed) {
  const CataloguedEntry made = *EntryOf(Networks()[0], Networks()[0].frontiers[0], Gpu());
  EXPECT_EQ(made.key, JobKey());
  const PlanEntry& entry = made.entry;
  ASSERT_GT(entry.plans.size(), 3u);
  const Problem& problem = entry.reference->problem();
  for (const StoredPlan& stored : entry.plans) {
    const Plan& plan = *stored.plan;
    const Simulation replay = *Evaluator(problem).Run(plan.schedule);
    EXPECT_EQ(replay.peak, plan.prediction.peak);
    EXPECT_EQ(replay.makespan, plan.prediction.makespan);
    EXPECT_GE(replay.makespan, plan.bounds.lower_bound);
    for (const Bytes budget : {plan.prediction.peak, plan.budget}) {
      const auto serving = PlansServing(entry, budget);
      ASSERT_FALSE(serving.empty());
      EXPECT_EQ(serving.front()->prediction.makespan, replay.makespan);
    }
  }
  EXPECT_EQ(PlansServing(entry, Instance(problem).store_all()->peak + Bytes(1))
                .front()
                ->prediction.recomputed_forwards,
            0);
  EXPECT_TRUE(PlansServing(entry, entry.plans.front().plan->prediction.peak - Bytes(1)).empty());
}

TEST(CatalogueImport, LeavesWhatSomebodyHasMeasured) {
  MemoryPlanStore store(kAmple);
  ASSERT_EQ(ImportCatalogue(Networks(), {Gpu()}, &store).imported, 2);
  PlanEntry measured = *store.Get(JobKey(), Access::kPeek);
  measured.samples = {{7, measured.reference, 0}};
  const int64_t read = measured.generation++;
  ASSERT_TRUE(store
                  .Replace(JobKey(), read, std::make_shared<const PlanEntry>(measured),
                           Durability::kRequired)
                  .ok());
  std::vector<NetworkCatalogue> newer = Networks();
  for (NetworkCatalogue& network : newer) network.solver_version = "99.0";
  const CatalogueImport second = ImportCatalogue(newer, {Gpu()}, &store);
  EXPECT_EQ(second.replaced, 1) << "that nobody has measured";
  EXPECT_EQ(second.present, 1) << "that somebody has";
  EXPECT_EQ(store.Get(JobKey(), Access::kPeek)->samples.size(), 1u);
}

TEST(CatalogueImport, WhatTheEvaluatorRefusesIsNotPut) {
  std::vector<NetworkCatalogue> wrong = Networks();
  wrong[0].frontiers[0].structure = Sha256("another network");
  MemoryPlanStore store(kAmple);
  const CatalogueImport import = ImportCatalogue(wrong, {Gpu()}, &store);
  EXPECT_EQ(import.failed, 1);
  EXPECT_NE(import.why, "");
  EXPECT_EQ(import.imported, 1);
  EXPECT_EQ(store.Get(JobKey(), Access::kPeek), nullptr);
}

// Jobs that ask through the service.
class CataloguedJobTest : public ::testing::Test {
 protected:
  CataloguedJobTest() {
    EXPECT_EQ(ImportCatalogue(Networks(), {Gpu()}, &fixture_.store).imported, 2);
  }

  std::shared_ptr<const PlanEntry> Entry() {
    return fixture_.store.Get(JobKey(), Access::kInspect);
  }

  PlanningFixture fixture_{false};
};

TEST_F(CataloguedJobTest, AreServedByKeyWithoutASolve) {
  const auto entry = Entry();
  std::vector<Budget> budgets = {ShareOfStoreAll{1.0}};
  for (const StoredPlan& stored : entry->plans) budgets.emplace_back(stored.plan->prediction.peak);
  for (const Budget& budget : budgets) {
    const auto served = fixture_.service->GetPlan({JobKey()}, budget);
    ASSERT_TRUE(served.ok()) << served.status();
    EXPECT_LE(served->plan->prediction.peak, served->budget);
    EXPECT_TRUE(served->profile_wanted);
  }
  EXPECT_EQ(fixture_.solver.started(), 0);
}

// A profile of equal costs, too.
TEST_F(CataloguedJobTest, AreServedByProfileWhereCostsAgree) {
  const auto answer = fixture_.Compute(JobProfile("alexnet", 224, 8), ShareOfStoreAll{0.9});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->source, AnswerSource::kCache);
  EXPECT_EQ(fixture_.solver.started(), 0);
}

// The first who measures is the reference; what was planned for the model serves on until it is solved anew.
TEST(CatalogueLearning, TheFirstProfileIsTheReference) {
  CataloguedEntry made = *EntryOf(Networks()[0], Networks()[0].frontiers[0], Gpu());
  const Bytes workspace(1 << 20);
  const Profile measured = JobProfile("alexnet", 224, 8, 3, workspace);
  auto problem = *MakePlanningProblem(measured, KeyOptions(), Sha256);
  const std::optional<PlanEntry> learned = Learn(made.entry, *problem, /*job=*/7);
  ASSERT_TRUE(learned.has_value());
  EXPECT_EQ(learned->samples.size(), 1u);
  EXPECT_EQ(IdealTime(learned->reference->problem()), IdealTime(measured.problem));
  EXPECT_EQ(learned->store_all.peak, Instance(measured.problem).store_all()->peak);
  EXPECT_FALSE(ProfileWanted(*learned));
  ASSERT_FALSE(learned->plans.empty());
  EXPECT_GE(learned->plans.size() + 2, made.entry.plans.size())
      << "workspaces cost no plan its place";
  for (const StoredPlan& stored : learned->plans) {
    EXPECT_EQ(Evaluator(measured.problem).Run(stored.plan->schedule)->peak,
              stored.plan->prediction.peak);
    EXPECT_LE(stored.plan->prediction.peak, stored.plan->budget);
    EXPECT_EQ(stored.plan->provenance.solver_version.rfind("modelled ", 0), 0u);
  }
  // The second one is a sample like any other.
  const auto second = Learn(*learned, *problem, /*job=*/8);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->samples.size(), 2u);
  EXPECT_EQ(second->reference, learned->reference);
}

// What people have pinned stays what they have pinned.
TEST(CatalogueLearning, APinnedPlanStaysPinned) {
  CataloguedEntry made = *EntryOf(Networks()[0], Networks()[0].frontiers[0], Gpu());
  const Plan& last = *made.entry.plans.back().plan;
  const PlanEntry pinned = *Pin(made.entry, {last.budget, last.revision});
  auto problem = *MakePlanningProblem(JobProfile("alexnet", 224, 8, 3), KeyOptions(), Sha256);
  const std::optional<PlanEntry> learned = Learn(pinned, *problem, 7);
  ASSERT_TRUE(learned.has_value());
  ASSERT_NE(PinnedRevision(*learned, last.budget), nullptr);
  EXPECT_EQ(PinnedRevision(*learned, last.budget)->plan->schedule, last.schedule);
}

}  // namespace
}  // namespace stowage::testing

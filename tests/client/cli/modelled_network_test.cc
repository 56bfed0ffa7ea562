#include "client/cli/modelled_network.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/cli/batch_fitting.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/generate.h"

namespace stowage {
namespace {

const std::vector<NetworkCatalogue>& Networks() {
  static const auto* const kNetworks =
      new std::vector<NetworkCatalogue>{*Generate({"resnet18", {64}, {8, 16}, {"v100", "cpu"}})};
  return *kNetworks;
}

Profile At(int64_t batch, const char* device = "v100") {
  return *ModelledNetwork({"resnet18", 64, 1, 1000}, *FindDeviceKind(device)).At(batch);
}

// What a job tells from shapes, with `workspace` in every stage.
Profile Timeless(int64_t batch, Bytes workspace = Bytes(0)) {
  Profile profile = At(batch);
  ChainSpec spec = std::get<Chain>(profile.problem).spec();
  for (Stage& stage : spec.stages) {
    stage.forward_time = stage.backward_time = Nanos(0);
    stage.forward_overhead += workspace;
    stage.forward_saving_overhead += workspace;
  }
  spec.loss.forward_time = spec.loss.backward_time = Nanos(0);
  profile.problem = *Chain::Create(std::move(spec));
  profile.cost_source = CostSource::kBytesOnly;
  return profile;
}

Bytes PlainPeak(const Profile& profile) { return Instance(profile.problem).store_all()->peak; }

TEST(PlanFromCatalogue, IsValidatedUnderTheCostsOfTheKind) {
  for (const char* device : {"v100", "cpu", "t4"}) {
    SCOPED_TRACE(device);
    const Profile profile = At(16, device);
    const Bytes budget = ShareOf({0.7}, PlainPeak(profile));
    const auto plan = PlanFromCatalogue(Networks(), device, profile, budget);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(plan->has_value());
    EXPECT_EQ((*plan)->status, PlanStatus::kFound);
    const Simulation replay = *Evaluator(profile.problem).Run((*plan)->schedule);
    EXPECT_LE(replay.peak, budget);
    EXPECT_EQ(replay.makespan, (*plan)->prediction.makespan);
  }
}

TEST(PlanFromCatalogue, ProvesWhatIsBelowTheLeast) {
  const Profile profile = At(16);
  const Bytes least = Networks()[0].frontiers[2].info.least_budget;
  const auto below = PlanFromCatalogue(Networks(), "v100", profile, least - Bytes(1));
  ASSERT_TRUE(below.ok() && below->has_value());
  EXPECT_EQ((*below)->status, PlanStatus::kProvenInfeasible);
  PlanOptions options;
  options.recompute_only = true;
  const Plan solved = *MakePlan(profile, least - Bytes(1), options);
  EXPECT_EQ(solved.status, PlanStatus::kProvenInfeasible);
}

TEST(PlanFromCatalogue, KnowsNothingOfOtherSizesAndOtherTimes) {
  const Bytes ample(int64_t{1} << 40);
  EXPECT_FALSE(PlanFromCatalogue(Networks(), "v100", At(17), ample)->has_value());
  EXPECT_FALSE(PlanFromCatalogue({}, "v100", At(16), ample)->has_value());
  // Of no kind, with times of its own.
  EXPECT_FALSE(PlanFromCatalogue(Networks(), "", At(16), ample)->has_value());
}

// Without times a plan that fits is as good as another; its workspaces are the profile's.
TEST(PlanFromCatalogue, FitsProfilesWithoutTimes) {
  const Bytes workspace(4 << 20);
  const Profile lean = Timeless(16), roomy = Timeless(16, workspace);
  const Bytes budget = ShareOf({0.7}, PlainPeak(lean));
  for (const Profile* profile : {&lean, &roomy}) {
    const auto plan = PlanFromCatalogue(Networks(), "", *profile, budget + workspace);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(plan->has_value());
    EXPECT_LE(Evaluator(profile->problem).Run((*plan)->schedule)->peak, budget + workspace);
  }
  // Nothing is proven of workspaces that the catalogue does not know.
  EXPECT_FALSE(PlanFromCatalogue(Networks(), "", roomy, Bytes(1))->has_value());
}

// Every batch is plain training's, the catalogue's, or else the solver's.
TEST(FitBatches, SolvesOnlyWhatTheCatalogueDoesNotKnow) {
  const ModelledNetwork network({"resnet18", 64, 1, 1000}, *FindDeviceKind("v100"));
  const Bytes budget = ShareOf({0.8}, PlainPeak(At(8)));
  std::set<PlanKey> solved;
  const auto known = [&](const Profile& profile) {
    return PlanFromCatalogue(Networks(), "v100", profile, budget);
  };
  const auto solve = [&](const Profile& profile) {
    solved.insert(MakePlanKey(profile, {}));
    PlanOptions options;
    options.solve.slots = 100;
    options.recompute_only = true;
    return MakePlan(profile, budget, options);
  };
  const auto fitting = FitBatches(network, budget, /*max_batch=*/64, /*asked=*/16, known, solve);
  ASSERT_TRUE(fitting.ok()) << fitting.status();
  bool catalogued = false;
  for (const FittedBatch& one : fitting->batches) {
    SCOPED_TRACE(one.batch);
    const bool is_solved = solved.count(MakePlanKey(At(one.batch), {})) > 0;
    const bool is_there = one.batch == 8 || one.batch == 16;
    EXPECT_TRUE(is_solved || one.by != FittedBy::kSolver);
    EXPECT_TRUE(is_there || one.by != FittedBy::kCatalogue);
    EXPECT_FALSE(is_solved && (one.plain_fits() || is_there));
    catalogued |= one.by == FittedBy::kCatalogue;
  }
  EXPECT_TRUE(catalogued);
  EXPECT_FALSE(solved.empty());
}

}  // namespace
}  // namespace stowage

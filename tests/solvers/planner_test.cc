#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "solvers/model/field_error.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/schedule/branches.h"

namespace stowage {
namespace {

Profile RandomProfile(int length, uint64_t seed) {
  std::mt19937_64 rng(seed);
  return Profile{"random", Device(), testing::RandomChain(length, {}, &rng)};
}

TEST(Planner, ListsItsSolvers) {
  std::vector<std::string> names;
  for (const Solver* solver : AllSolvers()) names.push_back(solver->info().name);
  EXPECT_EQ(names, (std::vector<std::string>{"store_all", "checkpoint_sequential", "chen_sqrt",
                                             "chen_greedy", "revolve", "optimal_persistent",
                                             "non_persistent", "joint", "offload_dynprog",
                                             "offload_greedy", "offload_vdnn", "offload_tflms",
                                             "offload_autoswap", "order_search", "division_tree"}));
}

TEST(Planner, FillsInWhatAPlanCarries) {
  const absl::StatusOr<Plan> plan = MakePlan(RandomProfile(10, 1), ShareOfStoreAll{0.8}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_EQ(plan->provenance.solver, "non_persistent");
  EXPECT_EQ(plan->provenance.solver_version, kSolverVersion);
  EXPECT_GT(plan->provenance.solve_time, Nanos(0));
  EXPECT_EQ(plan->budget.value(),
            static_cast<int64_t>(0.8 * static_cast<double>(plan->bounds.store_all_peak.value())));
  EXPECT_LE(plan->prediction.peak, plan->budget);
  EXPECT_GE(plan->prediction.makespan, plan->bounds.lower_bound);
  EXPECT_GE(plan->gap(), 0.0);
  EXPECT_GT(plan->prediction.recomputed_forwards, 0);
}

// Ten equal stages of 10 bytes, the best of which gives up two.
TEST(Planner, SaysWhenNoScheduleOfAnyClassIsFaster) {
  ChainSpec spec;
  Stage s;
  s.forward_time = s.backward_time = Nanos(100);
  s.output = Bytes(1);
  s.saved = Bytes(10);
  spec.stages.assign(10, s);
  const Profile profile{"equal", Device(), *Chain::Create(spec)};
  const PlanOptions periodic{"checkpoint_sequential", {}};
  const absl::StatusOr<Plan> plan = MakePlan(profile, Bytes(82), periodic);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->bounds.lower_bound, plan->bounds.store_all_makespan);
  const absl::StatusOr<Plan> best = MakePlan(profile, Bytes(82), {});
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->gap(), 0.0);
  EXPECT_TRUE(best->bounds.proven_optimal);
  EXPECT_EQ(best->prediction.makespan, best->bounds.lower_bound);
}

// Sizes that the bound's search has to round, on chains too long for an exhaustive one.
TEST(Planner, NoPlanIsFasterThanTheBound) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 40; ++i) {
    testing::RandomChainOptions sizes = testing::VariedOptions(i);
    sizes.max_size = i % 2 == 0 ? 1000000 : 100;
    sizes.max_time = 1000;
    const Chain chain = testing::RandomChain(8 + i, sizes, &rng);
    const absl::StatusOr<Frontier> frontier = MakeFrontier(chain, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    const size_t count = frontier->points().size();
    for (size_t k = 0; k < count; k += 1 + count / 50) {
      const Frontier::Point& point = frontier->points()[k];
      ASSERT_LE(StrongestMakespanLowerBound(chain, point.peak), point.makespan)
          << point.peak.value() << '\n'
          << testing::Describe(chain);
    }
  }
}

TEST(Planner, StoresAllWhenItFits) {
  const absl::StatusOr<Plan> plan = MakePlan(RandomProfile(10, 2), ShareOfStoreAll{1.0}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->provenance.solver, "store_all");
  EXPECT_EQ(plan->prediction.recomputed_forwards, 0);
  EXPECT_EQ(plan->prediction.makespan, plan->bounds.store_all_makespan);
}

TEST(Planner, ResolvesTheLeastBudget) {
  const Profile profile = RandomProfile(10, 3);
  const absl::StatusOr<Plan> least = MakePlan(profile, LeastBudget{}, {});
  ASSERT_TRUE(least.ok());
  ASSERT_EQ(least->status, PlanStatus::kFound);
  EXPECT_EQ(least->prediction.peak, least->budget);
  const absl::StatusOr<Plan> below = MakePlan(profile, least->budget - Bytes(1), {});
  ASSERT_EQ(below->status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(below->bounds.least_budget, least->budget);
  EXPECT_TRUE(below->schedule.empty());
  // The least of a class is that class's own.
  PlanOptions store_all;
  store_all.solver = "store_all";
  EXPECT_EQ(MakePlan(profile, LeastBudget{}, store_all)->budget, least->bounds.store_all_peak);
}

TEST(Planner, NamesWhatIsWrongWithARequest) {
  const Profile profile = RandomProfile(3, 4);
  PlanOptions unknown;
  unknown.solver = "magic";
  EXPECT_EQ(GetFieldViolation(MakePlan(profile, Bytes(5), unknown).status())->field,
            "options.solver");
  EXPECT_EQ(GetFieldViolation(MakePlan(profile, LeastBudget{}, unknown).status())->field,
            "options.solver");
  EXPECT_EQ(GetFieldViolation(MakePlan(profile, Bytes(-5), {}).status())->field, "budget.bytes");
  EXPECT_EQ(GetFieldViolation(MakePlan(profile, ShareOfStoreAll{2.0}, {}).status())->field,
            "budget.share_of_store_all");
}

TEST(Planner, ChecksOptionsWhateverTheSolver) {
  const Profile profile = RandomProfile(3, 4);
  for (const char* solver : {"", "store_all", "checkpoint_sequential", "non_persistent"}) {
    for (const int64_t slots : {int64_t{-1}, int64_t{1000001}}) {
      PlanOptions options;
      options.solver = solver;
      options.solve.slots = slots;
      EXPECT_EQ(GetFieldViolation(MakePlan(profile, Bytes(5), options).status())->field,
                "options.slots");
      EXPECT_EQ(GetFieldViolation(MakeFrontier(profile.problem, options).status())->field,
                "options.slots");
    }
    PlanOptions options;
    options.solver = solver;
    options.solve.threads = 0;
    EXPECT_EQ(GetFieldViolation(MakePlan(profile, Bytes(5), options).status())->field,
              "options.threads");
  }
}

Profile LinkedProfile(int length, uint64_t seed) {
  Profile profile = RandomProfile(length, seed);
  profile.device.host_memory = Bytes(1000000);
  profile.device.to_host_bytes_per_second = profile.device.to_device_bytes_per_second = 2000000000;
  return profile;
}

TEST(Planner, ChecksTheLinkWhateverTheSolver) {
  const Instance instance(RandomProfile(3, 4).problem, TransferModel());
  for (const char* solver : {"", "store_all", "offload_greedy"}) {
    PlanOptions options;
    options.solver = solver;
    const std::string field = "transfers.to_host.bytes_per_second";
    EXPECT_EQ(GetFieldViolation(MakePlan(instance, Bytes(5), options).status())->field, field);
    EXPECT_EQ(GetFieldViolation(MakeFrontier(instance, options).status())->field, field);
    EXPECT_EQ(GetFieldViolation(ResolveBudget(instance, LeastBudget{}, options).status())->field,
              field);
    // What may not be used is not looked at.
    options.recompute_only = true;
    EXPECT_TRUE(MakePlan(instance, Bytes(5), options).ok());
  }
}

TEST(Planner, UsesTheLinkOfAProfilesDevice) {
  const Profile profile = LinkedProfile(10, 1);
  PlanOptions options;
  options.solver = "offload_greedy";
  const Plan store_all = *MakePlan(profile, ShareOfStoreAll{1.0}, options);
  EXPECT_EQ(store_all.prediction.offloaded, Bytes(0));
  const absl::StatusOr<Plan> plan = MakePlan(profile, ShareOfStoreAll{0.8}, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_GT(plan->prediction.offloaded, Bytes(0));
  EXPECT_EQ(plan->prediction.prefetched, plan->prediction.offloaded);
  EXPECT_EQ(plan->prediction.recomputed_forwards, 0);
  EXPECT_LE(plan->prediction.host_peak, profile.device.host_memory);
  EXPECT_GE(plan->prediction.makespan, plan->bounds.lower_bound);
  EXPECT_EQ(MakeFrontier(profile, options)->At(plan->prediction.peak)->makespan,
            MakeFrontier(profile, options)->At(plan->budget)->makespan);
  EXPECT_LT(*ResolveBudget(profile, LeastBudget{}, options), store_all.prediction.peak);

  Plan again = *plan;
  const Instance instance = InstanceOf(profile, /*recompute_only=*/false);
  EXPECT_TRUE(ValidatePlan(instance, &again).ok());
  EXPECT_FALSE(ValidatePlan(InstanceOf(profile, /*recompute_only=*/true), &again).ok());
  again.bounds = Bounds();
  EXPECT_TRUE(ValidatePlan(instance, &again).ok());
  EXPECT_EQ(again.bounds.lower_bound, plan->bounds.lower_bound);
}

TEST(Planner, CopiesNothingWhereOnlyRecomputingIsAllowed) {
  const Profile profile = LinkedProfile(10, 1);
  PlanOptions options;
  options.solver = "offload_greedy";
  options.recompute_only = true;
  const absl::StatusOr<Plan> plan = MakePlan(profile, ShareOfStoreAll{0.8}, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(plan->bounds.least_budget, plan->bounds.store_all_peak);
  EXPECT_EQ(*ResolveBudget(profile, LeastBudget{}, options), plan->bounds.store_all_peak);
  EXPECT_EQ(MakeFrontier(profile, options)->points().size(), 1u);
  // Nor is it bounded by what copies could do.
  options.solver = "optimal_persistent";
  const Plan recomputing = *MakePlan(profile, ShareOfStoreAll{0.6}, options);
  options.recompute_only = false;
  const Plan with_link = *MakePlan(profile, ShareOfStoreAll{0.6}, options);
  EXPECT_EQ(recomputing.schedule, with_link.schedule);
  EXPECT_GT(recomputing.bounds.lower_bound, with_link.bounds.lower_bound);
}

// Who asks for a table hears that it is too large; nothing else is put in its place.
TEST(Planner, RefusesTheSlotsAskedForWhereTheyDoNotFit) {
  PlanOptions options;
  options.solve.slots = 1000000;
  options.solve.table_limit = Bytes(1 << 20);
  std::mt19937_64 rng(5);
  testing::RandomChainOptions random;
  random.max_size = 1000000;
  const Chain chain = testing::RandomChain(60, random, &rng);
  const Bytes budget(Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value() / 10 * 7);
  const absl::Status status = MakePlan(chain, budget, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(Planner, MakesFrontiers) {
  const Profile profile = RandomProfile(10, 6);
  const Chain& chain = std::get<Chain>(profile.problem);
  const absl::StatusOr<Frontier> frontier = MakeFrontier(profile.problem, {});
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_EQ(frontier->info().solver, "non_persistent");
  EXPECT_EQ(frontier->Encode(), MakeFrontier(chain, {})->Encode());
  PlanOptions options;
  options.solver = "checkpoint_sequential";
  EXPECT_EQ(MakeFrontier(profile.problem, options)->info().solver, "checkpoint_sequential");
  options.solver = "magic";
  EXPECT_EQ(GetFieldViolation(MakeFrontier(profile.problem, options).status())->field,
            "options.solver");
  options.solver = "";
  options.solve.table_limit = Bytes(10);
  EXPECT_EQ(MakeFrontier(profile.problem, options)->info().solver, "checkpoint_sequential");
}

// A chain too long for the optimum's tables is still planned, and says by what.
TEST(Planner, FallsBackToPeriodicCheckpointingOnVeryLongChains) {
  PlanOptions options;
  options.solve.table_limit = Bytes(1000);
  const absl::StatusOr<Plan> plan = MakePlan(RandomProfile(60, 5), ShareOfStoreAll{0.7}, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->provenance.solver, "checkpoint_sequential");
}

TEST(Planner, PlansTheLongestChainsToo) {
  ChainSpec spec;
  Stage s;
  s.output = s.saved = Bytes(1000);
  s.forward_time = s.backward_time = Nanos(10);
  const std::pair<size_t, Budget> cases[] = {{20000, LeastBudget{}},
                                             {Chain::kMaxStages, ShareOfStoreAll{0.5}}};
  for (const auto& [length, budget] : cases) {
    spec.stages.assign(length, s);
    const absl::StatusOr<Plan> plan =
        MakePlan(Profile{"long", Device(), *Chain::Create(spec)}, budget, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->status, PlanStatus::kFound);
    EXPECT_EQ(plan->provenance.solver, "checkpoint_sequential");
  }
}

// A bound is of schedules that run nothing on the communication stream: one that does may be faster, and is not
// proven optimal by that.
TEST(Planner, BoundsLeaveOutTheTimeOfCommunication) {
  const Graph graph = testing::Branches();
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = testing::BranchesSchedule();
  plan.budget = Bytes(1000000);
  const Instance instance{graph, std::nullopt};
  ASSERT_TRUE(ValidatePlan(instance, &plan).ok());
  ASSERT_LT(plan.prediction.makespan, graph.ideal_time());
  StrengthenBound(instance, &plan);
  EXPECT_EQ(plan.bounds.lower_bound, graph.ideal_time() - plan.prediction.communication_time);
  EXPECT_LE(plan.bounds.lower_bound, plan.prediction.makespan);
  EXPECT_FALSE(plan.bounds.proven_optimal);
}

}  // namespace
}  // namespace stowage

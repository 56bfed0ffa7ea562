// What every chain solver must do, whatever its class.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/plan/store_all_schedule.h"
#include "solvers/planner.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

// A solver, and whether it may use a link to host memory.
using Case = std::tuple<const ChainSolver*, bool>;

bool OffloadsByAStrategy(const ChainSolver& solver) {
  return solver.info().name.rfind("offload", 0) == 0;
}

bool UsesALink(const ChainSolver& solver) {
  return solver.info().name == "joint" || OffloadsByAStrategy(solver);
}

// Of those that do not look at a link, one meets one, too.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const ChainSolver* solver : AllSolvers()) {
    cases.emplace_back(solver, false);
    if (UsesALink(*solver) || solver == &OptimalPersistentSolver())
      cases.emplace_back(solver, true);
  }
  return cases;
}

class ChainSolvers : public ::testing::TestWithParam<Case> {
 protected:
  const ChainSolver& solver() const { return *std::get<0>(GetParam()); }

  // The next chain has another link.
  void NewLink(std::mt19937_64* rng) {
    if (std::get<1>(GetParam())) options_.transfers = testing::RandomTransferModel(rng);
  }
  // Its frontiers are: some tests take fewer and shorter chains.
  bool MadeOfManySolves() const { return std::get<1>(GetParam()) && UsesALink(solver()); }
  // Of its class. TFLMS watches no memory: it may find nothing where something fits.
  bool FindsAllThatFits() const {
    return !options_.transfers || solver().info().name != "offload_tflms";
  }
  const SolveOptions& solve_options() const { return options_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget) const {
    return solver().Solve(chain, budget, options_);
  }
  Bytes Least(const Chain& chain) const {
    const absl::StatusOr<Bytes> least = solver().LeastBudget(chain, options_);
    EXPECT_TRUE(least.ok()) << least.status();
    return least.ok() ? *least : Bytes(0);
  }
  Simulation Run(const Chain& chain, const Schedule& schedule) const {
    const absl::StatusOr<Simulation> run = options_.transfers
                                               ? Simulate(chain, schedule, *options_.transfers)
                                               : Simulate(chain, schedule);
    EXPECT_TRUE(run.ok()) << run.status() << testing::Describe(chain);
    return run.ok() ? *run : Simulation();
  }
  testing::NaiveResult Naive(const Chain& chain, const Schedule& schedule) const {
    return testing::NaiveReplay(chain, schedule,
                                options_.transfers ? &*options_.transfers : nullptr);
  }

 private:
  SolveOptions options_;
};

TEST_P(ChainSolvers, PlansAreValidAndWithinBudget) {
  std::mt19937_64 rng(20);
  for (int i = 0; i < 200; ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    const Chain chain = testing::RandomChain(1 + i % 12, options, &rng);
    NewLink(&rng);
    const int64_t all = Simulate(chain, StoreAllSchedule(chain))->peak.value();
    for (const double share : {0.3, 0.5, 0.7, 0.9, 1.0, 2.0}) {
      const Bytes budget(static_cast<int64_t>(share * static_cast<double>(all)));
      const absl::StatusOr<Plan> plan = Solve(chain, budget);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->status == PlanStatus::kFound, budget >= Least(chain))
          << testing::Describe(chain);
      if (plan->status != PlanStatus::kFound) continue;
      const testing::NaiveResult naive = Naive(chain, plan->schedule);
      EXPECT_TRUE(naive.valid) << testing::Describe(chain);
      EXPECT_LE(naive.peak, budget.value()) << testing::Describe(chain);
      EXPECT_FALSE(plan->bounds.schedule_class.empty());
    }
  }
}

TEST_P(ChainSolvers, LeastBudgetIsExact) {
  std::mt19937_64 rng(21);
  for (int i = 0; i < 100; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 9, {}, &rng);
    NewLink(&rng);
    const Bytes least = Least(chain);
    const absl::StatusOr<Plan> plan = Solve(chain, least);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->status, PlanStatus::kFound) << testing::Describe(chain);
    EXPECT_EQ(Run(chain, plan->schedule).peak, least) << testing::Describe(chain);
    if (least == Bytes(0)) continue;
    const absl::StatusOr<Plan> below = Solve(chain, least - Bytes(1));
    EXPECT_NE(below->status, PlanStatus::kFound);
    EXPECT_TRUE(below->status == PlanStatus::kProvenInfeasible || !FindsAllThatFits());
    if (below->status == PlanStatus::kProvenInfeasible) {
      EXPECT_EQ(below->bounds.least_budget, least);
    }
    EXPECT_TRUE(below->schedule.empty());
  }
}

TEST_P(ChainSolvers, StoresAllWheneverItFits) {
  std::mt19937_64 rng(22);
  for (int i = 0; i < 100; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 9, {}, &rng);
    NewLink(&rng);
    const Bytes all = Simulate(chain, StoreAllSchedule(chain))->peak;
    EXPECT_EQ(Solve(chain, all)->schedule, StoreAllSchedule(chain)) << testing::Describe(chain);
  }
}

TEST_P(ChainSolvers, HandlesChainsThatCostNothing) {
  std::mt19937_64 rng(31);
  ChainSpec spec;
  spec.stages.resize(3);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  const absl::StatusOr<Plan> plan = Solve(chain, Bytes(0));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kFound);
}

TEST_P(ChainSolvers, HandlesTheLargestSizes) {
  std::mt19937_64 rng(31);
  ChainSpec spec;
  spec.stages.resize(2);
  spec.stages[0].output = spec.stages[0].saved = Bytes(kMaxTotal / 4);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  EXPECT_TRUE(Solve(chain, Bytes(kMaxTotal / 8)).ok());
  EXPECT_TRUE(Solve(chain, Bytes(kMaxTotal)).ok());
  EXPECT_TRUE(Solve(chain, Bytes(INT64_MAX)).ok());
}

TEST_P(ChainSolvers, MoreBudgetIsNeverSlower) {
  if (OffloadsByAStrategy(solver())) GTEST_SKIP() << "of a strategy, only frontiers are so";
  std::mt19937_64 rng(26);
  testing::RandomChainOptions options;
  options.max_size = 1000;
  options.max_time = 1000;
  for (const int length : {4, 9, 17, MadeOfManySolves() ? 20 : 40}) {
    const Chain chain = testing::RandomChain(length, options, &rng);
    NewLink(&rng);
    const int64_t all = Simulate(chain, StoreAllSchedule(chain))->peak.value();
    const int64_t least = Least(chain).value();
    Nanos before(INT64_MAX);
    for (int i = 0; i <= 12; ++i) {
      const Bytes budget(least + (all - least) * i / 12);
      const absl::StatusOr<Plan> plan = Solve(chain, budget);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status, PlanStatus::kFound) << testing::Describe(chain);
      const Nanos makespan = Run(chain, plan->schedule).makespan;
      EXPECT_LE(makespan, before) << "at " << budget.value() << " of " << testing::Describe(chain);
      before = makespan;
    }
    EXPECT_EQ(before, chain.ideal_time());
  }
}

TEST_P(ChainSolvers, EqualInputGivesEqualPlansAndFrontiersWhateverTheThreads) {
  std::mt19937_64 rng(27);
  testing::RandomChainOptions random;
  random.max_size = 100000;
  random.max_time = 1000;
  for (const int length : {6, MadeOfManySolves() ? 9 : 30, MadeOfManySolves() ? 12 : 60}) {
    const Chain chain = testing::RandomChain(length, random, &rng);
    NewLink(&rng);
    const int64_t all = Simulate(chain, StoreAllSchedule(chain))->peak.value();
    const Bytes budget(std::max(all * 6 / 10, Least(chain).value()));
    SolveOptions options = solve_options();
    const Schedule first = solver().Solve(chain, budget, options)->schedule;
    const std::string frontier = solver().SolveFrontier(chain, options)->Encode();
    options.threads = 2;
    EXPECT_EQ(solver().Solve(chain, budget, options)->schedule, first);
    EXPECT_EQ(solver().SolveFrontier(chain, options)->Encode(), frontier);
  }
}

TEST_P(ChainSolvers, AnswersEveryBudgetOfOneStage) {
  std::mt19937_64 rng(31);
  ChainSpec spec;
  Stage stage;
  stage.forward_time = stage.backward_time = Nanos(5);
  stage.output = stage.output_gradient = Bytes(10);
  stage.saved = Bytes(30);
  spec.input = Bytes(7);
  spec.stages.push_back(stage);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  const Bytes all = Simulate(chain, StoreAllSchedule(chain))->peak;
  EXPECT_EQ(Least(chain), all);
  for (const Bytes budget : {Bytes(0), Bytes(1), all - Bytes(1)}) {
    const absl::StatusOr<Plan> plan = Solve(chain, budget);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible) << budget.value();
    EXPECT_EQ(plan->bounds.least_budget, all);
  }
  for (const Bytes budget : {all, all + Bytes(1), Bytes(INT64_MAX)}) {
    EXPECT_EQ(Solve(chain, budget)->schedule, StoreAllSchedule(chain));
  }
}

TEST_P(ChainSolvers, ProvesThatAStageLargerThanTheBudgetDoesNotFit) {
  std::mt19937_64 rng(28);
  ChainSpec spec = testing::RandomChain(12, {}, &rng).spec();
  spec.stages[5].saved = Bytes(1000);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  const absl::StatusOr<Plan> plan = Solve(chain, Bytes(999));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible);
  EXPECT_GE(plan->bounds.least_budget, Bytes(1000));
}

TEST_P(ChainSolvers, PlansStagesThatTakeNoTimeOrNoBytes) {
  std::mt19937_64 rng(29);
  for (const bool no_time : {true, false}) {
    ChainSpec spec = testing::RandomChain(9, {}, &rng).spec();
    for (Stage& stage : spec.stages) {
      if (no_time) {
        stage.forward_time = stage.backward_time = Nanos(0);
      } else {
        const Nanos forward = stage.forward_time, backward = stage.backward_time;
        stage = Stage();
        stage.forward_time = forward;
        stage.backward_time = backward;
      }
    }
    const Chain chain = *Chain::Create(spec);
    NewLink(&rng);
    const Bytes least = Least(chain);
    const absl::StatusOr<Plan> plan = Solve(chain, least);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    EXPECT_LE(Run(chain, plan->schedule).peak, least);
    EXPECT_TRUE(solver().SolveFrontier(chain, solve_options()).ok());
  }
}

TEST_P(ChainSolvers, FrontiersReachFromTheLeastBudgetToStoreAll) {
  std::mt19937_64 rng(24);
  for (int i = 0; i < (MadeOfManySolves() ? 24 : 60); ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    const Chain chain = testing::RandomChain(1 + i % 12, options, &rng);
    NewLink(&rng);
    const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(chain, solve_options());
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    const Bytes least = Least(chain);
    // Where there is no link, joint leaves it to the others.
    if (solve_options().transfers || solver().info().name != "joint") {
      EXPECT_EQ(frontier->info().solver, solver().info().name);
    }
    EXPECT_LE(frontier->info().least_budget, least);
    EXPECT_TRUE(frontier->info().least_budget == least || !FindsAllThatFits());
    ASSERT_FALSE(frontier->points().empty());
    EXPECT_EQ(frontier->points().front().peak, least) << testing::Describe(chain);
    const Simulation all = *Simulate(chain, StoreAllSchedule(chain));
    // Less than store-all's peak only where recomputing costs no time.
    EXPECT_LE(frontier->points().back().peak, all.peak) << testing::Describe(chain);
    EXPECT_EQ(frontier->points().back().makespan, all.makespan) << testing::Describe(chain);
  }
}

TEST_P(ChainSolvers, FrontierPointsReplayExactlyAndAreNotSlowerThanPlans) {
  std::mt19937_64 rng(25);
  for (int i = 0; i < (MadeOfManySolves() ? 24 : 40); ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    const Chain chain = testing::RandomChain(1 + i % 12, options, &rng);
    NewLink(&rng);
    const Frontier frontier = *solver().SolveFrontier(chain, solve_options());
    int64_t before = INT64_MAX;
    for (const Frontier::Point& point : frontier.points()) {
      absl::StatusOr<Plan> plan = frontier.PlanAt(point.peak);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const testing::NaiveResult naive = Naive(chain, plan->schedule);
      EXPECT_TRUE(naive.valid) << testing::Describe(chain);
      EXPECT_EQ(naive.peak, point.peak.value()) << testing::Describe(chain);
      EXPECT_EQ(naive.makespan, point.makespan.value()) << testing::Describe(chain);
      EXPECT_LT(point.makespan.value(), before);
      before = point.makespan.value();
      absl::StatusOr<Plan> single = Solve(chain, point.peak);
      ASSERT_TRUE(single.ok()) << single.status();
      ASSERT_EQ(single->status, PlanStatus::kFound);
      if (!frontier.info().exact) continue;
      EXPECT_EQ(Run(chain, single->schedule).makespan, point.makespan) << testing::Describe(chain);
    }
  }
}

TEST_P(ChainSolvers, ProgressRisesToOne) {
  if (&solver() == &StoreAllSolver()) GTEST_SKIP() << "one replay: there is nothing to report";
  std::mt19937_64 rng(30);
  testing::RandomChainOptions random;
  random.max_size = 100000;
  random.max_time = 1000;
  for (const int length : {8, MadeOfManySolves() ? 14 : 60}) {
    const Chain chain = testing::RandomChain(length, random, &rng);
    NewLink(&rng);
    const int64_t all = Simulate(chain, StoreAllSchedule(chain))->peak.value();
    const Bytes budget(std::max(all * 6 / 10, Least(chain).value()));
    double last = 0.0;
    SolveOptions options = solve_options();
    options.progress = [&last](double share) {
      EXPECT_GE(share, last);
      EXPECT_LE(share, 1.0);
      last = share;
    };
    ASSERT_TRUE(solver().Solve(chain, budget, options).ok());
    EXPECT_EQ(last, 1.0);
    last = 0.0;
    ASSERT_TRUE(solver().SolveFrontier(chain, options).ok());
    EXPECT_EQ(last, 1.0);
  }
}

TEST_P(ChainSolvers, FrontiersStopWhenToldTo) {
  if (&solver() == &StoreAllSolver()) GTEST_SKIP() << "one replay: there is nothing to stop";
  std::mt19937_64 rng(26);
  const Chain chain = testing::RandomChain(100, {}, &rng);
  NewLink(&rng);
  StopToken cancelled;
  cancelled.RequestStop();
  SolveOptions options = solve_options();
  options.stop = &cancelled;
  EXPECT_EQ(solver().SolveFrontier(chain, options).status().code(), absl::StatusCode::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(All, ChainSolvers, ::testing::ValuesIn(Cases()), [](const auto& param) {
  return std::get<0>(param.param)->info().name + (std::get<1>(param.param) ? "_linked" : "");
});

TEST(CheckpointSequential, MatchesItsClosedFormOnEqualStages) {
  ChainSpec spec;
  Stage s;
  s.forward_time = s.backward_time = Nanos(1);
  s.output = s.saved = Bytes(1);
  spec.stages.assign(16, s);
  const Chain chain = *Chain::Create(spec);
  // With k segments of 16/k stages: k - 1 kept inputs but one (a^0 has no bytes), one segment kept
  // whole, and no gradients.
  for (const int k : {2, 4, 8}) {
    const int64_t peak = k - 1 + 16 / k;
    const absl::StatusOr<Plan> plan =
        MakeChainPlan(chain, Bytes(peak), PlanOptions{"checkpoint_sequential", {}});
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->status, PlanStatus::kFound) << k;
    EXPECT_LE(plan->prediction.peak.value(), peak);
    EXPECT_LE(plan->prediction.makespan.value(), 32 + (k - 1) * (16 / k));
  }
}

TEST(OptimalPersistent, IsNeverSlowerThanPeriodicCheckpointing) {
  std::mt19937_64 rng(23);
  int strictly = 0;
  for (int i = 0; i < 150; ++i) {
    const Chain chain = testing::RandomChain(10, {}, &rng);
    const Bytes least = *ResolveBudget(chain, LeastBudget{}, PlanOptions{"optimal_persistent", {}});
    for (int64_t budget = least.value(); budget < 2 * least.value(); budget += 3) {
      const absl::StatusOr<Plan> periodic =
          MakeChainPlan(chain, Bytes(budget), PlanOptions{"checkpoint_sequential", {}});
      const absl::StatusOr<Plan> optimal =
          MakeChainPlan(chain, Bytes(budget), PlanOptions{"optimal_persistent", {}});
      ASSERT_EQ(optimal->status, PlanStatus::kFound);
      if (periodic->status != PlanStatus::kFound) continue;
      EXPECT_LE(optimal->prediction.makespan, periodic->prediction.makespan)
          << testing::Describe(chain);
      strictly += optimal->prediction.makespan < periodic->prediction.makespan ? 1 : 0;
    }
  }
  EXPECT_GT(strictly, 100);
}

// Thousands of stages that have nothing in common: known from their number, or from their repeats.
TEST(RecurrencesOverIntervals, RefuseChainsThatWouldTakeMinutes) {
  std::mt19937_64 rng(50);
  testing::RandomChainOptions sizes;
  sizes.max_size = sizes.max_time = 1000;
  for (const int length : {2000, 100000}) {
    const Chain chain = testing::RandomChain(length, sizes, &rng);
    for (const ChainSolver* solver : {&RevolveSolver(), &BeyondPersistentSolver()}) {
      EXPECT_TRUE(absl::IsResourceExhausted(solver->Solve(chain, Bytes(1000000), {}).status()));
      EXPECT_TRUE(absl::IsResourceExhausted(solver->SolveFrontier(chain, {}).status()));
      EXPECT_TRUE(absl::IsResourceExhausted(solver->LeastBudget(chain, {}).status()));
    }
  }
}

}  // namespace
}  // namespace stowage

// What every chain solver must do, whatever its class: its frontiers, and how it goes about them. Instantiate the suite with the solver,
// without and with a link to host memory.
#ifndef STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_FRONTIER_CONFORMANCE_H_
#define STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_FRONTIER_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/chain/chain_solver_cases.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"

namespace stowage::testing {

class ChainFrontiers : public ChainSolverTest {};

TEST_P(ChainFrontiers, FrontiersReachFromTheLeastBudgetToStoreAll) {
  std::mt19937_64 rng(24);
  for (int i = 0; i < (MadeOfManySolves() ? 24 : 60); ++i) {
    RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    options.with_stops = i % 5 > 2;
    const Chain chain = RandomChain(1 + i % 12, options, &rng);
    NewLink(&rng);
    const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(Linked(chain), {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    const Bytes least = Least(chain);
    // Where there is no link, one that copies may leave it to the others.
    if (link() || !solver().info().copies) {
      EXPECT_EQ(frontier->info().solver, solver().info().name);
    }
    EXPECT_LE(frontier->info().least_budget, least);
    EXPECT_TRUE(frontier->info().least_budget == least || !FindsAllThatFits());
    ASSERT_FALSE(frontier->points().empty());
    EXPECT_EQ(frontier->points().front().peak, least) << Describe(chain);
    const Simulation all = *Evaluator(chain).Run(StoreAllSchedule(chain));
    // Less than store-all's peak only where recomputing costs no time.
    EXPECT_LE(frontier->points().back().peak, all.peak) << Describe(chain);
    EXPECT_EQ(frontier->points().back().makespan, all.makespan) << Describe(chain);
  }
}

TEST_P(ChainFrontiers, FrontierPointsReplayExactlyAndAreNotSlowerThanPlans) {
  std::mt19937_64 rng(25);
  for (int i = 0; i < (MadeOfManySolves() ? 24 : 40); ++i) {
    RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    options.with_stops = i % 5 > 2;
    const Chain chain = RandomChain(1 + i % 12, options, &rng);
    NewLink(&rng);
    const Frontier frontier = *solver().SolveFrontier(Linked(chain), {});
    int64_t before = INT64_MAX;
    for (const Frontier::Point& point : frontier.points()) {
      absl::StatusOr<Plan> plan = frontier.PlanAt(point.peak);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const NaiveResult naive = Naive(chain, plan->schedule);
      EXPECT_TRUE(naive.valid) << Describe(chain);
      EXPECT_EQ(naive.peak, point.peak.value()) << Describe(chain);
      EXPECT_EQ(naive.makespan, point.makespan.value()) << Describe(chain);
      EXPECT_LT(point.makespan.value(), before);
      before = point.makespan.value();
      absl::StatusOr<Plan> single = Solve(chain, point.peak);
      ASSERT_TRUE(single.ok()) << single.status();
      ASSERT_EQ(single->status, PlanStatus::kFound);
      if (!frontier.info().exact) continue;
      EXPECT_EQ(Run(chain, single->schedule).makespan, point.makespan) << Describe(chain);
    }
  }
}

TEST_P(ChainFrontiers, EqualInputGivesEqualPlansAndFrontiersWhateverTheThreads) {
  std::mt19937_64 rng(27);
  RandomChainOptions random;
  random.max_size = 100000;
  random.max_time = 1000;
  for (const int length : {6, MadeOfManySolves() ? 9 : 30, MadeOfManySolves() ? 12 : 60}) {
    const Chain chain = RandomChain(length, random, &rng);
    NewLink(&rng);
    const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
    const Bytes budget(std::max(all * 6 / 10, Least(chain).value()));
    SolveOptions options;
    const Schedule first = solver().Solve(Linked(chain), budget, options)->schedule;
    const std::string frontier = solver().SolveFrontier(Linked(chain), options)->Encode();
    options.threads = 2;
    EXPECT_EQ(solver().Solve(Linked(chain), budget, options)->schedule, first);
    EXPECT_EQ(solver().SolveFrontier(Linked(chain), options)->Encode(), frontier);
  }
}

TEST_P(ChainFrontiers, ProgressRisesToOne) {
  std::mt19937_64 rng(30);
  RandomChainOptions random;
  random.max_size = 100000;
  random.max_time = 1000;
  for (const int length : {8, MadeOfManySolves() ? 14 : 60}) {
    const Chain chain = RandomChain(length, random, &rng);
    NewLink(&rng);
    const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
    const Bytes budget(std::max(all * 6 / 10, Least(chain).value()));
    double last = 0.0;
    SolveOptions options;
    options.progress = [&last](double share) {
      EXPECT_GE(share, last);
      EXPECT_LE(share, 1.0);
      last = share;
    };
    ASSERT_TRUE(solver().Solve(Linked(chain), budget, options).ok());
    EXPECT_EQ(last, 1.0);
    last = 0.0;
    ASSERT_TRUE(solver().SolveFrontier(Linked(chain), options).ok());
    EXPECT_EQ(last, 1.0);
  }
}

TEST_P(ChainFrontiers, FrontiersStopWhenToldTo) {
  std::mt19937_64 rng(26);
  const Chain chain = RandomChain(100, {}, &rng);
  NewLink(&rng);
  StopToken cancelled;
  cancelled.RequestStop();
  SolveOptions options;
  options.stop = &cancelled;
  EXPECT_EQ(solver().SolveFrontier(Linked(chain), options).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_FRONTIER_CONFORMANCE_H_

// What every solver promises, of chains and of graphs.
#ifndef STOWAGE_TESTS_SOLVERS_SOLVER_PROMISES_H_
#define STOWAGE_TESTS_SOLVERS_SOLVER_PROMISES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/solver.h"

namespace stowage::testing {

// Plans for budgets around so many points of the solver's frontier, so many spaced evenly from its first point to plain
// training, and around these: none is slower than one for less, nor missing where there is one for less. The last one
// takes no longer than plain training.
inline void ExpectMoreBudgetIsNeverSlower(const Solver& solver, const Instance& instance,
                                          int spaced) {
  const absl::StatusOr<Frontier> frontier = solver.SolveFrontier(instance, {});
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  ASSERT_FALSE(frontier->points().empty());
  const int64_t first = frontier->points().front().peak.value();
  const int64_t all = std::max(instance.store_all()->peak.value(), first);
  std::set<int64_t> centres;
  const std::vector<Frontier::Point>& points = frontier->points();
  for (size_t i = 0; i < points.size(); i += points.size() / static_cast<size_t>(spaced) + 1) {
    centres.insert(points[i].peak.value());
  }
  for (int i = 0; i <= spaced; ++i) centres.insert(first + (all - first) / spaced * i);
  centres.insert(all);
  std::set<int64_t> budgets;
  for (const int64_t centre : centres) {
    for (const int64_t budget : {centre - 1, centre, centre + 1}) {
      if (budget >= 0) budgets.insert(budget);
    }
  }
  const Evaluator evaluator(instance);
  Nanos before(INT64_MAX);
  bool found = false;
  for (const int64_t budget : budgets) {
    const absl::StatusOr<Plan> plan = solver.Solve(instance, Bytes(budget), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->status != PlanStatus::kFound) {
      EXPECT_FALSE(found) << "nothing at " << budget << ", but with less";
      continue;
    }
    found = true;
    const absl::StatusOr<Simulation> run = evaluator.Run(plan->schedule);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_LE(run->peak.value(), budget);
    EXPECT_LE(run->makespan, before) << "at " << budget << " slower than with less";
    before = std::min(before, run->makespan);
  }
  EXPECT_EQ(before, instance.store_all()->makespan);
}

// A solve whose deadline passes when its first schedule is told. An anytime solver answers with a plan that is valid;
// no other one with half a search.
inline void ExpectAPlanAtTheDeadline(const Solver& solver, const Instance& instance, Bytes budget) {
  StopToken stop;
  SolveOptions options;
  options.stop = &stop;
  bool told = false;
  options.incumbent = [&](const Schedule&) {
    told = true;
    stop.PassDeadlineAtLook(1);
  };
  const absl::StatusOr<Plan> plan = solver.Solve(instance, budget, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  if (!solver.info().IsAnytimeFor(instance)) {
    EXPECT_FALSE(told);
    EXPECT_TRUE(plan->search_complete);
    return;
  }
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  const absl::StatusOr<Simulation> run = Evaluator(instance).Run(plan->schedule);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_LE(run->peak, budget);
}

// A frontier whose deadline passes at some look, or had passed before. An anytime solver answers with valid points, the
// last as fast as store-all's, and says whether the search came to its end; any other one with all points or none.
inline void ExpectPointsAtTheDeadline(const Solver& solver, const Instance& instance) {
  const Evaluator evaluator(instance);
  int cut = 0;
  for (const int64_t look : {1, 2, 3, 4, 10, 100}) {
    SCOPED_TRACE(look);
    StopToken stop;
    stop.PassDeadlineAtLook(look);
    SolveOptions options;
    options.stop = &stop;
    const absl::StatusOr<Frontier> frontier = solver.SolveFrontier(instance, options);
    if (!frontier.ok()) {
      EXPECT_TRUE(absl::IsDeadlineExceeded(frontier.status())) << frontier.status();
      // Before a solver has begun; there may be one within another.
      EXPECT_TRUE(look <= 2 || !solver.info().IsAnytimeFor(instance));
      continue;
    }
    const bool complete = frontier->info().search_complete;
    EXPECT_TRUE(complete || (stop.looks() >= look && solver.info().IsAnytimeFor(instance)));
    cut += complete ? 0 : 1;
    ASSERT_FALSE(frontier->points().empty());
    for (const Frontier::Point& point : frontier->points()) {
      const absl::StatusOr<Simulation> run = evaluator.Run(point.schedule.Unpack());
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->peak, point.peak);
      EXPECT_EQ(run->makespan, point.makespan);
    }
    EXPECT_LE(frontier->points().back().makespan, instance.store_all()->makespan);
    EXPECT_EQ(frontier->PlanAt(frontier->points().back().peak).search_complete, complete);
  }
  EXPECT_EQ(cut > 0, solver.info().IsAnytimeFor(instance));
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_SOLVER_PROMISES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/solvers.h"
#include "solvers/transfer/strategies.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage {
namespace {

Graph Draw(int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = 1 + i % 10;
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  options.with_flags = i % 2 == 0;
  options.with_aliases = i % 4 == 1;
  return testing::RandomGraph(options, rng);
}

Bytes StoreAllPeak(const Graph& graph) {
  return Evaluator(graph).Run(StoreAllSchedule(graph))->peak;
}

TEST(JointGraphSolver, IsNoWorseThanEitherAlone) {
  std::mt19937_64 rng(1);
  int found = 0, beyond_both = 0;
  for (int i = 0; i < 60; ++i) {
    const Graph graph = Draw(i, &rng);
    const TransferModel link = testing::RandomTransferModel(&rng);
    const Instance instance(graph, link);
    const Frontier orders = *OrderSearchSolver().SolveFrontier(graph, {});
    const Bytes all = StoreAllPeak(graph);
    const Bytes least = *JointGraphSolver().LeastBudget(instance, {});
    EXPECT_LE(least, orders.points().front().peak);
    for (int share = 4; share <= 10; ++share) {
      const Bytes budget(all.value() * share / 10);
      const absl::StatusOr<Plan> plan = JointGraphSolver().Solve(instance, budget, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->status == PlanStatus::kFound, budget >= least) << testing::Describe(graph);
      EXPECT_EQ(plan->status == PlanStatus::kProvenInfeasible, budget < PeakLowerBound(graph));
      EXPECT_FALSE(plan->explanation.empty());
      if (plan->status != PlanStatus::kFound) continue;
      const absl::StatusOr<Simulation> s = Evaluator(Instance(graph, link)).Run(plan->schedule);
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_TRUE(GradientSums(graph).KeptBy(plan->schedule)) << testing::Describe(graph);
      EXPECT_LE(s->peak, budget);
      EXPECT_GE(s->makespan, MakespanLowerBound(Instance(graph, link), budget));
      if (plan->bounds.proven_optimal) {
        EXPECT_EQ(s->makespan, MakespanLowerBound(Instance(graph, link), budget));
      }
      const Frontier::Point* alone = orders.At(budget);
      bool both = alone == nullptr || alone->makespan > s->makespan;
      if (alone != nullptr) {
        EXPECT_LE(s->makespan, alone->makespan);
      }
      // Offloading is tried at budgets of the grid.
      const std::vector<Bytes> grid = JointGrid(least, orders.points().back().peak);
      const Bytes tried = *std::prev(std::upper_bound(grid.begin(), grid.end(), budget));
      for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
        const auto offloading = testing::OffloadFrom(Instance(graph, link), StoreAllSchedule(graph),
                                                     tried, *strategy, {});
        ASSERT_TRUE(offloading.ok());
        if (!offloading->has_value()) continue;
        EXPECT_LE(s->makespan, (*offloading)->prediction.makespan);
        both = both && s->makespan < (*offloading)->prediction.makespan;
      }
      ++found;
      beyond_both += both ? 1 : 0;
    }
  }
  EXPECT_GT(found, 150);
  EXPECT_GT(beyond_both, 10);
}

TEST(JointGraphSolver, HasAFrontier) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 25; ++i) {
    const Graph graph = Draw(i, &rng);
    const TransferModel link = testing::RandomTransferModel(&rng);
    const Instance instance(graph, link);
    const absl::StatusOr<Frontier> frontier = JointGraphSolver().SolveFrontier(instance, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_EQ(frontier->info().solver, "joint");
    EXPECT_EQ(frontier->info().least_budget, PeakLowerBound(graph));
    EXPECT_LE(frontier->points().front().peak, *JointGraphSolver().LeastBudget(instance, {}));
    EXPECT_EQ(frontier->points().back().makespan, graph.ideal_time());
    const Frontier orders = *OrderSearchSolver().SolveFrontier(graph, {});
    for (const Frontier::Point& point : orders.points()) {
      EXPECT_LE(frontier->At(point.peak)->makespan, point.makespan);
    }
    for (const Frontier::Point& point : frontier->points()) {
      const Simulation s =
          *Evaluator(Instance(graph, link)).Run(frontier->PlanAt(point.peak).schedule);
      EXPECT_EQ(s.makespan, point.makespan);
      EXPECT_EQ(s.peak, point.peak);
    }
  }
}

TEST(JointGraphSolver, IsOrderSearchWithoutALink) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 10; ++i) {
    const Graph graph = Draw(i, &rng);
    const Bytes budget(StoreAllPeak(graph).value() * 7 / 10);
    const Plan want = *OrderSearchSolver().Solve(graph, budget, {});
    const Plan got = *JointGraphSolver().Solve(graph, budget, {});
    EXPECT_EQ(got.status, want.status);
    EXPECT_EQ(got.schedule, want.schedule);
    EXPECT_EQ(got.provenance.solver, "order_search");
    EXPECT_EQ(*JointGraphSolver().LeastBudget(graph, {}),
              *OrderSearchSolver().LeastBudget(graph, {}));
    EXPECT_EQ(JointGraphSolver().SolveFrontier(graph, {})->Encode(),
              OrderSearchSolver().SolveFrontier(graph, {})->Encode());
  }
}

TEST(JointGraphSolver, MovesNothingToAHostWithoutMemory) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 20; ++i) {
    const Graph graph = Draw(i, &rng);
    TransferModel link = testing::RandomTransferModel(&rng);
    link.host_memory = Bytes(0);
    const Bytes budget(StoreAllPeak(graph).value() * 8 / 10);
    const Plan plan = *JointGraphSolver().Solve(Instance(graph, link), budget, {});
    const Frontier orders = *OrderSearchSolver().SolveFrontier(graph, {});
    const Frontier::Point* alone = orders.At(budget);
    ASSERT_EQ(plan.status == PlanStatus::kFound, alone != nullptr);
    if (alone == nullptr) continue;
    const Simulation s = *Evaluator(Instance(graph, link)).Run(plan.schedule);
    EXPECT_LE(s.makespan, alone->makespan);
    EXPECT_EQ(s.offloaded, Bytes(0));
  }
}

TEST(JointGraphSolver, RefusesABadLink) {
  std::mt19937_64 rng(5);
  const Graph graph = Draw(4, &rng);
  TransferModel link = testing::RandomTransferModel(&rng);
  link.to_host.bytes_per_second = 0;
  const Instance instance(graph, link);
  for (const absl::Status& status : {JointGraphSolver().Solve(instance, Bytes(5), {}).status(),
                                     JointGraphSolver().SolveFrontier(instance, {}).status(),
                                     JointGraphSolver().LeastBudget(instance, {}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

Graph Inception() {
  NetworkOptions options;
  options.name = "inception_v3";
  options.image = 299;
  options.batch = 32;
  return *GraphOf(*MakeNetwork(options), ModelledV100());
}

TransferModel Pcie() {
  TransferModel link;
  link.to_host = link.to_device = {12200000000, Nanos(10000)};
  link.host_memory = Bytes(int64_t{64} << 30);
  return link;
}

TEST(JointGraphSolver, IsTheSameWithAnyNumberOfThreadsAndReportsProgress) {
  const Graph graph = Inception();
  const Bytes budget(StoreAllPeak(graph).value() / 2);
  const Instance instance(graph, Pcie());
  SolveOptions options;
  double last = -1.0;
  options.progress = [&last](double share) {
    EXPECT_GE(share, last);
    last = share;
  };
  const Plan one = *JointGraphSolver().Solve(instance, budget, options);
  EXPECT_EQ(last, 1.0);
  options.progress = nullptr;
  options.threads = 3;
  EXPECT_EQ(JointGraphSolver().Solve(instance, budget, options)->schedule, one.schedule);
}

TEST(JointGraphSolver, HasAPlanAtTheDeadlineAndStopsWhenCancelled) {
  const Graph graph = Inception();
  const Bytes budget(StoreAllPeak(graph).value() / 2);
  const Instance instance(graph, Pcie());
  // The deadline passes with the first schedule, and the caller gives up with it.
  StopToken late, cancelled, passed;
  passed.PassDeadlineAtLook(1);
  SolveOptions options;
  options.stop = &late;
  options.incumbent = [&late](const Schedule&) { late.PassDeadlineAtLook(1); };
  const absl::StatusOr<Plan> early = JointGraphSolver().Solve(instance, budget, options);
  ASSERT_TRUE(early.ok()) << early.status();
  ASSERT_EQ(early->status, PlanStatus::kFound);
  EXPECT_FALSE(early->search_complete);
  EXPECT_LE(Evaluator(instance).Run(early->schedule)->peak, budget);
  options.stop = &cancelled;
  options.incumbent = [&cancelled](const Schedule&) { cancelled.RequestStop(); };
  EXPECT_EQ(JointGraphSolver().Solve(instance, budget, options).status().code(),
            absl::StatusCode::kCancelled);
  options.stop = &passed;
  options.incumbent = nullptr;
  EXPECT_EQ(JointGraphSolver().Solve(instance, budget, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace stowage

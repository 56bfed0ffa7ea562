// Solvers that search: what they have found is told while they search, and is there when the deadline
// ends the search.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/solvers.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

Graph Network() {
  return *testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/nasnet_cifar.graph");
}

TransferModel Link() {
  TransferModel link;
  link.to_host = link.to_device = {int64_t{12} << 30, Nanos(10000)};
  link.host_memory = Bytes(int64_t{64} << 30);
  return link;
}

Bytes HalfOfStoreAll(const Instance& instance) {
  return Bytes(instance.store_all()->peak.value() / 2);
}

// Hears of every incumbent: each fits and is faster than the one before. The plan is the last of them
// or better. Unless it shall be complete, the deadline passes with the first of them.
void ExpectFasterAndFaster(const Solver& solver, const Instance& instance, bool complete) {
  const Bytes budget = HalfOfStoreAll(instance);
  const Evaluator evaluator(instance);
  SolveOptions options;
  StopToken stop;
  std::vector<Nanos> told;
  options.incumbent = [&](const Schedule& schedule) {
    const Simulation simulation = *evaluator.Run(schedule);
    EXPECT_LE(simulation.peak, budget);
    told.push_back(simulation.makespan);
    if (!complete) stop.PassDeadlineAtLook(1);
  };
  options.stop = &stop;
  const absl::StatusOr<Plan> plan = solver.Solve(instance, budget, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_EQ(plan->search_complete, complete);
  const Simulation replayed = *evaluator.Run(plan->schedule);
  EXPECT_LE(replayed.peak, budget);
  ASSERT_FALSE(told.empty());
  for (size_t i = 1; i < told.size(); ++i) EXPECT_LT(told[i], told[i - 1]);
  EXPECT_LE(replayed.makespan, told.back());
}

TEST(Anytime, OrderSearchHasAPlanAtTheDeadline) {
  ExpectFasterAndFaster(OrderSearchSolver(), Network(), false);
}

TEST(Anytime, OrderSearchIsTheSameWhoeverListens) {
  const Graph graph = *testing::ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/alexnet.graph");
  const Bytes budget = HalfOfStoreAll(graph);
  SolveOptions options;
  const absl::StatusOr<Plan> alone = OrderSearchSolver().Solve(graph, budget, options);
  options.incumbent = [](const Schedule&) {};
  options.progress = [](double) {};
  const absl::StatusOr<Plan> heard = OrderSearchSolver().Solve(graph, budget, options);
  ASSERT_TRUE(alone.ok() && heard.ok());
  EXPECT_EQ(alone->schedule, heard->schedule);
  EXPECT_TRUE(alone->search_complete);
}

TEST(Anytime, JointOnGraphsHasAPlanAtTheDeadline) {
  ExpectFasterAndFaster(JointGraphSolver(), Instance(Network(), Link()), false);
}

TEST(Anytime, JointOnChainsTellsOfWhatItFinds) {
  std::mt19937_64 rng(71);
  const Chain chain = testing::RandomChain(30, {40, 60}, &rng);
  TransferModel link = Link();
  link.to_host = link.to_device = {400000000, Nanos(0)};
  ExpectFasterAndFaster(JointSolver(), Instance(chain, link), true);
}

TEST(ApartFirst, HalvesTheGreatestGaps) {
  EXPECT_EQ(ApartFirst(0), std::vector<size_t>());
  EXPECT_EQ(ApartFirst(1), std::vector<size_t>({0}));
  EXPECT_EQ(ApartFirst(9), std::vector<size_t>({0, 8, 4, 2, 6, 1, 3, 5, 7}));
  for (size_t count = 1; count < 100; ++count) {
    std::vector<size_t> order = ApartFirst(count);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(order[i], i);
  }
}

// More than what is quick, for little memory and for much; less than the whole search has.
TEST(Anytime, AFrontierOfAChainHasSomethingAtEveryBudgetWhenItIsCutShort) {
  std::mt19937_64 rng(72);
  const Chain chain = testing::RandomChain(24, {40, 60}, &rng);
  TransferModel link = Link();
  link.to_host = link.to_device = {400000000, Nanos(0)};
  const Instance instance(chain, link);
  SolveOptions options;
  StopToken stop;
  options.stop = &stop;
  options.progress = [&stop](double share) {
    if (share > 0.4) stop.PassDeadlineAtLook(1);
  };
  const absl::StatusOr<Frontier> cut = JointSolver().SolveFrontier(instance, options);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_FALSE(cut->info().search_complete);
  const absl::StatusOr<Frontier> whole = JointSolver().SolveFrontier(instance, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->info().search_complete);
  EXPECT_EQ(cut->points().front().peak, whole->points().front().peak);
  EXPECT_EQ(cut->points().back().makespan, whole->points().back().makespan);
  int searched = 0;
  for (const Frontier::Point& point : cut->points()) {
    const Frontier::Point* within = whole->At(point.peak);
    ASSERT_NE(within, nullptr);
    EXPECT_LE(within->makespan, point.makespan);
    searched += within->makespan == point.makespan ? 1 : 0;
  }
  EXPECT_GT(searched, 8);
}

}  // namespace
}  // namespace stowage

// Solvers that search: what they have found is told while they search, and is there when the deadline
// ends the search.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/transfer/solvers.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;

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
// or better.
void ExpectFasterAndFaster(const Solver& solver, const Instance& instance, milliseconds given,
                           bool complete) {
  const Bytes budget = HalfOfStoreAll(instance);
  const Evaluator evaluator(instance);
  SolveOptions options;
  std::vector<Nanos> told;
  options.incumbent = [&](const Schedule& schedule) {
    const Simulation simulation = *evaluator.Run(schedule);
    EXPECT_LE(simulation.peak, budget);
    told.push_back(simulation.makespan);
  };
  const StopToken stop(StopToken::Clock::now() + given);
  options.stop = &stop;
  const absl::StatusOr<Plan> plan = solver.Solve(instance, budget, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_EQ(plan->search_complete, complete);
  const Simulation judged = *evaluator.Run(plan->schedule);
  EXPECT_LE(judged.peak, budget);
  ASSERT_FALSE(told.empty());
  for (size_t i = 1; i < told.size(); ++i) EXPECT_LT(told[i], told[i - 1]);
  EXPECT_LE(judged.makespan, told.back());
}

TEST(Anytime, OrderSearchHasAPlanAtTheDeadline) {
  ExpectFasterAndFaster(OrderSearchSolver(), Network(), milliseconds(700), false);
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
  ExpectFasterAndFaster(JointGraphSolver(), Instance(Network(), Link()), milliseconds(700), false);
}

TEST(Anytime, JointOnChainsTellsOfWhatItFinds) {
  std::mt19937_64 rng(71);
  const Chain chain = testing::RandomChain(30, {40, 60}, &rng);
  TransferModel link = Link();
  link.to_host = link.to_device = {400000000, Nanos(0)};
  ExpectFasterAndFaster(JointSolver(), Instance(chain, link), std::chrono::minutes(1), true);
}

TEST(Anytime, ADeadlineMovesToALaterTimeOnly) {
  const auto now = StopToken::Clock::now();
  StopToken stop(now + milliseconds(40));
  stop.ExtendDeadline(now);
  EXPECT_FALSE(stop.deadline_passed());
  std::this_thread::sleep_until(now + milliseconds(45));
  EXPECT_TRUE(stop.deadline_passed());
  stop.ExtendDeadline(StopToken::Clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(stop.deadline_passed());
  EXPECT_TRUE(stop.Check().ok());
  StopToken none;
  none.ExtendDeadline(now);
  EXPECT_FALSE(none.deadline_passed());
}

}  // namespace
}  // namespace stowage

// What solvers say of themselves holds for their plans.
#include "solvers/registry.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

void ExpectOfItsClass(const SolverInfo& info, const Instance& instance, const Schedule& schedule) {
  const Simulation run = *Evaluator(instance).Run(schedule);
  const bool offloads =
      info.exact_class == ScheduleClass::kOffloading || info.exact_class == ScheduleClass::kAll;
  EXPECT_EQ(offloads, info.copies);
  if (!offloads) {
    EXPECT_EQ(run.offloaded, Bytes(0));
  }
  if (info.exact_class == ScheduleClass::kPlainTraining ||
      info.exact_class == ScheduleClass::kOffloading) {
    EXPECT_EQ(run.recomputed_forwards, 0);
  }
}

Instance Draw(ProblemKind kind, int i, std::mt19937_64* rng) {
  const TransferModel link = RandomTransferModel(rng);
  if (kind == ProblemKind::kChain)
    return Instance(RandomChain(2 + i % 6, VariedOptions(i), rng), link);
  RandomGraphOptions options;
  options.vertices = 3 + i % 6;
  return Instance(RandomGraph(options, rng), link);
}

TEST(Registry, PlansAreOfTheClassThatTheirSolverNames) {
  std::mt19937_64 rng(1);
  for (const ProblemKind kind : {ProblemKind::kChain, ProblemKind::kGraph}) {
    for (int i = 0; i < 10; ++i) {
      const Instance instance = Draw(kind, i, &rng);
      for (const Solver* solver : SolversOf(kind)) {
        SCOPED_TRACE(solver->info().name);
        const absl::StatusOr<Frontier> frontier = solver->SolveFrontier(instance, {});
        ASSERT_TRUE(frontier.ok()) << frontier.status();
        for (const Frontier::Point& point : frontier->points()) {
          ExpectOfItsClass(solver->info(), instance, point.schedule.Unpack());
        }
      }
    }
  }
}

TEST(Registry, SolversHaveNamesAndKinds) {
  std::set<std::string> names;
  for (const Solver* solver : AllSolvers()) {
    const SolverInfo& info = solver->info();
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.description.empty() || info.schedule_class.empty()) << info.name;
    EXPECT_TRUE(info.chains || info.graphs || info.dags) << info.name;
    // Only a solver of chains has to cut graphs.
    EXPECT_TRUE(!info.cuts_graphs || (info.chains && info.graphs)) << info.name;
  }
}

}  // namespace
}  // namespace stowage::testing

// What the tests of all chain solvers share: the solvers, each without and with a link to the host.
#ifndef STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CASES_H_
#define STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CASES_H_

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/plan/simulate.h"
#include "solvers/planner.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {

// A solver, and whether it may use a link to host memory.
using ChainSolverCase = std::tuple<const ChainSolver*, bool>;

inline bool OffloadsByAStrategy(const ChainSolver& solver) {
  return solver.info().name.rfind("offload", 0) == 0;
}

inline bool UsesALink(const ChainSolver& solver) {
  return solver.info().name == "joint" || OffloadsByAStrategy(solver);
}

// Of those that do not look at a link, one meets one, too.
inline std::vector<ChainSolverCase> ChainSolverCases() {
  std::vector<ChainSolverCase> cases;
  for (const ChainSolver* solver : AllSolvers()) {
    cases.emplace_back(solver, false);
    if (UsesALink(*solver) || solver == &OptimalPersistentSolver())
      cases.emplace_back(solver, true);
  }
  return cases;
}

class ChainSolverTest : public ::testing::TestWithParam<ChainSolverCase> {
 protected:
  const ChainSolver& solver() const { return *std::get<0>(GetParam()); }

  // The next chain has another link.
  void NewLink(std::mt19937_64* rng) {
    if (std::get<1>(GetParam())) options_.transfers = RandomTransferModel(rng);
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
    EXPECT_TRUE(run.ok()) << run.status() << Describe(chain);
    return run.ok() ? *run : Simulation();
  }
  NaiveResult Naive(const Chain& chain, const Schedule& schedule) const {
    return NaiveReplay(chain, schedule, options_.transfers ? &*options_.transfers : nullptr);
  }

 private:
  SolveOptions options_;
};

inline std::string ChainSolverCaseName(const ::testing::TestParamInfo<ChainSolverCase>& info) {
  const auto& [solver, linked] = info.param;
  return solver->info().name + (linked ? "_linked" : "");
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CASES_H_

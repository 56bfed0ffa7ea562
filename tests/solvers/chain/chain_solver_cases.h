// What the tests of all chain solvers share: the solvers, each without and with a link to the host.
#ifndef STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CASES_H_
#define STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CASES_H_

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {

// A solver, and whether it may use a link to host memory.
using ChainSolverCase = std::tuple<const Solver*, bool>;

// Of those that do not look at a link, one meets one, too.
inline std::vector<ChainSolverCase> ChainSolverCases() {
  std::vector<ChainSolverCase> cases;
  for (const Solver* solver : SolversOf(ProblemKind::kChain)) {
    cases.emplace_back(solver, false);
    if (solver->info().copies || cases.size() == 1) cases.emplace_back(solver, true);
  }
  return cases;
}

class ChainSolverTest : public ::testing::TestWithParam<ChainSolverCase> {
 protected:
  const Solver& solver() const { return *std::get<0>(GetParam()); }

  // The next chain has another link.
  void NewLink(std::mt19937_64* rng) {
    if (std::get<1>(GetParam())) link_ = RandomTransferModel(rng);
  }
  // The link's host has memory for a third of plain training.
  void LimitHost(const Chain& chain) {
    if (link_)
      link_->host_memory = Bytes(Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value() / 3);
  }
  // Its frontiers are: some tests take fewer and shorter chains.
  bool MadeOfManySolves() const { return std::get<1>(GetParam()) && solver().info().copies; }
  bool FindsAllThatFits() const { return !link_ || solver().info().complete; }
  const std::optional<TransferModel>& link() const { return link_; }
  Instance Linked(const Chain& chain) const { return Instance(chain, link_); }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget) const {
    return solver().Solve(Linked(chain), budget, {});
  }
  Bytes Least(const Chain& chain) const {
    const absl::StatusOr<Bytes> least = solver().LeastBudget(Linked(chain), {});
    EXPECT_TRUE(least.ok()) << least.status();
    return least.ok() ? *least : Bytes(0);
  }
  Simulation Run(const Chain& chain, const Schedule& schedule) const {
    const absl::StatusOr<Simulation> run = Evaluator(Linked(chain)).Run(schedule);
    EXPECT_TRUE(run.ok()) << run.status() << Describe(chain);
    return run.ok() ? *run : Simulation();
  }
  NaiveResult Naive(const Chain& chain, const Schedule& schedule) const {
    return NaiveReplay(chain, schedule, link_ ? &*link_ : nullptr);
  }

 private:
  std::optional<TransferModel> link_;
};

inline std::string ChainSolverCaseName(const ::testing::TestParamInfo<ChainSolverCase>& info) {
  const auto& [solver, linked] = info.param;
  return solver->info().name + (linked ? "_linked" : "");
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CASES_H_

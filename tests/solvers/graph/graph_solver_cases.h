// What the tests of all solvers of graphs within a budget share.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_GRAPH_SOLVER_CASES_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_GRAPH_SOLVER_CASES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "solvers/graph/solvers.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_graph.h"

namespace stowage::testing {

// Without a link, which these have not, joint is order_search (joint_graph_solver_test.cc).
inline std::vector<const Solver*> GraphSolverCases() {
  std::vector<const Solver*> solvers;
  for (const Solver* solver : SolversOf(ProblemKind::kGraph)) {
    if (!solver->info().copies) solvers.push_back(solver);
  }
  return solvers;
}

inline std::string GraphSolverCaseName(const ::testing::TestParamInfo<const Solver*>& info) {
  return info.param->info().name;
}

class GraphSolverTest : public ::testing::TestWithParam<const Solver*> {
 protected:
  const Solver& solver() const { return *GetParam(); }
  // Not as the chain that they are cut into.
  bool PlansGraphsAsTheyAre() const { return !solver().info().cuts_graphs; }
  // For seconds, on graphs of some hundred vertices.
  bool Searches() const { return solver().info().anytime == Anytime::kAlways; }
};

inline Graph DrawGraph(int i, std::mt19937_64* rng) {
  RandomGraphOptions options;
  options.vertices = 1 + i % 14;
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  options.with_flags = i % 2 == 0;
  options.with_aliases = i % 4 == 1;
  return RandomGraph(options, rng);
}

inline Bytes StoreAllPeak(const Graph& graph) {
  return Evaluator(graph).Run(StoreAllSchedule(graph))->peak;
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_GRAPH_SOLVER_CASES_H_

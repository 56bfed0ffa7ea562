// What every solver of the checkpoint objective must do.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "tests/solvers/graph/brute_force_acyclic_quotient.h"
#include "tests/solvers/graph/random_dag.h"
#include "tests/solvers/stop_looks.h"

namespace stowage::testing {
namespace {

class CheckpointSolvers : public ::testing::TestWithParam<const CheckpointSolver*> {
 protected:
  const CheckpointSolver& solver() const { return *GetParam(); }

  // Solves and checks what is true of every answer. A solver may refuse graphs that are no path:
  // then it is as good as keeping all.
  CheckpointAnswer Solve(const CheckpointGraph& graph) const {
    const auto answer = solver().Solve(graph, {});
    if (answer.status().code() == absl::StatusCode::kFailedPrecondition) return KeepAll(graph);
    EXPECT_TRUE(answer.ok()) << answer.status() << ": " << Describe(graph);
    if (!answer.ok()) return {};
    const CheckpointSet& set = answer->set;
    const auto validated = ValidateCheckpoints(graph, set.checkpoints, solver().rule());
    EXPECT_TRUE(validated.ok()) << validated.status() << ": " << Describe(graph);
    if (!validated.ok()) return {};
    EXPECT_EQ(validated->checkpoints, set.checkpoints) << "rising";
    EXPECT_EQ(validated->checkpoint_bytes, set.checkpoint_bytes) << Describe(graph);
    EXPECT_EQ(validated->segment_bytes, set.segment_bytes) << Describe(graph);
    EXPECT_LE(answer->lower_bound, set.objective()) << Describe(graph);
    if (answer->optimal) {
      EXPECT_EQ(answer->lower_bound, set.objective()) << Describe(graph);
    }
    return *answer;
  }

 private:
  CheckpointAnswer KeepAll(const CheckpointGraph& graph) const {
    EXPECT_GE(graph.edge_count(), static_cast<size_t>(graph.size())) << "refused a path";
    std::vector<int> all(static_cast<size_t>(graph.size()));
    std::iota(all.begin(), all.end(), 0);
    return {*ValidateCheckpoints(graph, all, solver().rule()), Bytes(0), false};
  }
};

CheckpointGraph Chain(int length, int64_t bytes) {
  CheckpointGraphSpec spec;
  spec.bytes.assign(static_cast<size_t>(length), Bytes(bytes));
  for (int v = 1; v < length; ++v) spec.edges.push_back({v - 1, v});
  return *CheckpointGraph::Create(std::move(spec));
}

CheckpointGraph Scaled(const CheckpointGraph& graph, int64_t factor) {
  CheckpointGraphSpec spec;
  for (int v = 0; v < graph.size(); ++v) {
    spec.bytes.emplace_back(graph.bytes(v).value() * factor);
    for (const int u : graph.inputs(v)) spec.edges.push_back({u, v});
    spec.must_keep.push_back(graph.must_keep(v));
    spec.needs_inputs.push_back(graph.needs_inputs(v));
  }
  return *CheckpointGraph::Create(std::move(spec));
}

TEST_P(CheckpointSolvers, AnswersAreAllowedAndNoWorseThanKeepingAllNorBelowTheBounds) {
  std::mt19937_64 rng(21);
  for (int i = 0; i < 400; ++i) {
    RandomDagOptions options;
    options.density = 0.1 + 0.1 * (i % 5);
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(1 + i % 11, options, &rng);
    const CheckpointAnswer answer = Solve(graph);
    const int64_t optimum = BestObjective(graph, solver().rule());
    EXPECT_GE(answer.set.objective().value(), optimum) << Describe(graph);
    EXPECT_LE(answer.lower_bound.value(), optimum) << Describe(graph);
    EXPECT_LE(answer.set.objective(), graph.total()) << Describe(graph);
  }
}

TEST_P(CheckpointSolvers, LargerGraphsWithFlagsToo) {
  std::mt19937_64 rng(22);
  for (int i = 0; i < 12; ++i) {
    RandomDagOptions options;
    options.density = 0.2;
    options.longest_edge = 3 + i;
    options.with_flags = true;
    const CheckpointGraph graph = RandomDag(40 + 20 * i, options, &rng);
    const CheckpointAnswer answer = Solve(graph);
    EXPECT_LE(answer.set.objective(), graph.total());
    for (int v = 0; v < graph.size(); ++v) {
      const bool kept =
          std::binary_search(answer.set.checkpoints.begin(), answer.set.checkpoints.end(), v);
      EXPECT_TRUE(kept || !graph.must_keep(v)) << v;
    }
  }
}

TEST_P(CheckpointSolvers, EqualInputGivesEqualOutputWhateverTheThreads) {
  std::mt19937_64 rng(23);
  RandomDagOptions options;
  options.longest_edge = 8;
  for (int i = 0; i < 4; ++i) {
    const CheckpointGraph graph = RandomDag(60, options, &rng);
    SolveOptions threads;
    threads.threads = 2;
    const CheckpointAnswer first = Solve(graph);
    const auto again = solver().Solve(graph, threads);
    if (!again.ok()) continue;  // Solve has seen why
    EXPECT_EQ(first.set.checkpoints, again->set.checkpoints);
    EXPECT_EQ(first.lower_bound, again->lower_bound);
  }
}

TEST_P(CheckpointSolvers, ScalingSizesScalesTheObjective) {
  std::mt19937_64 rng(24);
  for (int i = 0; i < 50; ++i) {
    RandomDagOptions options;
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(3 + i % 10, options, &rng);
    const CheckpointAnswer answer = Solve(graph);
    const CheckpointAnswer scaled = Solve(Scaled(graph, 1024));
    EXPECT_EQ(scaled.set.objective().value(), 1024 * answer.set.objective().value())
        << Describe(graph);
  }
}

TEST_P(CheckpointSolvers, SmallestGraphs) {
  EXPECT_EQ(Solve(Chain(1, 7)).set.objective(), Bytes(7));
  EXPECT_EQ(Solve(Chain(2, 7)).set.objective(), Bytes(14));
  EXPECT_EQ(Solve(Chain(3, 7)).set.objective(), Bytes(21));
}

TEST_P(CheckpointSolvers, NoBytesAtAll) {
  EXPECT_EQ(Solve(Chain(30, 0)).set.objective(), Bytes(0));
}

TEST_P(CheckpointSolvers, SizesNearTheLimit) {
  std::mt19937_64 rng(25);
  const CheckpointAnswer chain = Solve(Chain(30, (kMaxTotal - 1) / 30));
  EXPECT_LE(chain.set.objective().value(), (kMaxTotal - 1) / 30 * 30);
  for (int i = 0; i < 20; ++i) {
    RandomDagOptions options;
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(12, options, &rng);
    const int64_t factor = (kMaxTotal - 1) / std::max<int64_t>(graph.total().value(), 1);
    EXPECT_LE(Solve(Scaled(graph, factor)).set.objective().value(), graph.total().value() * factor);
  }
}

TEST_P(CheckpointSolvers, HearsTheStopToken) {
  StopToken cancelled, late(StopToken::Clock::now());
  cancelled.RequestStop();
  const CheckpointGraph graph = Chain(50, 3);
  SolveOptions options;
  options.stop = &cancelled;
  EXPECT_EQ(solver().Solve(graph, options).status().code(), absl::StatusCode::kCancelled);
  options.stop = &late;
  EXPECT_EQ(solver().Solve(graph, options).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(CheckpointSolvers, HearsADeadlineWhileAtWork) {
  std::mt19937_64 rng(26);
  RandomDagOptions dag;
  dag.longest_edge = 12;
  const CheckpointGraph graph = RandomDag(3000, dag, &rng);
  ExpectToEndAtTheLook([&](const StopToken& stop) {
    SolveOptions options;
    options.stop = &stop;
    return solver().Solve(graph, options).status();
  });
}

TEST_P(CheckpointSolvers, RefusesBadOptions) {
  SolveOptions options;
  options.threads = 0;
  EXPECT_EQ(solver().Solve(Chain(3, 1), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(CheckpointSolvers, ProgressRises) {
  std::mt19937_64 rng(27);
  RandomDagOptions dag;
  dag.longest_edge = 8;
  std::vector<double> shares = {0};
  SolveOptions options;
  options.progress = [&shares](double share) { shares.push_back(share); };
  (void)solver().Solve(RandomDag(60, dag, &rng), options);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_LE(shares.back(), 1);
}

TEST_P(CheckpointSolvers, AMillionVertices) {
  const CheckpointAnswer answer = Solve(Chain(1000000, 1));
  EXPECT_LE(answer.set.objective(), Bytes(1000000));
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointSolvers, ::testing::ValuesIn(AllCheckpointSolvers()),
                         [](const auto& param) { return param.param->info().name; });

TEST(AllCheckpointSolvers, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    EXPECT_TRUE(names.insert(solver->info().name).second) << solver->info().name;
    EXPECT_FALSE(solver->info().description.empty());
    EXPECT_FALSE(solver->info().schedule_class.empty());
  }
}

}  // namespace
}  // namespace stowage::testing

// The exhaustive search is what graph solvers and bounds are measured with, so it is held against
// everything that is known otherwise.
#include "tests/solvers/graph_search.h"

#include <gtest/gtest.h>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/chain_as_graph.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"

namespace stowage::testing {
namespace {

Graph Draw(int round, std::mt19937_64* rng) {
  RandomGraphOptions options;
  options.vertices = 1 + round % 6;
  options.with_flags = round % 3 == 0;
  options.with_stops = round % 5 > 2;
  options.sources = round % 4 == 0 ? 0.2 : 0.0;
  return RandomGraph(options, rng);
}

TEST(GraphSearch, FindsSchedulesThatTheEvaluatorAccepts) {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 60; ++round) {
    const Graph graph = Draw(round, &rng);
    for (const auto& [peak, makespan] : GraphScheduleFrontier(graph)) {
      const std::optional<FoundSchedule> found = SearchGraphSchedules(graph, peak);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->makespan, makespan);
      const absl::StatusOr<Simulation> result = Evaluator(graph).Run(found->schedule);
      ASSERT_TRUE(result.ok()) << result.status() << Describe(graph);
      EXPECT_EQ(result->makespan, Nanos(makespan));
      EXPECT_EQ(result->peak, Bytes(peak));
      EXPECT_FALSE(SearchGraphSchedules(graph, LeastGraphPeak(graph) - 1));
    }
  }
}

// No schedule, drawn from all that the evaluator allows, is outside the frontier.
TEST(GraphSearch, NothingIsBetter) {
  std::mt19937_64 rng(2);
  int tight = 0;
  for (int round = 0; round < 60; ++round) {
    const Graph graph = Draw(round, &rng);
    const std::map<int64_t, int64_t> frontier = GraphScheduleFrontier(graph);
    EXPECT_EQ(frontier.rbegin()->second, graph.ideal_time().value());
    for (int draw = 0; draw < 30; ++draw) {
      const absl::StatusOr<Simulation> result = Evaluator(graph).Run(RandomSchedule(graph, &rng));
      ASSERT_TRUE(result.ok());
      const auto over = frontier.upper_bound(result->peak.value());
      ASSERT_NE(over, frontier.begin()) << Describe(graph);
      EXPECT_GE(result->makespan.value(), std::prev(over)->second) << Describe(graph);
      tight += result->makespan.value() == std::prev(over)->second ? 1 : 0;
    }
  }
  EXPECT_GT(tight, 100);
}

// Where saved is the output alone and both forwards take as much, a chain can do what its graph can.
// Where it is more, its graph can do at least as much: drop output and extras apart.
TEST(GraphSearch, AgreesWithTheSearchOnChains) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 60; ++round) {
    const bool same = round % 2 == 0;
    const Chain chain = ComparableChain(RandomChain(2 + round % 3, {}, &rng), [same](Stage* s) {
      if (!same) return;
      s->saved = s->output;
      s->forward_overhead = s->forward_saving_overhead;
    });
    const std::map<int64_t, int64_t> of_chain = ScheduleFrontier(chain);
    const std::map<int64_t, int64_t> of_graph = GraphScheduleFrontier(ChainAsGraph(chain));
    if (same) {
      EXPECT_EQ(of_graph, of_chain) << Describe(chain);
      continue;
    }
    for (const auto& [peak, makespan] : of_chain) {
      const auto over = of_graph.upper_bound(peak);
      ASSERT_NE(over, of_graph.begin()) << Describe(chain);
      EXPECT_LE(std::prev(over)->second, makespan) << Describe(chain);
    }
  }
}

}  // namespace
}  // namespace stowage::testing

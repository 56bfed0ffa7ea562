// The evaluator for graphs against a naive replay, and against the evaluator for chains.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/chain_as_graph.h"
#include "tests/solvers/naive_graph_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

struct Drawn {
  testing::RandomGraphOptions options;
  const char* what;
};

std::vector<Drawn> Kinds() {
  std::vector<Drawn> kinds = {
      {{}, "plain"}, {{}, "aliases"}, {{}, "all"}, {{}, "sparse"}, {{}, "stops"}};
  kinds[1].options.with_aliases = true;
  kinds[2].options.with_aliases = kinds[2].options.with_flags = true;
  kinds[2].options.sources = 0.15;
  kinds[2].options.reach = 6;
  kinds[3].options.sources = 0.3;
  kinds[3].options.density = 0.05;
  kinds[4].options.with_aliases = kinds[4].options.with_stops = true;
  return kinds;
}

void ExpectAgreement(const Graph& graph, const Schedule& schedule) {
  const testing::NaiveResult naive = testing::NaiveGraphReplay(graph, schedule);
  const absl::StatusOr<Simulation> result = Evaluator(graph).Run(schedule);
  ASSERT_EQ(result.ok(), naive.valid) << result.status() << testing::Describe(graph) << "\n"
                                      << testing::Describe(schedule);
  if (!naive.valid) return;
  EXPECT_EQ(result->makespan.value(), naive.makespan);
  EXPECT_EQ(result->peak.value(), naive.peak) << testing::Describe(graph) << "\n"
                                              << testing::Describe(schedule);
  EXPECT_EQ(result->recompute_time.value(), naive.recompute_time);
  EXPECT_EQ(result->recomputed_forwards, naive.recomputed_forwards);
}

TEST(SimulateGraphAgreement, WithANaiveReplayOnRandomSchedules) {
  std::mt19937_64 rng(7);
  int recomputing = 0;
  for (const Drawn& kind : Kinds()) {
    for (int round = 0; round < 1000; ++round) {
      testing::RandomGraphOptions options = kind.options;
      options.vertices = 2 + round % 7;
      const Graph graph = testing::RandomGraph(options, &rng);
      const Schedule schedule = testing::RandomSchedule(graph, &rng);
      ExpectAgreement(graph, schedule);
      if (HasFatalFailure()) return;
      const absl::StatusOr<Simulation> result = Evaluator(graph).Run(schedule);
      if (result.ok() && result->recomputed_forwards > 0) ++recomputing;
    }
  }
  EXPECT_GT(recomputing, 1500);
}

// One change to a valid schedule: most are invalid, and both must say so.
TEST(SimulateGraphAgreement, WithANaiveReplayOnBrokenSchedules) {
  std::mt19937_64 rng(8);
  const auto draw = [&rng](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  int valid = 0, invalid = 0;
  for (const Drawn& kind : Kinds()) {
    for (int round = 0; round < 150; ++round) {
      testing::RandomGraphOptions options = kind.options;
      options.vertices = 2 + round % 6;
      const Graph graph = testing::RandomGraph(options, &rng);
      const Schedule base = testing::RandomSchedule(graph, &rng);
      if (!Evaluator(graph).Run(base).ok()) continue;
      for (int change = 0; change < 30; ++change) {
        Schedule schedule = base;
        const int at = draw(0, static_cast<int>(schedule.size()) - 1);
        Instruction& i = schedule[static_cast<size_t>(at)];
        const int kind_of_change = draw(0, 3);
        if (kind_of_change == 0) schedule.erase(schedule.begin() + at);
        if (kind_of_change == 1) i.stage = draw(0, options.vertices + 1);
        if (kind_of_change == 2) i.op = static_cast<Op>(draw(0, 9));
        if (kind_of_change == 3) std::swap(i, schedule[static_cast<size_t>(draw(0, at))]);
        ExpectAgreement(graph, schedule);
        if (HasFatalFailure()) return;
        ++(Evaluator(graph).Run(schedule).ok() ? valid : invalid);
      }
    }
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(invalid, 5000);
}

// A chain is the graph whose every stage is one op.
TEST(SimulateGraphAgreement, WithTheChainsEvaluator) {
  std::mt19937_64 rng(9);
  int compared = 0, recomputing = 0;
  for (int round = 0; round < 6000; ++round) {
    testing::RandomChainOptions options;
    options.with_flags = round % 3 == 0;
    options.with_input_gradient = true;
    const Chain chain =
        testing::ComparableChain(testing::RandomChain(1 + round % 6, options, &rng));
    const Schedule schedule = testing::RandomSchedule(chain, &rng);
    const Schedule translated = testing::ScheduleAsGraph(chain, schedule);
    if (translated.empty()) continue;
    const absl::StatusOr<Simulation> want = Evaluator(chain).Run(schedule);
    const absl::StatusOr<Simulation> got = Evaluator(testing::ChainAsGraph(chain)).Run(translated);
    ASSERT_EQ(got.ok(), want.ok()) << got.status() << want.status() << testing::Describe(chain);
    if (!want.ok()) continue;
    EXPECT_EQ(got->makespan, want->makespan);
    EXPECT_EQ(got->recompute_time, want->recompute_time);
    EXPECT_EQ(got->recomputed_forwards, want->recomputed_forwards);
    EXPECT_EQ(got->peak, want->peak) << testing::Describe(chain) << "\n"
                                     << testing::Describe(translated);
    ++compared;
    recomputing += want->recomputed_forwards > 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 1500);
  EXPECT_GT(recomputing, 500);
}

}  // namespace
}  // namespace stowage

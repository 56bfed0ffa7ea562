#include "solvers/graph/linearize.h"

#include <gtest/gtest.h>

#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

TEST(ExpandSchedule, RunsTheVerticesOfEachStage) {
  GraphSpec spec;
  for (int64_t k = 0; k < 4; ++k) {
    Vertex v;
    v.id = v.program_order = k;
    v.output = Bytes(1);
    if (k > 0) v.inputs = {{k - 1, true}};
    spec.vertices.push_back(v);
  }
  spec.vertices[3].inputs.push_back({1, false});  // 2 and 3 are one stage
  const Graph graph = *Graph::Create(spec);
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  ASSERT_TRUE(linear.ok());
  EXPECT_EQ(linear->stage_begin, (std::vector<int>{1, 2, 4}));
  const Schedule schedule = {ForwardNoSave(1), ForwardNoSaveFreeInput(2),
                             ForwardSave(3),   Backward(3),
                             ForwardSave(1),   ForwardSave(2),
                             Backward(2),      Backward(1)};
  ASSERT_TRUE(Evaluator(linear->chain).Run(schedule).ok());
  Schedule compute;
  for (const Instruction& i : ExpandSchedule(graph, *linear, schedule)) {
    if (i.op != Op::kDiscard) compute.push_back(i);
  }
  // No backward needs tensor 4, so that its repeat is left out.
  EXPECT_EQ(compute, (Schedule{ForwardNoSave(1), ForwardNoSave(2), ForwardNoSave(3),
                               ForwardNoSave(4), ForwardNoSave(2), ForwardNoSave(3), Backward(4),
                               Backward(3), Backward(2), Backward(1)}));
}

Chain WithoutStops(const Chain& chain) {
  ChainSpec spec = chain.spec();
  for (Stage& stage : spec.stages) {
    stage.recompute_saving_time.reset();
    stage.recompute_saving_overhead.reset();
  }
  return *Chain::Create(std::move(spec));
}

// Whatever the chain can do, the graph can, at no more time and memory.
TEST(ExpandSchedule, IsNoWorseThanOnTheChain) {
  std::mt19937_64 rng(21);
  int compared = 0, recomputing = 0, equal = 0, stopped = 0;
  for (int round = 0; round < 12000; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + round % 10;
    options.reach = 1 + round % 4;
    options.density = round % 2 == 0 ? 0.1 : 0.3;
    options.with_aliases = round % 3 > 0;
    options.with_flags = round % 5 == 0;
    options.sources = round % 4 == 0 ? 0.1 : 0.0;
    options.with_stops = round % 7 > 2;
    const Graph graph = testing::RandomGraph(options, &rng);
    const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
    ASSERT_TRUE(linear.ok()) << linear.status();
    const Schedule schedule = round % 8 == 0 ? StoreAllSchedule(linear->chain)
                                             : testing::RandomSchedule(linear->chain, &rng);
    const absl::StatusOr<Simulation> chain = Evaluator(linear->chain).Run(schedule);
    if (!chain.ok()) continue;
    const Schedule expanded = ExpandSchedule(graph, *linear, schedule);
    const absl::StatusOr<Simulation> result = Evaluator(graph).Run(expanded);
    const std::string described = testing::Describe(graph) + testing::Describe(linear->chain) +
                                  "\n" + testing::Describe(schedule) + "\n" +
                                  testing::Describe(expanded);
    ASSERT_TRUE(result.ok()) << result.status() << described;
    Nanos of_input;
    if (linear->stage_begin.front() == 1) {
      of_input = graph.vertex(0).forward_time + graph.vertex(0).backward_time;
    }
    ASSERT_LE(result->makespan, chain->makespan + of_input) << described;
    ASSERT_LE(result->peak, chain->peak) << described;
    ++compared;
    recomputing += chain->recomputed_forwards > 0 ? 1 : 0;
    equal += result->peak == chain->peak ? 1 : 0;
    const Chain whole = WithoutStops(linear->chain);
    stopped += chain->makespan < Evaluator(whole).Run(schedule)->makespan ? 1 : 0;
  }
  EXPECT_GT(compared, 8000);
  EXPECT_GT(recomputing, 2000);
  EXPECT_GT(equal, 1000);
  EXPECT_GT(stopped, 300);
}

}  // namespace
}  // namespace stowage

#include "solvers/model/problem.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

class Shrink {
 public:
  explicit Shrink(std::mt19937_64* rng) : rng_(rng) {}

  Chain Of(const Chain& chain) const {
    ChainSpec spec = chain.spec();
    Less(&spec.input);
    Less(&spec.input_gradient);
    for (Stage& stage : spec.stages) Of(&stage);
    Of(&spec.loss);
    return *Chain::Create(std::move(spec));
  }
  Graph Of(const Graph& graph) const {
    GraphSpec spec;
    for (int p = 0; p < graph.size(); ++p) {
      Vertex v = graph.vertex(p);
      v.id = p;
      Less(&v.output);
      Less(&v.output_gradient);
      if (v.extra_saved > Bytes(0)) {
        v.extra_saved -= Bytes(1);
        Less(&v.extra_saved);
        v.extra_saved += Bytes(1);
      }
      Common(&v);
      spec.vertices.push_back(v);
    }
    return *Graph::Create(std::move(spec));
  }

 private:
  void Less(Bytes* bytes) const {
    *bytes = Bytes(std::uniform_int_distribution<int64_t>(0, bytes->value())(*rng_));
  }
  template <class Step>
  void Common(Step* step) const {
    Less(&step->forward_saving_overhead);
    Less(&step->forward_overhead);
    Less(&step->backward_overhead);
    if (auto& overhead = step->recompute_saving_overhead) {
      Less(&*overhead);
      overhead = std::min(*overhead, step->output + step->forward_saving_overhead);
    }
    step->forward_time += Nanos(7);
  }
  // Each part, and the rest with the output in it.
  void Of(Stage* stage) const {
    Bytes rest = stage->saved - stage->output;
    for (const Bytes part : stage->saved_tensors) rest -= part;
    Less(&rest);
    Less(&stage->output);
    Less(&stage->output_gradient);
    stage->saved = stage->output + rest;
    for (Bytes& part : stage->saved_tensors) {
      Less(&part);
      stage->saved += part;
    }
    Common(stage);
  }
  std::mt19937_64* rng_;
};

void ExpectWithin(const absl::StatusOr<Simulation>& smaller,
                  const absl::StatusOr<Simulation>& larger) {
  ASSERT_TRUE(larger.ok()) << larger.status();
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_LE(smaller->peak, larger->peak);
  EXPECT_LE(smaller->host_peak, larger->host_peak);
}

TEST(Dominance, SchedulesOfALargerChainHoldOnASmallerOne) {
  std::mt19937_64 rng(21);
  for (int round = 0; round < 400; ++round) {
    Chain larger = RandomChain(2 + round % 7, VariedOptions(round), &rng);
    if (round % 3 == 0) larger = WithSavedTensors(larger, &rng);
    const Chain smaller = Shrink(&rng).Of(larger);
    ASSERT_TRUE(Dominates(Problem(larger), Problem(smaller))) << Describe(larger);
    const Schedule schedule = RandomSchedule(larger, &rng);
    ExpectWithin(Evaluator(smaller).Run(schedule), Evaluator(larger).Run(schedule));
    const TransferModel link = RandomTransferModel(&rng), other = RandomTransferModel(&rng);
    const Schedule copying = WithRandomTransfers(larger, schedule, link, &rng);
    ExpectWithin(Evaluator(Instance(smaller, other)).Run(copying),
                 Evaluator(Instance(larger, link)).Run(copying));
  }
}

TEST(Dominance, SchedulesOfALargerGraphHoldOnASmallerOne) {
  std::mt19937_64 rng(22);
  for (int round = 0; round < 400; ++round) {
    RandomGraphOptions options;
    options.vertices = 3 + round % 10;
    options.with_aliases = round % 2 == 0;
    options.with_flags = round % 3 == 0;
    const Graph larger = RandomGraph(options, &rng);
    const Graph smaller = Shrink(&rng).Of(larger);
    ASSERT_TRUE(Dominates(Problem(larger), Problem(smaller))) << Describe(larger);
    const Schedule schedule = RandomSchedule(larger, &rng);
    ExpectWithin(Evaluator(Problem(smaller)).Run(schedule),
                 Evaluator(Problem(larger)).Run(schedule));
  }
}

TEST(Dominance, IsOfEveryByteAndOfEqualStructure) {
  std::mt19937_64 rng(23);
  RandomChainOptions options;
  options.with_input_gradient = true;
  const Chain chain = RandomChain(4, options, &rng);
  const Problem problem = chain;
  EXPECT_TRUE(Dominates(problem, problem));
  const std::function<void(ChainSpec*)> larger[] = {
      [](ChainSpec* c) { c->input += Bytes(1); },
      [](ChainSpec* c) { c->input_gradient += Bytes(1); },
      [](ChainSpec* c) { c->stages[2].saved += Bytes(1); },
      [](ChainSpec* c) { c->stages[2].output_gradient += Bytes(1); },
      [](ChainSpec* c) { c->stages[1].forward_saving_overhead += Bytes(1); },
      [](ChainSpec* c) { c->stages[1].forward_overhead += Bytes(1); },
      [](ChainSpec* c) { c->loss.backward_overhead += Bytes(1); },
  };
  for (const auto& change : larger) {
    ChainSpec spec = chain.spec();
    change(&spec);
    const Problem changed = *Chain::Create(spec);
    EXPECT_TRUE(Dominates(changed, problem));
    EXPECT_FALSE(Dominates(problem, changed));
  }
  const std::function<void(ChainSpec*)> others[] = {
      [](ChainSpec* c) { c->stages[0].op_kind += "x"; },
      [](ChainSpec* c) { c->stages[0].must_keep = !c->stages[0].must_keep; },
      [](ChainSpec* c) { c->stages.pop_back(); },
      [](ChainSpec* c) { c->stages[0].saved_tensors = {Bytes(0)}; },
  };
  for (const auto& change : others) {
    ChainSpec spec = chain.spec();
    change(&spec);
    const Problem changed = *Chain::Create(spec);
    EXPECT_FALSE(Dominates(changed, problem));
    EXPECT_FALSE(Dominates(problem, changed));
  }
  const Problem graph = RandomGraph({}, &rng);
  EXPECT_FALSE(Dominates(graph, problem));
}

// As much in all, but in other tensors: what is left when one is away is not.
TEST(Dominance, CountsTensorsThatGoSingly) {
  const auto with = [](std::vector<Bytes> tensors) {
    ChainSpec spec;
    Stage stage;
    stage.saved = Bytes(100);
    stage.saved_tensors = std::move(tensors);
    spec.stages = {stage};
    return Problem(*Chain::Create(spec));
  };
  EXPECT_FALSE(Dominates(with({Bytes(60)}), with({Bytes(50)})));
  EXPECT_FALSE(Dominates(with({Bytes(50)}), with({Bytes(60)})));
  EXPECT_TRUE(Dominates(with({Bytes(50)}), with({Bytes(50)})));
}

TEST(Dominance, ReadsOfAGraphAreStructure) {
  const auto graph = [](const std::function<void(GraphSpec*)>& change) {
    GraphSpec spec;
    for (int64_t id = 0; id < 3; ++id) {
      Vertex v;
      v.id = v.program_order = id;
      v.output = v.output_gradient = Bytes(8);
      if (id > 0) v.inputs = {{id - 1, true}};
      spec.vertices.push_back(v);
    }
    change(&spec);
    return Problem(*Graph::Create(spec));
  };
  const Problem base = graph([](GraphSpec*) {});
  const auto with_extras = [&graph](int64_t bytes) {
    return graph([bytes](GraphSpec* g) { g->vertices[1].extra_saved = Bytes(bytes); });
  };
  EXPECT_TRUE(Dominates(with_extras(2), with_extras(1)));
  EXPECT_FALSE(Dominates(with_extras(1), with_extras(2)));
  EXPECT_FALSE(Dominates(with_extras(1), base));
  for (const std::function<void(GraphSpec*)>& change : std::vector<std::function<void(GraphSpec*)>>{
           [](GraphSpec* g) { g->vertices[2].inputs[0].vertex = 0; },
           [](GraphSpec* g) { g->vertices[2].inputs[0].backward_needs = false; },
           [](GraphSpec* g) {
             g->vertices[2].inputs.push_back({0, false});
           },
           [](GraphSpec* g) { g->vertices[1].backward_needs_output = true; },
           [](GraphSpec* g) { g->vertices[1].alias = AliasKind::kView; },
           [](GraphSpec* g) { g->vertices[1].linear_multi_input = true; }}) {
    EXPECT_FALSE(Dominates(graph(change), base));
    EXPECT_FALSE(Dominates(base, graph(change)));
  }
}

}  // namespace
}  // namespace stowage::testing

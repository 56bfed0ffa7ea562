// What a changed order costs is what a replay of all of it says.
#include "solvers/graph/internal/order_trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "solvers/graph/fold.h"
#include "solvers/model/index.h"
#include "tests/solvers/random_compute_dag.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

size_t Below(size_t end, std::mt19937_64* rng) { return static_cast<size_t>((*rng)() % end); }

// A graph, an order with repeats anywhere, and what a replay says about it at some target.
class DrawnOrder {
 public:
  DrawnOrder(const Graph& graph, std::mt19937_64* rng) : ops_(graph), evaluator_(ops_) {
    ComputeOrder order = StoreAllOrder(ops_);
    for (size_t left = Below(3 * Index(ops_.size()) + 1, rng); left > 0; --left) {
      const int v = static_cast<int>(Below(Index(ops_.size()), rng));
      if (!ops_.costs(v).recomputable) continue;
      const size_t first = FirstRun(order, v);
      order.insert(
          order.begin() + static_cast<ptrdiff_t>(first + 1 + Below(order.size() - first, rng)),
          {v, false});
    }
    const int64_t peak = evaluator_.Evaluate(order, 0).peak;
    target_ = peak * static_cast<int64_t>(30 + Below(75, rng)) / 100;
    cost_ = evaluator_.EvaluateWithProfile(order, target_, &profile_);
  }

  const OpGraph& ops() const { return ops_; }
  const OrderProfile& profile() const { return profile_; }
  const ComputeOrder& order() const { return profile_.order; }
  const OrderCost& cost() const { return cost_; }
  int64_t target() const { return target_; }

  std::vector<size_t> Repeats() const {
    std::vector<size_t> repeats;
    for (size_t i = 0; i < order().size(); ++i) {
      if (!order()[i].backward && FirstRun(order(), order()[i].vertex) < i) repeats.push_back(i);
    }
    return repeats;
  }
  static size_t FirstRun(const ComputeOrder& order, int v) {
    const auto is_run = [v](const Compute& c) { return c.vertex == v && !c.backward; };
    return static_cast<size_t>(std::find_if(order.begin(), order.end(), is_run) - order.begin());
  }

  void ExpectCost(const OrderCost& told, const ComputeOrder& changed) {
    const OrderCost replayed = evaluator_.Evaluate(changed, target_);
    EXPECT_EQ(told.overload, replayed.overload);
    EXPECT_EQ(told.forward_time, replayed.forward_time);
  }

 private:
  const OpGraph ops_;
  OrderEvaluator evaluator_;
  int64_t target_ = 0;
  OrderProfile profile_;
  OrderCost cost_;
};

// What runs before the compute and may run again, some of it.
std::vector<int> DrawInserted(const DrawnOrder& drawn, size_t before, std::mt19937_64* rng) {
  std::vector<int> vertices;
  for (int v = 0; v < drawn.ops().size(); ++v) {
    if (drawn.ops().costs(v).recomputable && DrawnOrder::FirstRun(drawn.order(), v) < before &&
        Below(3, rng) == 0) {
      vertices.push_back(v);
    }
  }
  return vertices;
}

ComputeOrder With(const ComputeOrder& order, size_t before, const std::vector<int>& vertices,
                  bool instead_of_next) {
  ComputeOrder changed(order.begin(), order.begin() + static_cast<ptrdiff_t>(before));
  for (const int v : vertices) changed.push_back({v, false});
  std::vector<int> left_out = instead_of_next ? vertices : std::vector<int>();
  for (size_t i = before; i < order.size(); ++i) {
    const auto out = order[i].backward
                         ? left_out.end()
                         : std::find(left_out.begin(), left_out.end(), order[i].vertex);
    if (out == left_out.end()) {
      changed.push_back(order[i]);
    } else {
      left_out.erase(out);
    }
  }
  return changed;
}

ComputeOrder Moved(const ComputeOrder& order, size_t index, size_t before) {
  ComputeOrder changed;
  for (size_t i = 0; i <= order.size(); ++i) {
    if (i == before) changed.push_back(order[index]);
    if (i < order.size() && i != index) changed.push_back(order[i]);
  }
  return changed;
}

void ExpectInsertions(DrawnOrder* drawn, OrderTrials* trials, std::mt19937_64* rng) {
  for (int i = 0; i < 10; ++i) {
    const size_t before = Below(drawn->order().size() + 1, rng);
    const std::vector<int> vertices = DrawInserted(*drawn, before, rng);
    for (const bool instead_of_next : {false, true}) {
      SCOPED_TRACE(instead_of_next ? "put in instead of the next" : "put in");
      drawn->ExpectCost(trials->With(static_cast<int>(before), vertices, instead_of_next),
                        With(drawn->order(), before, vertices, instead_of_next));
    }
  }
}

// Repeats go anywhere after the first run; a first run may go as far as nothing needs it.
void ExpectMoves(DrawnOrder* drawn, OrderTrials* trials, std::mt19937_64* rng) {
  SCOPED_TRACE("moved");
  const ComputeOrder& order = drawn->order();
  for (const size_t index : drawn->Repeats()) {
    const size_t first = DrawnOrder::FirstRun(order, order[index].vertex);
    const size_t before = first + 1 + Below(order.size() - first, rng);
    if (before == index || before == index + 1) continue;
    drawn->ExpectCost(trials->Moved(static_cast<int>(index), static_cast<int>(before)),
                      Moved(order, index, before));
  }
  for (size_t index = 0; index + 2 < order.size(); ++index) {
    const Compute& c = order[index];
    if (c.backward || DrawnOrder::FirstRun(order, c.vertex) != index) continue;
    const std::vector<OpGraph::Input> next(drawn->ops().inputs(order[index + 1].vertex).begin(),
                                           drawn->ops().inputs(order[index + 1].vertex).end());
    const bool needed = order[index + 1].vertex == c.vertex ||
                        std::any_of(next.begin(), next.end(), [&c](const OpGraph::Input& input) {
                          return input.vertex == c.vertex;
                        });
    if (needed || order[index + 1].backward) continue;
    drawn->ExpectCost(trials->Moved(static_cast<int>(index), static_cast<int>(index + 2)),
                      Moved(order, index, index + 2));
  }
}

// One repeat after the other, half of them for good.
void ExpectRemovals(DrawnOrder* drawn, OrderTrials* trials, std::mt19937_64* rng) {
  SCOPED_TRACE("taken out");
  std::vector<size_t> repeats = drawn->Repeats();
  std::shuffle(repeats.begin(), repeats.end(), *rng);
  std::vector<bool> out(drawn->order().size(), false);
  for (const size_t index : repeats) {
    out[index] = true;
    ComputeOrder changed;
    for (size_t i = 0; i < drawn->order().size(); ++i) {
      if (!out[i]) changed.push_back(drawn->order()[i]);
    }
    drawn->ExpectCost(trials->Without(static_cast<int>(index)), changed);
    if (Below(2, rng) == 0) {
      trials->Keep();
    } else {
      out[index] = false;
    }
  }
}

void ExpectSameAsReplays(const Graph& graph, std::mt19937_64* rng) {
  DrawnOrder drawn(graph, rng);
  OrderTrials trials(drawn.ops());
  ASSERT_TRUE(trials.Start(drawn.profile(), drawn.cost(), drawn.target()));
  ExpectInsertions(&drawn, &trials, rng);
  ExpectMoves(&drawn, &trials, rng);
  ExpectRemovals(&drawn, &trials, rng);
}

TEST(OrderTrials, SayWhatAReplayOfTheChangedOrderSays) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 1500 && !::testing::Test::HasFailure(); ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 1 + i % 20;
    options.reach = 4;
    options.max_size = 20;
    options.sources = i % 3 == 0 ? 0.2 : 0.0;
    options.with_flags = i % 2 == 0;
    const Graph graph = testing::RandomGraph(options, &rng);
    SCOPED_TRACE(testing::Describe(graph));
    ExpectSameAsReplays(graph, &rng);
  }
}

TEST(OrderTrials, SayItOfComputeDags) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 1000 && !::testing::Test::HasFailure(); ++i) {
    testing::RandomComputeDagOptions options;
    options.nodes = 1 + i % 20;
    options.with_flags = i % 2 == 0;
    const Graph graph = testing::RandomComputeDag(options, &rng);
    SCOPED_TRACE(testing::Describe(graph));
    ExpectSameAsReplays(graph, &rng);
  }
}

// Sizes whose sums are counted in units of several bytes.
TEST(OrderTrials, SayItInTheUnitsOfTheGraph) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + i % 12;
    GraphSpec spec;
    const Graph small = testing::RandomGraph(options, &rng);
    for (int v = 0; v < small.size(); ++v) {
      Vertex vertex = small.vertex(v);
      vertex.output = Bytes((vertex.output.value() << 40) + i);
      for (GraphInput& input : vertex.inputs) input.vertex = small.vertex(input.vertex).id;
      spec.vertices.push_back(vertex);
    }
    const absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectSameAsReplays(*graph, &rng);
  }
}

TEST(OrderTrials, CannotTellWhereAnOpStopsEarlyOrExtrasStay) {
  std::mt19937_64 rng(4);
  testing::RandomGraphOptions options;
  options.vertices = 12;
  int stops = 0;
  for (int i = 0; i < 50; ++i) {
    options.with_stops = i % 2 == 0;
    const OpGraph ops(testing::RandomGraph(options, &rng));
    OrderEvaluator evaluator(ops);
    OrderProfile profile;
    const OrderCost cost = evaluator.EvaluateWithProfile(StoreAllOrder(ops), 1, &profile);
    EXPECT_EQ(OrderTrials(ops).Start(profile, cost, 1), !ops.stops());
    stops += ops.stops() ? 1 : 0;
    profile.order.front().extras_stay = true;
    EXPECT_FALSE(OrderTrials(ops).Start(profile, cost, 1));
  }
  EXPECT_GT(stops, 0);
}

}  // namespace
}  // namespace stowage

#include "server/entries/staleness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "server/entries/cost_ratios.h"
#include "server/entries/plan_under.h"
#include "solvers/schedule/evaluator.h"
#include "tests/server/support/asked.h"
#include "tests/solvers/graph_search.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/schedule_search.h"
#include "tests/solvers/transfer_search.h"

namespace stowage::testing {
namespace {

// Times between nothing and twice as long, overheads a little larger.
class Jitter {
 public:
  explicit Jitter(std::mt19937_64* rng) : rng_(rng) {}

  template <class Step>
  void Of(Step* step) const {
    for (Nanos Step::*time : {&Step::forward_time, &Step::backward_time}) {
      step->*time = Nanos((step->*time).value() * Draw(0, 8) / 4);
    }
    for (Bytes Step::*overhead :
         {&Step::forward_saving_overhead, &Step::forward_overhead, &Step::backward_overhead}) {
      step->*overhead += Bytes(Draw(0, 1));
    }
    if (step->stops()) OfStopped(step);
  }
  Chain Of(const Chain& chain) const {
    ChainSpec spec = chain.spec();
    for (Stage& stage : spec.stages) Of(&stage);
    Of(&spec.loss);
    return *Chain::Create(std::move(spec));
  }
  Graph Of(const Graph& graph) const {
    GraphSpec spec;
    for (int p = 0; p < graph.size(); ++p) {
      spec.vertices.push_back(graph.vertex(p));
      spec.vertices.back().id = p;
      Of(&spec.vertices.back());
    }
    return *Graph::Create(std::move(spec));
  }
  TransferModel Of(TransferModel link) const {
    for (CopyCost* cost : {&link.to_host, &link.to_device}) {
      // A link that takes no time stays one.
      const int64_t quarters = Draw(2, 8);
      if (cost->bytes_per_second <= std::numeric_limits<int64_t>::max() / 8) {
        cost->bytes_per_second = std::max<int64_t>(1, cost->bytes_per_second * quarters / 4);
      }
      cost->latency = Nanos(cost->latency.value() * Draw(0, 8) / 4);
    }
    return link;
  }

 private:
  // No more than a forward that goes on.
  template <class Step>
  void OfStopped(Step* step) const {
    Nanos& time = *step->recompute_saving_time;
    time = std::min(Nanos(time.value() * Draw(0, 8) / 4), step->forward_time);
    if (!step->recompute_saving_overhead) return;
    Bytes& overhead = *step->recompute_saving_overhead;
    overhead = std::min(overhead + Bytes(Draw(0, 1)), step->output + step->forward_saving_overhead);
  }
  int64_t Draw(int64_t least, int64_t most) const {
    return std::uniform_int_distribution<int64_t>(least, most)(*rng_);
  }
  std::mt19937_64* rng_;
};

// The optimum under the reference is the best bound there is; what follows from it must not be above
// the optimum under the caller's costs.
TEST(BoundUnder, IsNeverAboveTheOptimumOfAChain) {
  std::mt19937_64 rng(3);
  int tight = 0, compared = 0;
  for (int round = 0; round < 60; ++round) {
    const Chain reference = RandomChain(3 + round % 2, VariedOptions(round), &rng);
    const Chain caller = Jitter(&rng).Of(reference);
    const int64_t peak = Instance(caller).store_all()->peak.value();
    for (int64_t budget = peak / 2; budget <= peak; budget += 1 + peak / 8) {
      const auto theirs = SearchSchedules(caller, budget);
      const auto known = SearchSchedules(reference, budget);
      if (!theirs) continue;
      ASSERT_TRUE(known) << "what fits the caller fits under the reference";
      const Nanos bound = BoundUnder({caller, {}}, {reference, {}}, Nanos(known->makespan));
      EXPECT_LE(bound.value(), theirs->makespan) << Describe(reference) << Describe(caller);
      // Of any class, so the expectation from the optimum is a bound, too: no step is tiny here.
      EXPECT_GE(bound, IdealTime(caller));
      tight += bound.value() == theirs->makespan ? 1 : 0;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(tight, compared / 4);
}

TEST(BoundUnder, IsNeverAboveTheOptimumOfAGraph) {
  std::mt19937_64 rng(4);
  int above_ideal = 0;
  for (int round = 0; round < 30; ++round) {
    RandomGraphOptions options;
    options.vertices = 4;
    options.with_flags = round % 2 == 0;
    const Graph reference = RandomGraph(options, &rng);
    const Graph caller = Jitter(&rng).Of(reference);
    const int64_t least = LeastGraphPeak(caller);
    for (int64_t budget = least; budget <= least + 4; budget += 2) {
      const auto theirs = SearchGraphSchedules(caller, budget);
      const auto known = SearchGraphSchedules(reference, budget);
      ASSERT_TRUE(theirs && known);
      const Nanos bound = BoundUnder({caller, {}}, {reference, {}}, Nanos(known->makespan));
      EXPECT_LE(bound.value(), theirs->makespan) << Describe(reference) << Describe(caller);
      above_ideal += bound > IdealTime(caller) ? 1 : 0;
    }
  }
  EXPECT_GT(above_ideal, 5);
}

TEST(BoundUnder, IsNeverAboveTheOptimumWithTransfers) {
  std::mt19937_64 rng(5);
  int compared = 0;
  for (int round = 0; round < 25; ++round) {
    const Chain reference = RandomChain(2, VariedOptions(round), &rng);
    const Chain caller = Jitter(&rng).Of(reference);
    const TransferModel link = RandomTransferModel(&rng);
    const TransferModel other = Jitter(&rng).Of(link);
    const int64_t peak = Instance(caller).store_all()->peak.value();
    for (const int64_t budget : {peak * 2 / 3, peak * 4 / 5, peak - 1}) {
      const auto theirs = SearchTransfers(caller, other, budget);
      const auto known = SearchTransfers(reference, link, budget);
      if (!theirs) continue;
      ASSERT_TRUE(known);
      const Nanos bound = BoundUnder({caller, other}, {reference, link}, Nanos(known->makespan));
      EXPECT_LE(bound.value(), theirs->makespan) << Describe(reference) << Describe(caller);
      ++compared;
    }
  }
  EXPECT_GT(compared, 25);
}

Chain WithTimes(const std::vector<int64_t>& forward, int64_t overhead = 0) {
  ChainSpec spec;
  spec.input = Bytes(100);
  for (const int64_t time : forward) {
    Stage stage;
    stage.forward_time = Nanos(time);
    stage.backward_time = Nanos(2000);
    stage.output = stage.output_gradient = Bytes(100);
    stage.saved = Bytes(300);
    stage.backward_overhead = Bytes(100 + overhead);
    spec.stages.push_back(stage);
  }
  return *Chain::Create(std::move(spec));
}

TEST(BoundUnder, ScalesWhatIsRepeatedAlone) {
  const Instance reference{WithTimes({1000, 1000}), {}}, caller{WithTimes({900, 1500}), {}};
  EXPECT_EQ(BoundUnder(caller, reference, Nanos(6000)), Nanos(6400));
  EXPECT_EQ(BoundUnder(caller, reference, Nanos(7000)), Nanos(6400 + 900));
  EXPECT_EQ(BoundUnder(reference, reference, Nanos(7123)), Nanos(7123));
}

TEST(BoundUnder, SaysNothingWhereMoreFits) {
  const Instance large{WithTimes({1000, 1000}, 50), {}}, small{WithTimes({1000, 1000}), {}};
  EXPECT_EQ(BoundUnder(small, large, Nanos(7000)), Nanos(0));
  EXPECT_EQ(BoundUnder(large, small, Nanos(7000)), Nanos(7000));
  TransferModel link = {{1000, Nanos(1)}, {1000, Nanos(1)}, false, Bytes(1000)};
  const Instance instance = small.WithLink(link);
  EXPECT_EQ(BoundUnder(instance, small, Nanos(7000)), Nanos(0));
  EXPECT_EQ(BoundUnder(small, instance, Nanos(7000)), Nanos(7000));
  link.host_memory = Bytes(1001);
  const Instance larger = small.WithLink(link);
  link.host_memory = Bytes(1000);
  link.full_duplex = true;
  const Instance duplex = small.WithLink(link);
  EXPECT_EQ(BoundUnder(larger, instance, Nanos(7000)), Nanos(0));
  EXPECT_EQ(BoundUnder(duplex, instance, Nanos(7000)), Nanos(0));
  EXPECT_EQ(BoundUnder(instance, duplex, Nanos(7000)), Nanos(7000));
}

TEST(ExpectedUnder, CountsTinyStepsAsOne) {
  std::vector<int64_t> reference(40, 1000), caller(40, 950);
  for (size_t i = 0; i < 20; ++i) {
    reference[i] = 10;
    caller[i] = i % 2 == 0 ? 2 : 18;
  }
  const Instance known{WithTimes(reference), {}}, asked{WithTimes(caller), {}};
  const Nanos ideal = IdealTime(asked.problem());
  EXPECT_EQ(ExpectedUnder(asked, known, IdealTime(known.problem()) + Nanos(1000)),
            ideal + Nanos(950));
  // A bound must not: a schedule may repeat just these.
  EXPECT_EQ(BoundUnder(asked, known, IdealTime(known.problem()) + Nanos(1000)), ideal + Nanos(200));
}

// Where the plan is the optimum of its class, the class has nothing faster than is expected.
TEST(ExpectedUnder, IsABoundOfTheClassWhereNoStepIsTiny) {
  std::mt19937_64 rng(8);
  int recomputing = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<int64_t> reference, caller;
    for (int i = 0; i < 8; ++i) {
      reference.push_back(1000 + static_cast<int64_t>(rng() % 2000));
      caller.push_back(reference.back() * (80 + static_cast<int64_t>(rng() % 41)) / 100);
    }
    const Problem known = WithTimes(reference), asked = WithTimes(caller);
    PlanOptions options;
    options.solver = "optimal_persistent";
    const Bytes budget(1300);
    const Plan best = *MakePlan(known, budget, options), theirs = *MakePlan(asked, budget, options);
    ASSERT_EQ(best.status, PlanStatus::kFound);
    ASSERT_TRUE(best.bounds.proven_optimal && theirs.bounds.proven_optimal);
    recomputing += theirs.prediction.recomputed_forwards > 0 ? 1 : 0;
    EXPECT_LE(ExpectedUnder({asked, {}}, {known, {}}, best.prediction.makespan),
              theirs.prediction.makespan);
  }
  EXPECT_EQ(recomputing, 40);
}

TEST(Staleness, JitterOfAFifthIsNotStale) {
  std::mt19937_64 rng(9);
  int fresh = 0, stale = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> reference, caller;
    for (int i = 0; i < 12; ++i) {
      reference.push_back(1000 + static_cast<int64_t>(rng() % 2000));
      caller.push_back(reference.back() * (80 + static_cast<int64_t>(rng() % 41)) / 100);
    }
    const Asked known = ProblemOf(Problem(WithTimes(reference)));
    const Asked asked = ProblemOf(Problem(WithTimes(caller)));
    const Plan plan = Solved(known, Bytes(known->store_all.peak.value() * 6 / 10)).plan;
    const auto judged =
        PlanUnder(*asked->costs, asked->store_all, *known->costs, plan, plan.budget);
    ASSERT_TRUE(judged.has_value());
    const Staleness staleness =
        StalenessOf(*asked->costs, *known->costs, plan.prediction.makespan, *judged);
    EXPECT_GE(staleness.bound, IdealTime(asked->costs->problem()));
    fresh += FreshnessOf(staleness) == Freshness::kFresh ? 1 : 0;
    stale += FreshnessOf(staleness) == Freshness::kStale ? 1 : 0;
  }
  EXPECT_GE(fresh, 90);
  EXPECT_EQ(stale, 0);
}

TEST(Staleness, IsOfCostsThatMoved) {
  Staleness staleness;
  EXPECT_EQ(FreshnessOf(staleness), Freshness::kFresh);
  staleness.excess = 0.06;
  EXPECT_EQ(FreshnessOf(staleness), Freshness::kAging);
  EXPECT_EQ(FreshnessOf(staleness, 0.1), Freshness::kFresh);
  staleness.excess = 0.11;
  EXPECT_EQ(FreshnessOf(staleness), Freshness::kStale);
}

}  // namespace
}  // namespace stowage::testing

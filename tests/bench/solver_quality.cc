// How near searches come to the optimum, where exhaustive search tells it. CPU time of the searches and, as counters,
// `pairs` of a problem and a budget that were compared, the share of these that is `optimal`, and the `mean` and `worst`
// of what they take over the optimum.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

#include "solvers/graph/internal/order_search.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/solvers.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer_search.h"

namespace stowage {
namespace {

class Gaps {
 public:
  void Add(int64_t found, int64_t optimum) {
    const double ratio =
        static_cast<double>(found) / static_cast<double>(std::max<int64_t>(optimum, 1));
    ++pairs_;
    optimal_ += found == optimum ? 1 : 0;
    sum_ += ratio;
    worst_ = std::max(worst_, ratio);
  }

  void Show(benchmark::State* state) const {
    state->counters["pairs"] = pairs_;
    state->counters["optimal"] = optimal_ / pairs_;
    state->counters["mean"] = sum_ / pairs_;
    state->counters["worst"] = worst_;
  }

 private:
  double pairs_ = 0;
  double optimal_ = 0;
  double sum_ = 0;
  double worst_ = 1;
};

// Of the search alone, at the peaks of all orders that no other one beats.
void CompareOrders(const Graph& graph, benchmark::State* state, Gaps* gaps) {
  const OpGraph ops(graph);
  OrderSearch search(ops, {});
  search.Offer(StoreAllOrder(ops));
  state->ResumeTiming();
  benchmark::DoNotOptimize(search.Improve(1000000 * ops.size(), nullptr).ok());
  state->PauseTiming();
  const ExactOrders exact =
      *SearchAllOrders(ops, search.pool(), PeakLowerBound(graph).value(), 1 << 18, nullptr);
  OrderPool best = search.pool();
  OrderEvaluator evaluator(ops);
  for (const ComputeOrder& order : exact.orders) best.Offer(evaluator.Evaluate(order, 0), order);
  const int64_t backward = graph.ideal_time().value() - ops.ideal_time();
  for (const OrderPool::Entry& point : best.entries()) {
    const size_t within = search.pool().Within(point.peak);
    if (within == 0) continue;
    gaps->Add(search.pool().entries()[within - 1].forward_time + backward,
              point.forward_time + backward);
  }
}

void BM_OrderSearchAgainstEveryOrder(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    std::mt19937_64 rng(7);
    Gaps gaps;
    for (int i = 0; i < 40; ++i) {
      testing::RandomGraphOptions options;
      options.vertices = 4 + i % 9;
      options.density = 0.2 + 0.1 * (i % 4);
      CompareOrders(testing::RandomGraph(options, &rng), &state, &gaps);
    }
    gaps.Show(&state);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_OrderSearchAgainstEveryOrder)->Iterations(1)->Unit(benchmark::kMillisecond);

void BM_JointAgainstEverySchedule(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    std::mt19937_64 rng(81);
    Gaps gaps;
    for (int64_t i = 0; i < state.range(1); ++i) {
      const Chain chain =
          testing::RandomChain(stages, testing::VariedOptions(static_cast<int>(i)), &rng);
      const Instance instance(chain, testing::RandomTransferModel(&rng));
      const int64_t all = instance.store_all()->peak.value();
      const int64_t least = PeakLowerBound(chain).value();
      if (least >= all) continue;
      const int64_t budget = std::uniform_int_distribution<int64_t>(least, all - 1)(rng);
      const auto fastest = testing::SearchTransfers(chain, *instance.link(), budget);
      state.ResumeTiming();
      const Plan plan = *JointSolver().Solve(instance, Bytes(budget), {});
      state.PauseTiming();
      gaps.Add(plan.prediction.makespan.value(), fastest->makespan);
    }
    gaps.Show(&state);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_JointAgainstEverySchedule)
    ->Args({2, 400})
    ->Args({3, 40})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stowage

BENCHMARK_MAIN();

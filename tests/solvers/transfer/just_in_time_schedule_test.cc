#include "solvers/transfer/internal/transfer_search.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/instance.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

// Bytes held, over all instructions.
double Held(const Graph& graph, const TransferModel& link, const Schedule& schedule) {
  std::vector<TimelinePoint> timeline;
  EXPECT_TRUE(Evaluator(Instance(graph, link)).Run(schedule, &timeline).ok());
  double held = 0;
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsTransfer(schedule[i].op)) held += static_cast<double>(timeline[i].held.value());
  }
  return held;
}

// Of plain training with tensors on the host, at a share of its peak; nothing if none fits.
Schedule JustInTime(const Graph& graph, const TransferModel& link, double share, Schedule* before) {
  const Schedule store_all = StoreAllSchedule(graph);
  const Bytes peak = Evaluator(graph).Run(store_all)->peak;
  const Bytes budget(static_cast<int64_t>(static_cast<double>(peak.value()) * share));
  TransferSearch search(Instance(graph, link), {budget}, {});
  EXPECT_TRUE(search.Offer(store_all).ok());
  const TransferSearch::Best& best = search.bests().front();
  if (!best.found()) return {};
  *before = best.schedule;
  return JustInTimeSchedule(Instance(graph, link), best.compute, best.schedule);
}

void ExpectNoWorse(const Graph& graph, const TransferModel& link, const Schedule& before,
                   const Schedule& just_in_time) {
  const Simulation was = *Evaluator(Instance(graph, link)).Run(before);
  const absl::StatusOr<Simulation> is = Evaluator(Instance(graph, link)).Run(just_in_time);
  ASSERT_TRUE(is.ok()) << is.status();
  EXPECT_LE(is->makespan, was.makespan);
  EXPECT_LE(is->peak, was.peak);
  EXPECT_EQ(is->offloaded, was.offloaded);
  EXPECT_EQ(just_in_time.size(), before.size());
  EXPECT_TRUE(GradientSums(graph).KeptBy(just_in_time));
}

TEST(JustInTimeSchedule, HoldsLessOverTimeAndIsAsFast) {
  const CopyCost cost{12200000000, Nanos(10000)};
  const TransferModel link{cost, cost, true, Bytes(int64_t{1} << 50)};
  for (const char* name : {"densenet121", "nasnet_a"}) {
    SCOPED_TRACE(name);
    NetworkOptions options;
    options.name = name;
    options.batch = 4;
    const Graph graph = GraphOf(MakeNetwork(options).value(), ModelledV100()).value();
    Schedule before;
    const Schedule just_in_time = JustInTime(graph, link, 0.4, &before);
    ASSERT_FALSE(just_in_time.empty());
    ExpectNoWorse(graph, link, before, just_in_time);
    EXPECT_LT(Held(graph, link, just_in_time), Held(graph, link, before));
  }
}

TEST(JustInTimeSchedule, OfRandomGraphsIsNoWorse) {
  std::mt19937_64 rng(5);
  int changed = 0;
  for (int i = 0; i < 400; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 3 + i % 12;
    options.with_aliases = i % 3 == 0;
    const Graph graph = testing::RandomGraph(options, &rng);
    const TransferModel link = testing::RandomTransferModel(&rng);
    Schedule before;
    const Schedule just_in_time = JustInTime(graph, link, 0.6 + 0.1 * (i % 4), &before);
    if (just_in_time.empty()) continue;
    ExpectNoWorse(graph, link, before, just_in_time);
    changed += just_in_time != before ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace stowage

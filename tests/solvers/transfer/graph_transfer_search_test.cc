#include "solvers/transfer/internal/transfer_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/strategies.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage {
namespace {

struct Drawn {
  Graph graph;
  TransferModel link;
  Schedule compute;
  Simulation plain;
};

std::optional<Drawn> Draw(int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = 3 + i % 8;
  options.with_aliases = i % 3 == 0;
  const Graph graph = testing::RandomGraph(options, rng);
  const Schedule compute = WithDiscards(graph, testing::RandomSchedule(graph, rng));
  const absl::StatusOr<Simulation> plain = Evaluator(graph).Run(compute);
  if (!plain.ok()) return std::nullopt;
  return Drawn{graph, testing::RandomTransferModel(rng), compute, *plain};
}

std::vector<Bytes> AllBudgets(Bytes most) {
  std::vector<Bytes> budgets;
  for (Bytes b; b <= most; b += Bytes(1)) budgets.push_back(b);
  return budgets;
}

void ExpectValid(const Drawn& d, const TransferSearch::Best& best) {
  const absl::StatusOr<Simulation> s = Evaluator(Instance(d.graph, d.link)).Run(best.schedule);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->makespan, best.makespan);
  EXPECT_LE(s->peak, best.budget);
  const auto is_transfer = [](const Instruction& i) { return IsTransfer(i.op); };
  EXPECT_TRUE(std::none_of(best.compute.begin(), best.compute.end(), is_transfer));
}

TEST(TransferSearch, IsNoWorseThanAnyWayOffered) {
  std::mt19937_64 rng(1);
  int found = 0, moved = 0;
  for (int i = 0; i < 300; ++i) {
    const std::optional<Drawn> d = Draw(i, &rng);
    if (!d) continue;
    const Schedule store_all = StoreAllSchedule(d->graph);
    TransferSearch search(Instance(d->graph, d->link), AllBudgets(d->plain.peak), {});
    ASSERT_TRUE(search.Offer(d->compute).ok());
    if (Evaluator(d->graph).Run(store_all).ok()) {
      ASSERT_TRUE(search.Offer(store_all).ok());
    }
    for (size_t b = 0; b < search.bests().size(); ++b) {
      ASSERT_TRUE(search.OfferThoroughly(d->compute, b).ok());
      const TransferSearch::Best& best = search.bests()[b];
      EXPECT_EQ(best.found(), best.budget >= search.least_budget());
      if (best.found()) ExpectValid(*d, best);
      for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
        const auto alone = testing::OffloadFrom(Instance(d->graph, d->link), d->compute,
                                                best.budget, *strategy, {});
        ASSERT_TRUE(alone.ok()) << alone.status();
        if (!alone->has_value()) continue;
        EXPECT_LE(best.makespan, (*alone)->prediction.makespan);
        ++found;
        moved += (*alone)->prediction.offloaded > Bytes(0) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(found, 5000);
  EXPECT_GT(moved, 500);
}

TEST(TransferSearch, FindsTheLeastBudgetOfABoundedHost) {
  std::mt19937_64 rng(2);
  int above_the_device = 0;
  for (int i = 0; i < 300; ++i) {
    const std::optional<Drawn> d = Draw(i, &rng);
    if (!d) continue;
    TransferModel narrow = d->link;
    narrow.host_memory = Bytes(i % 10);
    TransferSearch wide(Instance(d->graph, d->link), {}, {});
    TransferSearch search(Instance(d->graph, narrow), {}, {});
    ASSERT_TRUE(wide.Offer(d->compute).ok());
    ASSERT_TRUE(search.Offer(d->compute).ok());
    const auto fits = [&](Bytes memory) {
      TransferSearch at(Instance(d->graph, narrow), {memory}, {});
      return at.Offer(d->compute).ok() && at.bests()[0].found();
    };
    EXPECT_TRUE(fits(search.least_budget()));
    if (search.least_budget() > Bytes(0)) {
      EXPECT_FALSE(fits(search.least_budget() - Bytes(1)));
    }
    EXPECT_LE(wide.least_budget(), search.least_budget());
    EXPECT_LE(search.least_budget(), d->plain.peak);
    above_the_device += wide.least_budget() < search.least_budget() ? 1 : 0;
  }
  EXPECT_GT(above_the_device, 50);
}

TEST(TransferSearch, RetainsWhatThereIsRoomFor) {
  std::mt19937_64 rng(3);
  int faster = 0;
  for (int i = 0; i < 600; ++i) {
    const std::optional<Drawn> d = Draw(i, &rng);
    if (!d || d->plain.recomputed_forwards == 0) continue;
    TransferSearch search(Instance(d->graph, d->link), {d->plain.peak, d->plain.peak + Bytes(2)},
                          {});
    ASSERT_TRUE(search.Offer(d->compute).ok());
    const std::vector<TransferSearch::Best> before = search.bests();
    ASSERT_TRUE(search.Retain(0, 1000000).ok());
    ASSERT_TRUE(search.Retain(1, 0).ok());
    ExpectValid(*d, search.bests()[0]);
    ExpectValid(*d, search.bests()[1]);
    EXPECT_LE(search.bests()[0].makespan, before[0].makespan);
    EXPECT_LE(search.bests()[1].makespan, search.bests()[0].makespan);  // inherited
    faster += search.bests()[0].makespan < before[0].makespan ? 1 : 0;
  }
  EXPECT_GT(faster, 50);
}

TEST(TransferSearch, RepeatsWhatTheLinkIsTooSlowFor) {
  std::mt19937_64 rng(4);
  int faster = 0;
  for (int i = 0; i < 600; ++i) {
    const std::optional<Drawn> d = Draw(i, &rng);
    if (!d) continue;
    const Schedule store_all = StoreAllSchedule(d->graph);
    const absl::StatusOr<Simulation> plain = Evaluator(d->graph).Run(store_all);
    if (!plain.ok()) continue;
    TransferSearch search(Instance(d->graph, d->link),
                          {Bytes(plain->peak.value() * 2 / 3), plain->peak}, {});
    ASSERT_TRUE(search.Offer(store_all).ok());
    const std::vector<TransferSearch::Best> before = search.bests();
    ASSERT_TRUE(search.Repeat(0, 1000000).ok());
    ASSERT_TRUE(search.Repeat(1, 0).ok());
    EXPECT_EQ(search.bests()[0].found(), before[0].found());
    if (!before[0].found()) continue;
    ExpectValid(*d, search.bests()[0]);
    ExpectValid(*d, search.bests()[1]);
    EXPECT_LE(search.bests()[0].makespan, before[0].makespan);
    EXPECT_EQ(search.bests()[1].makespan, before[1].makespan);  // plain training
    faster += search.bests()[0].makespan < before[0].makespan ? 1 : 0;
  }
  EXPECT_GT(faster, 50);
}

// Ops of networks at half the memory of plain training, at 12.2 GB/s: never slower than either way alone.
TEST(TransferSearch, IsNoSlowerThanRecomputingOrOffloadingAloneOnNetworks) {
  for (const char* name : {"densenet121", "inception_v3"}) {
    NetworkOptions options;
    options.name = name;
    options.image = options.name == "inception_v3" ? 299 : 224;
    options.batch = 32;
    const Graph graph = *GraphOf(*MakeNetwork(options), ModelledV100());
    TransferModel link;
    link.to_host = link.to_device = {12200000000, Nanos(10000)};
    link.host_memory = Bytes(int64_t{64} << 30);
    const Schedule store_all = StoreAllSchedule(graph);
    const Bytes half(Evaluator(graph).Run(store_all)->peak.value() / 2);
    const Frontier orders = *AllOrders(graph, {});
    TransferSearch search(Instance(graph, link), {half}, {});
    ASSERT_TRUE(search.Offer(store_all).ok());
    const Nanos offloading = search.bests()[0].makespan;
    for (const Frontier::Point& point : orders.points()) {
      ASSERT_TRUE(search.Offer(orders.PlanAt(point.peak).schedule).ok());
    }
    EXPECT_LE(search.bests()[0].makespan, offloading) << name;
    EXPECT_LE(search.bests()[0].makespan, orders.At(half)->makespan) << name;
  }
}

}  // namespace
}  // namespace stowage

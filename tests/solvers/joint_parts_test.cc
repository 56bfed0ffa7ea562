// The joint solver where a stage's saved tensors may go one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/text.h"
#include "solvers/transfer/internal/incumbent.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/solvers.h"
#include "solvers/transfer/strategies.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage::testing {
namespace {

TransferModel WideLink(std::mt19937_64* rng) {
  TransferModel transfers = RandomTransferModel(rng);
  transfers.host_memory = Bytes(int64_t{1} << 40);
  return transfers;
}

bool MovesAPart(const Schedule& schedule) {
  return std::any_of(schedule.begin(), schedule.end(),
                     [](const Instruction& i) { return i.part != 0; });
}

// Stages that must be kept leave their output to the next one, and nothing else.
TEST(LeastOnHost, TheScheduleInPartsNeedsThatMuch) {
  std::mt19937_64 rng(1);
  int in_parts = 0, less = 0;
  for (int i = 0; i < 2000; ++i) {
    const Chain whole = RandomChain(1 + i % 12, VariedOptions(4 * i), &rng);
    const Chain chain = WithSavedTensors(whole, &rng);
    const Schedule schedule = LeastScheduleOnHost(chain);
    const absl::StatusOr<Simulation> s = Evaluator(Instance(chain, WideLink(&rng))).Run(schedule);
    ASSERT_TRUE(s.ok()) << s.status() << Describe(chain) << ScheduleText(schedule);
    EXPECT_EQ(s->peak, PeakLowerBound(chain)) << Describe(chain) << ScheduleText(schedule);
    EXPECT_LE(PeakLowerBound(chain), PeakLowerBound(whole));
    less += PeakLowerBound(chain) < PeakLowerBound(whole);
    in_parts += MovesAPart(schedule);
  }
  EXPECT_GT(less, 200);
  EXPECT_GT(in_parts, 500);
}

TEST(LeastOnHost, NoRandomScheduleInPartsNeedsLess) {
  std::mt19937_64 rng(2);
  int tight = 0;
  for (int i = 0; i < 1500; ++i) {
    const Chain chain = WithSavedTensors(RandomChain(1 + i % 3, VariedOptions(4 * i), &rng), &rng);
    const TransferModel link = WideLink(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    const Bytes peak = Evaluator(Instance(chain, link)).Run(schedule)->peak;
    EXPECT_GE(peak, PeakLowerBound(chain)) << Describe(chain) << ScheduleText(schedule);
    tight += peak == PeakLowerBound(chain);
  }
  EXPECT_GT(tight, 50);
}

TEST(Incumbent, TakesPartsWhereTheyAreFaster) {
  NetworkOptions options;
  options.name = "resnet50";
  options.batch = 32;
  const Chain chain = *NetworkChain(options, ModelledV100());
  TransferModel link;
  link.to_host = link.to_device = {12200000000, Nanos(10000)};
  link.host_memory = Bytes(int64_t{1} << 40);
  const Schedule all = StoreAllSchedule(chain);
  const Bytes memory(Evaluator(chain).Run(all)->peak.value() / 10 * 7);
  Incumbent best(Instance(chain, link), memory);
  ASSERT_TRUE(best.OfferThoroughly(all, SolveOptions(), "").ok());
  ASSERT_TRUE(best.found());
  EXPECT_TRUE(MovesAPart(best.schedule()));
  const auto found =
      OffloadFrom(Instance(chain, link), all, memory, DynProgOffload(), SolveOptions());
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ(best.makespan(), (*found)->prediction.makespan);
}

TEST(JointSolver, PlansOnChainsWithSavedTensors) {
  std::mt19937_64 rng(3);
  int in_parts = 0;
  for (int i = 0; i < 220; ++i) {
    const Chain chain = WithSavedTensors(RandomChain(1 + i % 5, VariedOptions(i), &rng), &rng);
    const Instance instance(chain, WideLink(&rng));
    const Schedule all = StoreAllSchedule(chain);
    const Bytes least = PeakLowerBound(chain), most = Evaluator(chain).Run(all)->peak;
    const Bytes budget = least + Bytes((most - least).value() * (i % 4) / 4);
    const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, budget, {});
    ASSERT_TRUE(plan.ok()) << plan.status() << Describe(chain);
    ASSERT_EQ(plan->status, PlanStatus::kFound) << Describe(chain);
    const absl::StatusOr<Simulation> s = Evaluator(instance).Run(plan->schedule);
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_LE(s->peak, budget);
    in_parts += MovesAPart(plan->schedule);
    for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
      const auto alone = OffloadFrom(instance, all, budget, *strategy, SolveOptions());
      ASSERT_TRUE(alone.ok());
      if (!alone->has_value() || MovesAPart((*alone)->schedule)) continue;
      EXPECT_LE(s->makespan, (*alone)->prediction.makespan) << Describe(chain);
    }
  }
  EXPECT_GT(in_parts, 10);
}

}  // namespace
}  // namespace stowage::testing

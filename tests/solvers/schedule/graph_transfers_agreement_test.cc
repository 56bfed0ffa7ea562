// The evaluator for graphs with transfers against a naive replay, and against the evaluator for chains.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/text.h"
#include "tests/solvers/chain_as_graph.h"
#include "tests/solvers/naive_comparison.h"
#include "tests/solvers/naive_graph_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

// Returns whether both call it valid.
bool ExpectEqualToNaive(const Graph& graph, const Schedule& schedule,
                        const TransferModel& transfers) {
  std::vector<TimelinePoint> timeline;
  const testing::NaiveResult naive = testing::NaiveGraphReplay(graph, schedule, &transfers);
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(graph, transfers)).Run(schedule, &timeline);
  EXPECT_EQ(s.ok(), naive.valid) << s.status() << testing::Describe(graph) << "\n"
                                 << ScheduleText(schedule);
  if (!s.ok() || !naive.valid) return false;
  testing::ExpectAsNaive(*s, timeline, naive);
  EXPECT_FALSE(::testing::Test::HasFailure()) << testing::Describe(graph) << "\n"
                                              << ScheduleText(schedule);
  return true;
}

struct Drawn {
  Graph graph;
  TransferModel transfers;
  Schedule schedule;
};

Drawn DrawSchedule(int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = 2 + i % 6;
  options.with_aliases = i % 4 != 0;
  options.with_flags = i % 5 == 0;
  options.with_stops = i % 7 > 3;
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  const Graph graph = testing::RandomGraph(options, rng);
  const TransferModel transfers = testing::RandomTransferModel(rng);
  const Schedule base = testing::RandomSchedule(graph, rng);
  return {graph, transfers, testing::WithRandomTransfers(graph, base, transfers, rng)};
}

// A program that writes in place over what a backward needs has no valid schedule to draw.
bool IsValid(const Drawn& d) {
  return Evaluator(Instance(d.graph, d.transfers)).Run(d.schedule).ok();
}

TEST(GraphTransfers, AgreeWithANaiveReplayOnRandomSchedules) {
  std::mt19937_64 rng(1);
  int moved = 0, waited = 0, recomputing = 0, in_place = 0;
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    const Drawn d = DrawSchedule(i, &rng);
    if (!ExpectEqualToNaive(d.graph, d.schedule, d.transfers)) continue;
    const Simulation s = *Evaluator(Instance(d.graph, d.transfers)).Run(d.schedule);
    if (s.offloaded == Bytes(0)) continue;
    ++moved;
    waited += s.idle_time > Nanos(0) ? 1 : 0;
    recomputing += s.recomputed_forwards > 0 ? 1 : 0;
    for (const Instruction& instruction : d.schedule) {
      const bool leaves = instruction.op == Op::kOffloadStart;
      if (!leaves || instruction.tensor == TensorKind::kSaved) continue;
      for (int p = instruction.stage; p < d.graph.size(); ++p) {
        const bool writes = d.graph.vertex(p).alias == AliasKind::kInPlace;
        in_place += writes && d.graph.storage(p) == instruction.stage - 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(moved, 2000);
  EXPECT_GT(waited, 1000);
  EXPECT_GT(recomputing, 500);
  EXPECT_GT(in_place, 200);
}

TEST(GraphTransfers, AgreeWithANaiveReplayOnBoundedHostMemory) {
  std::mt19937_64 rng(2);
  int refused = 0;
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    Drawn d = DrawSchedule(i, &rng);
    if (!IsValid(d)) continue;
    d.transfers.host_memory = Evaluator(Instance(d.graph, d.transfers)).Run(d.schedule)->host_peak;
    EXPECT_TRUE(ExpectEqualToNaive(d.graph, d.schedule, d.transfers));
    if (d.transfers.host_memory == Bytes(0)) continue;
    d.transfers.host_memory -= Bytes(1);
    EXPECT_FALSE(ExpectEqualToNaive(d.graph, d.schedule, d.transfers));
    ++refused;
  }
  EXPECT_GT(refused, 600);
}

TEST(GraphTransfers, AgreeWithANaiveReplayOnBrokenSchedules) {
  std::mt19937_64 rng(3);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    const Drawn d = DrawSchedule(i, &rng);
    if (!IsValid(d)) continue;
    for (int way = 0; way < testing::kWaysToBreak; ++way) {
      const Schedule broken = testing::Broken(d.schedule, way, &rng);
      ++(ExpectEqualToNaive(d.graph, broken, d.transfers) ? valid : invalid);
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 4000);
}

TEST(GraphTransfers, ChangeNothingWhereThereAreNone) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 500; ++i) {
    testing::RandomGraphOptions options;
    options.with_aliases = true;
    const Graph graph = testing::RandomGraph(options, &rng);
    const Schedule schedule = testing::RandomSchedule(graph, &rng);
    const absl::StatusOr<Simulation> without = Evaluator(graph).Run(schedule);
    const absl::StatusOr<Simulation> with =
        Evaluator(Instance(graph, testing::RandomTransferModel(&rng))).Run(schedule);
    ASSERT_EQ(with.ok(), without.ok());
    if (!with.ok()) continue;
    EXPECT_EQ(with->makespan, without->makespan);
    EXPECT_EQ(with->peak, without->peak);
    EXPECT_EQ(with->peak_instruction, without->peak_instruction);
    EXPECT_EQ(with->idle_time, Nanos(0));
    EXPECT_EQ(with->host_peak, Bytes(0));
  }
}

// Copies that take whole nanoseconds, and no latency: two take as long as one of both sizes.
TransferModel EvenLink(std::mt19937_64* rng) {
  static constexpr std::array<int64_t, 3> kBandwidths = {200000000, 500000000, 1000000000};
  TransferModel link = testing::RandomTransferModel(rng);
  link.to_host = {kBandwidths[(*rng)() % 3], Nanos(0)};
  link.to_device = {kBandwidths[(*rng)() % 3], Nanos(0)};
  return link;
}

TEST(GraphTransfers, AgreeWithTheChainsEvaluator) {
  std::mt19937_64 rng(5);
  int compared = 0, moved = 0, both = 0;
  for (int round = 0; round < 5000; ++round) {
    testing::RandomChainOptions options;
    options.with_flags = round % 3 == 0;
    options.with_input_gradient = true;
    const Chain chain =
        testing::ComparableChain(testing::RandomChain(1 + round % 6, options, &rng));
    const TransferModel link = EvenLink(&rng);
    const Schedule schedule =
        testing::WithRandomTransfers(chain, testing::RandomSchedule(chain, &rng), link, &rng);
    const Schedule translated = testing::ScheduleAsGraph(chain, schedule);
    if (translated.empty()) continue;
    const absl::StatusOr<Simulation> want = Evaluator(Instance(chain, link)).Run(schedule);
    const absl::StatusOr<Simulation> got =
        Evaluator(Instance(testing::ChainAsGraph(chain), link)).Run(translated);
    ASSERT_TRUE(got.ok()) << got.status() << testing::Describe(chain) << "\n"
                          << ScheduleText(schedule);
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(got->makespan, want->makespan);
    EXPECT_EQ(got->idle_time, want->idle_time);
    EXPECT_EQ(got->recompute_time, want->recompute_time);
    EXPECT_EQ(got->peak, want->peak) << testing::Describe(chain) << "\n" << ScheduleText(schedule);
    EXPECT_EQ(got->host_peak, want->host_peak);
    EXPECT_EQ(got->offloaded, want->offloaded);
    EXPECT_EQ(got->prefetched, want->prefetched);
    ASSERT_FALSE(HasFailure());
    ++compared;
    moved += want->offloaded > Bytes(0) ? 1 : 0;
    both += want->offloaded > Bytes(0) && want->recomputed_forwards > 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(moved, 800);
  EXPECT_GT(both, 200);
}

}  // namespace
}  // namespace stowage

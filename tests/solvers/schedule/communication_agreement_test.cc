// The evaluators of schedules with communications beside compute and copies: against naive replays, and
// against the same schedules with everything on compute.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/text.h"
#include "tests/solvers/naive_comparison.h"
#include "tests/solvers/naive_graph_replay.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_communication.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

using Timeline = std::vector<TimelinePoint>;

// Either kind of problem by the same names.
absl::StatusOr<Simulation> Replay(const Chain& chain, const Schedule& schedule,
                                  const TransferModel& link, Timeline* timeline = nullptr) {
  return Evaluator(Instance(chain, link)).Run(schedule, timeline);
}
absl::StatusOr<Simulation> Replay(const Graph& graph, const Schedule& schedule,
                                  const TransferModel& link, Timeline* timeline = nullptr) {
  return Evaluator(Instance(graph, link)).Run(schedule, timeline);
}
testing::NaiveResult Naive(const Chain& chain, const Schedule& schedule,
                           const TransferModel& link) {
  return testing::NaiveReplay(chain, schedule, &link);
}
testing::NaiveResult Naive(const Graph& graph, const Schedule& schedule,
                           const TransferModel& link) {
  return testing::NaiveGraphReplay(graph, schedule, &link);
}

template <class Problem>
struct Drawn {
  Problem problem;
  TransferModel link;
  Schedule schedule;
};

Drawn<Chain> DrawChain(int i, std::mt19937_64* rng) {
  Chain chain = testing::RandomChain(1 + i % 7, testing::VariedOptions(i), rng);
  if (i % 4 == 0) chain = testing::WithSavedTensors(chain, rng);
  Schedule schedule = testing::RandomSchedule(chain, rng);
  chain = testing::WithCollectives(chain, schedule, rng);
  const TransferModel link = testing::RandomTransferModel(rng);
  if (i % 3 != 0) schedule = testing::WithRandomTransfers(chain, schedule, link, rng);
  schedule = testing::WithRandomCommunication(chain, std::move(schedule), rng);
  return {chain, link, schedule};
}

// First forwards keep the output alone, here and there, and a later one makes the extras beside it.
Schedule WithRenewedExtras(const Graph& graph, Schedule schedule, std::mt19937_64* rng) {
  for (int tries = 3 * graph.size(); tries > 0; --tries) {
    const size_t at = (*rng)() % schedule.size();
    if (schedule[at].op != Op::kForwardSave) continue;
    Schedule changed = schedule;
    changed[at].op = Op::kForwardNoSave;
    const size_t later = at + 1 + (*rng)() % (schedule.size() - at);
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(later), schedule[at]);
    if (Evaluator(graph).Run(changed).ok()) schedule = std::move(changed);
  }
  return schedule;
}

Drawn<Graph> DrawGraph(int i, std::mt19937_64* rng) {
  testing::RandomGraphOptions options;
  options.vertices = 2 + i % 7;
  options.with_aliases = i % 4 != 0;
  options.with_flags = i % 5 == 0;
  options.sources = i % 3 == 0 ? 0.2 : 0.0;
  options.collectives = 0.2 + 0.1 * (i % 6);
  const Graph graph = testing::RandomGraph(options, rng);
  Schedule schedule = testing::RandomSchedule(graph, rng);
  if (i % 2 == 0) schedule = WithRenewedExtras(graph, std::move(schedule), rng);
  const TransferModel link = testing::RandomTransferModel(rng);
  if (i % 3 != 0) schedule = testing::WithRandomTransfers(graph, schedule, link, rng);
  return {graph, link, testing::WithRandomCommunication(graph, std::move(schedule), rng)};
}

// Returns whether both call it valid.
template <class Problem>
bool ExpectAgreement(const Problem& problem, const Schedule& schedule, const TransferModel& link) {
  Timeline timeline;
  const testing::NaiveResult naive = Naive(problem, schedule, link);
  const absl::StatusOr<Simulation> s = Replay(problem, schedule, link, &timeline);
  EXPECT_EQ(s.ok(), naive.valid) << s.status();
  if (s.ok() && naive.valid) testing::ExpectAsNaive(*s, timeline, naive);
  EXPECT_FALSE(::testing::Test::HasFailure()) << testing::Describe(problem) << "\n"
                                              << ScheduleText(schedule);
  return s.ok() && naive.valid;
}

struct Seen {
  int valid = 0, invalid = 0;
  int faster = 0;      // than all on compute
  int waited = 0;      // longer than with the copies alone
  int larger = 0;      // in its peak
  int at_the_end = 0;  // compute is done before communication is
};

// What holds beside the same schedule with everything on compute.
template <class Problem>
void ExpectNoSlowerThanOnCompute(const Drawn<Problem>& d, Seen* seen) {
  Timeline timeline;
  const Simulation with = *Replay(d.problem, d.schedule, d.link, &timeline);
  const absl::StatusOr<Simulation> on_compute =
      Replay(d.problem, testing::WithoutCommunication(d.schedule), d.link);
  ASSERT_TRUE(on_compute.ok()) << on_compute.status();
  EXPECT_LE(with.makespan, on_compute->makespan);
  EXPECT_LE(on_compute->makespan, with.makespan + with.communication_time);
  EXPECT_GE(with.peak, on_compute->peak);
  EXPECT_GE(with.makespan + with.communication_time,
            MakespanLowerBound(Instance(d.problem, d.link), with.peak));
  EXPECT_EQ(with.recompute_time, on_compute->recompute_time);
  EXPECT_EQ(with.host_peak, on_compute->host_peak);
  EXPECT_EQ(with.offloaded, on_compute->offloaded);
  EXPECT_EQ(with.prefetched, on_compute->prefetched);
  seen->faster += with.makespan < on_compute->makespan ? 1 : 0;
  seen->waited += with.idle_time > on_compute->idle_time ? 1 : 0;
  seen->larger += with.peak > on_compute->peak ? 1 : 0;
  Nanos compute_end;
  for (size_t i = 0; i < timeline.size(); ++i) {
    if (d.schedule[i].stream == Stream::kCompute) compute_end = timeline[i].end;
  }
  seen->at_the_end += with.makespan > compute_end ? 1 : 0;
}

template <class Draw>
Seen CompareMany(int count, const Draw& draw, int seed) {
  std::mt19937_64 rng(static_cast<uint64_t>(seed));
  Seen seen;
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const auto d = draw(i, &rng);
    if (!ExpectAgreement(d.problem, d.schedule, d.link)) continue;
    ++seen.valid;
    ExpectNoSlowerThanOnCompute(d, &seen);
  }
  return seen;
}

TEST(Communication, AgreesWithANaiveReplayOnChains) {
  const Seen seen = CompareMany(4000, DrawChain, 1);
  EXPECT_EQ(seen.valid, 4000);
  EXPECT_GT(seen.faster, 500);
  EXPECT_GT(seen.waited, 1000);
  EXPECT_GT(seen.larger, 500);
  EXPECT_GT(seen.at_the_end, 200);
}

TEST(Communication, AgreesWithANaiveReplayOnGraphs) {
  const Seen seen = CompareMany(4000, DrawGraph, 2);
  EXPECT_GT(seen.valid, 3000);
  EXPECT_GT(seen.faster, 1000);
  EXPECT_GT(seen.waited, 1000);
  EXPECT_GT(seen.larger, 500);
  EXPECT_GT(seen.at_the_end, 200);
}

// Every choice of what is on the stream, of one order. With one op there it is never slower than with
// none; with one more it may be, behind another.
template <class Draw>
void TryAllChoices(int count, const Draw& draw, int seed, int* slower_with_more) {
  std::mt19937_64 rng(static_cast<uint64_t>(seed));
  for (int round = 0; round < count && !::testing::Test::HasFailure(); ++round) {
    auto d = draw(round, &rng);
    std::vector<size_t> there;
    for (size_t i = 0; i < d.schedule.size(); ++i) {
      if (d.schedule[i].stream == Stream::kCommunication) there.push_back(i);
    }
    if (there.size() > 7 || !Replay(d.problem, d.schedule, d.link).ok()) continue;
    std::vector<Nanos> makespan;
    for (size_t choice = 0; choice < size_t{1} << there.size(); ++choice) {
      for (size_t k = 0; k < there.size(); ++k) {
        const bool moved = (choice >> k & 1) != 0;
        d.schedule[there[k]].stream = moved ? Stream::kCommunication : Stream::kCompute;
      }
      const absl::StatusOr<Simulation> s = Replay(d.problem, d.schedule, d.link);
      ASSERT_TRUE(s.ok()) << s.status();
      makespan.push_back(s->makespan);
      EXPECT_LE(s->makespan, makespan.front());
      for (size_t k = 0; k < there.size(); ++k) {
        const size_t less = choice & ~(size_t{1} << k);
        *slower_with_more += makespan[less] < s->makespan ? 1 : 0;
      }
    }
  }
}

TEST(Communication, IsNoSlowerThanNoneWhateverIsChosen) {
  int slower_on_chains = 0, slower_on_graphs = 0;
  TryAllChoices(500, DrawChain, 5, &slower_on_chains);
  TryAllChoices(1000, DrawGraph, 6, &slower_on_graphs);
  EXPECT_GT(slower_on_graphs, 0);
  EXPECT_EQ(slower_on_chains, 0);
}

template <class Draw>
Seen CompareBroken(int count, const Draw& draw, int seed) {
  std::mt19937_64 rng(static_cast<uint64_t>(seed));
  Seen seen;
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const auto d = draw(i, &rng);
    for (int way = 0; way < testing::kWaysToBreak + 2; ++way) {
      const Schedule broken = way < testing::kWaysToBreak
                                  ? testing::Broken(d.schedule, way, &rng)
                                  : testing::WithOtherStream(d.schedule, &rng);
      ++(ExpectAgreement(d.problem, broken, d.link) ? seen.valid : seen.invalid);
    }
  }
  return seen;
}

TEST(Communication, AgreesWithANaiveReplayOnBrokenChainSchedules) {
  const Seen seen = CompareBroken(1000, DrawChain, 3);
  EXPECT_GT(seen.valid, 1000);
  EXPECT_GT(seen.invalid, 4000);
}

TEST(Communication, AgreesWithANaiveReplayOnBrokenGraphSchedules) {
  const Seen seen = CompareBroken(1000, DrawGraph, 4);
  EXPECT_GT(seen.valid, 1000);
  EXPECT_GT(seen.invalid, 4000);
}

}  // namespace
}  // namespace stowage

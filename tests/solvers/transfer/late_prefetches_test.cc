// Schedules with late prefetches on random chains and graphs: what the evaluator says of them.
#include "solvers/transfer/internal/transfer_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

absl::StatusOr<Simulation> Replay(const Chain& chain, const Schedule& schedule,
                                  const TransferModel& link, std::vector<TimelinePoint>* timeline) {
  return Evaluator(Instance(chain, link)).Run(schedule, timeline);
}
absl::StatusOr<Simulation> Replay(const Graph& graph, const Schedule& schedule,
                                  const TransferModel& link, std::vector<TimelinePoint>* timeline) {
  return Evaluator(Instance(graph, link)).Run(schedule, timeline);
}

struct Counts {
  int delayed = 0;  // schedules
  int smaller = 0;  // of a smaller peak
};

// What is held while each op that is no transfer runs.
std::vector<Bytes> Running(const Schedule& schedule, const std::vector<TimelinePoint>& timeline) {
  std::vector<Bytes> running;
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsTransfer(schedule[i].op)) running.push_back(timeline[i].running);
  }
  return running;
}

Schedule WithoutPrefetchStarts(Schedule schedule) {
  schedule.erase(std::remove_if(schedule.begin(), schedule.end(),
                                [](const Instruction& i) { return i.op == Op::kPrefetchStart; }),
                 schedule.end());
  return schedule;
}

Schedule Copies(Schedule schedule, bool full_duplex) {
  schedule.erase(std::remove_if(schedule.begin(), schedule.end(),
                                [&](const Instruction& i) {
                                  const bool sends = i.op == Op::kOffloadStart && !full_duplex;
                                  return i.op != Op::kPrefetchStart && !sends;
                                }),
                 schedule.end());
  return schedule;
}

template <class Problem>
void Check(const Problem& problem, const TransferModel& link, const Schedule& schedule,
           double margin, Counts* counts) {
  std::vector<TimelinePoint> timeline, late_timeline;
  const Simulation before = *Replay(problem, schedule, link, &timeline);
  const Schedule late = WithLatePrefetches(schedule, timeline, link.full_duplex, margin);
  EXPECT_EQ(WithoutPrefetchStarts(late), WithoutPrefetchStarts(schedule));
  EXPECT_EQ(Copies(late, link.full_duplex), Copies(schedule, link.full_duplex));
  const absl::StatusOr<Simulation> after = Replay(problem, late, link, &late_timeline);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_LE(after->makespan, before.makespan);
  EXPECT_LE(after->peak, before.peak);
  const std::vector<Bytes> running = Running(schedule, timeline);
  const std::vector<Bytes> late_running = Running(late, late_timeline);
  for (size_t i = 0; i < running.size(); ++i) EXPECT_LE(late_running[i], running[i]);
  counts->delayed += late != schedule ? 1 : 0;
  counts->smaller += after->peak < before.peak ? 1 : 0;
}

TEST(LatePrefetches, OfChainsAreNoSlowerAndTakeNoMore) {
  std::mt19937_64 rng(1);
  Counts counts, careful;
  for (int i = 0; i < 400; ++i) {
    Chain chain = RandomChain(1 + i % 7, VariedOptions(i), &rng);
    if (i % 3 == 0) chain = WithSavedTensors(chain, &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(chain, RandomSchedule(chain, &rng), link, &rng);
    Check(chain, link, schedule, 0.0, &counts);
    Check(chain, link, schedule, 1.0, &careful);
    if (HasFailure()) return;
  }
  EXPECT_GT(counts.delayed, 60);
  EXPECT_GT(counts.smaller, 5);
  EXPECT_GT(counts.delayed, careful.delayed);
}

TEST(LatePrefetches, OfGraphsAreNoSlowerAndTakeNoMore) {
  std::mt19937_64 rng(2);
  Counts counts;
  for (int i = 0; i < 250; ++i) {
    RandomGraphOptions options;
    options.vertices = 2 + i % 9;
    options.with_aliases = i % 3 == 0;
    const Graph graph = RandomGraph(options, &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule schedule = WithRandomTransfers(graph, RandomSchedule(graph, &rng), link, &rng);
    Check(graph, link, schedule, 0.0, &counts);
    if (HasFailure()) return;
  }
  EXPECT_GT(counts.delayed, 35);
}

TEST(LatePrefetches, KeepTheMarginThatTheyAreTold) {
  // Stages of 100 ns; the first one's saved tensor is away in between, 40 ns each way.
  ChainSpec spec;
  spec.input = Bytes(8);
  Stage stage;
  stage.output = Bytes(8);
  stage.saved = Bytes(40);
  stage.forward_time = Nanos(100);
  stage.backward_time = Nanos(100);
  spec.stages = {stage, stage, stage};
  spec.loss = stage;
  const Chain chain = Chain::Create(spec).value();
  const CopyCost cost{1000000000, Nanos(0)};
  const TransferModel link{cost, cost, true, Bytes(1000)};
  const Schedule schedule = {ForwardSave(1),
                             ForwardSave(2),
                             OffloadStart(TensorKind::kSaved, 1),
                             OffloadWait(TensorKind::kSaved, 1),
                             PrefetchStart(TensorKind::kSaved, 1),
                             ForwardSave(3),
                             ForwardSave(4),
                             Backward(4),
                             Backward(3),
                             PrefetchWait(TensorKind::kSaved, 1),
                             Backward(2),
                             Backward(1)};
  std::vector<TimelinePoint> timeline;
  ASSERT_TRUE(Evaluator(Instance(chain, link)).Run(schedule, &timeline).ok());
  const auto place = [&](double margin) {
    const Schedule late = WithLatePrefetches(schedule, timeline, true, margin);
    return std::find(late.begin(), late.end(), PrefetchStart(TensorKind::kSaved, 1)) - late.begin();
  };
  // Backward 3 begins 100 ns before the copy is needed, Backward 4 200 ns.
  EXPECT_EQ(place(0.0), 7);
  EXPECT_EQ(place(1.0), 7);
  EXPECT_EQ(place(2.0), 6);
  EXPECT_EQ(place(100.0), 4);
}

}  // namespace
}  // namespace stowage::testing

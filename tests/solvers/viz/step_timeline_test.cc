#include "solvers/viz/step_timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_communication.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_step.h"
#include "tests/solvers/random_transfers.h"

namespace stowage {
namespace {

using testing::EvaluatedStep;
using testing::RandomChain;
using testing::RandomGraph;
using testing::RandomSchedule;
using testing::RandomStep;
using testing::RandomTransferModel;
using testing::VariedGraphOptions;
using testing::VariedOptions;
using testing::WithCollectives;
using testing::WithoutCommunication;
using testing::WithRandomCommunication;
using testing::WithRandomTransfers;
using testing::WithSavedTensors;

// Every moment's sum is the evaluator's memory, no share is negative, time goes on.
void ExpectAsEvaluated(const absl::StatusOr<StepTimeline>& timeline, const EvaluatedStep& step) {
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->simulation.makespan, step.simulation.makespan);
  ASSERT_EQ(timeline->events.size(), step.timeline.size());
  Bytes peak;
  Nanos now;
  for (size_t i = 0; i < step.timeline.size(); ++i) {
    const TimelineEvent& event = timeline->events[i];
    const TimelinePoint& point = step.timeline[i];
    EXPECT_EQ(event.running.total(), point.running) << i;
    EXPECT_EQ(event.held.total(), point.held) << i;
    EXPECT_EQ(event.start, point.start) << i;
    EXPECT_EQ(event.end, point.end) << i;
    EXPECT_EQ(event.host, point.host) << i;
    EXPECT_LE(now, event.reached) << i;
    EXPECT_LE(event.reached, event.left) << i;
    now = event.left;
    for (const MemoryByUse& memory : {event.running, event.held}) {
      for (const Bytes bytes : memory.bytes) EXPECT_LE(Bytes(0), bytes) << i;
      peak = std::max(peak, memory.total(), [](Bytes a, Bytes b) { return a < b; });
    }
  }
  EXPECT_LE(now, step.simulation.makespan);
  EXPECT_EQ(peak, step.simulation.peak);
}

// What the accounting table of chains leaves behind each instruction, as sets of names; transfers of
// whole tensors alone.
class NaiveUses {
 public:
  explicit NaiveUses(const Chain& chain) : chain_(chain), gradient_(chain.length() + 1) {
    plain_.insert(0);
  }

  MemoryByUse After(const Schedule& schedule, size_t at) {
    const Instruction& i = schedule[at];
    const int l = i.stage;
    std::set<int>& named = i.tensor == TensorKind::kSaved ? saved_ : plain_;
    const std::pair<TensorKind, int> tensor{i.tensor, l};
    switch (i.op) {
      case Op::kForwardSave:
        saved_.insert(l);
        stopped_.erase(l);
        if (!ran_.insert(l).second && chain_.stage(l).stops() &&
            WhatFollows(schedule, at) != AfterSaving::kOther) {
          stopped_.insert(l);
        }
        break;
      case Op::kForwardNoSave:
        ran_.insert(l);
        plain_.insert(l);
        break;
      case Op::kForwardNoSaveFreeInput:
        ran_.insert(l);
        plain_.insert(l);
        plain_.erase(l - 1);
        break;
      case Op::kBackward:
        saved_.erase(l);
        plain_.erase(l - 1);
        gradient_ = l - 1;
        break;
      case Op::kDiscard:
        named.erase(l);
        break;
      case Op::kDropSavedKeepOutput:
        saved_.erase(l);
        plain_.insert(l);
        break;
      case Op::kOffloadStart:
      case Op::kPrefetchStart:
        named.erase(l);
        copies_.insert(tensor);
        break;
      case Op::kOffloadWait:
        copies_.erase(tensor);
        break;
      case Op::kPrefetchWait:
        copies_.erase(tensor);
        named.insert(l);
        break;
    }
    MemoryByUse memory;
    for (const int s : saved_) {
      const Stage& stage = chain_.stage(s);
      memory[MemoryUse::kSaved] += stopped_.count(s) > 0 ? stage.saved - stage.output : stage.saved;
    }
    for (const int a : plain_) memory[MemoryUse::kActivations] += chain_.activation(a);
    for (const auto& [kind, s] : copies_) {
      memory[MemoryUse::kCopies] +=
          kind == TensorKind::kSaved ? chain_.stage(s).saved : chain_.activation(s);
    }
    memory[MemoryUse::kGradients] = chain_.gradient(gradient_);
    return memory;
  }

 private:
  const Chain& chain_;
  std::set<int> ran_;
  std::set<int> saved_;
  std::set<int> stopped_;  // of these, made without the output
  std::set<int> plain_;
  std::set<std::pair<TensorKind, int>> copies_;
  int gradient_;
};

TEST(StepTimeline, OfChainsIsTheEvaluatorsAndUsesAreWhatTheTableLeaves) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 400; ++i) {
    const Chain chain = RandomChain(2 + i % 6, VariedOptions(i), &rng);
    const EvaluatedStep step = RandomStep(chain, /*copies=*/i % 2 == 0, &rng);
    SCOPED_TRACE(step.text);
    const absl::StatusOr<StepTimeline> timeline =
        TimelineOf({chain, step.transfers}, step.schedule);
    ExpectAsEvaluated(timeline, step);
    ASSERT_TRUE(timeline.ok());
    NaiveUses naive(chain);
    for (size_t k = 0; k < step.schedule.size(); ++k) {
      const MemoryByUse expected = naive.After(step.schedule, k);
      const MemoryByUse& held = timeline->events[k].held;
      for (size_t u = 0; u < kMemoryUses; ++u) {
        EXPECT_EQ(held.bytes[u], expected.bytes[u])
            << k << " " << ToString(static_cast<MemoryUse>(u));
      }
    }
  }
}

TEST(StepTimeline, OfChainsThatMovePartsAddsUp) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 300; ++i) {
    const Chain chain = WithSavedTensors(RandomChain(2 + i % 6, VariedOptions(i), &rng), &rng);
    const EvaluatedStep step = RandomStep(chain, /*copies=*/true, &rng);
    SCOPED_TRACE(step.text);
    ExpectAsEvaluated(TimelineOf({chain, step.transfers}, step.schedule), step);
  }
}

TEST(StepTimeline, OfGraphsAddsUpWithAndWithoutALink) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 400; ++i) {
    const Graph graph = RandomGraph(VariedGraphOptions(i), &rng);
    const EvaluatedStep step = RandomStep(graph, /*copies=*/i % 3 != 0, &rng);
    SCOPED_TRACE(step.text);
    ExpectAsEvaluated(TimelineOf({graph, step.transfers}, step.schedule), step);
  }
}

TEST(StepTimeline, WhatCommunicationsKeepIsTheirs) {
  std::mt19937_64 rng(4);
  int kept = 0;
  for (int i = 0; i < 300; ++i) {
    const Chain plain = RandomChain(2 + i % 6, VariedOptions(i), &rng);
    const TransferModel transfers = RandomTransferModel(&rng);
    Schedule schedule = RandomSchedule(plain, &rng);
    const Chain chain = WithCollectives(plain, schedule, &rng);
    if (i % 2 == 0) schedule = WithRandomTransfers(chain, schedule, transfers, &rng);
    schedule = WithRandomCommunication(chain, schedule, &rng);
    EvaluatedStep validated;
    validated.text = testing::Describe(chain) + testing::Describe(schedule);
    SCOPED_TRACE(validated.text);
    const absl::StatusOr<Simulation> simulation =
        Evaluator(Instance(chain, transfers)).Run(schedule, &validated.timeline);
    ASSERT_TRUE(simulation.ok());
    validated.simulation = *simulation;
    const absl::StatusOr<StepTimeline> step = TimelineOf({chain, transfers}, schedule);
    ExpectAsEvaluated(step, validated);
    const absl::StatusOr<StepTimeline> on_compute =
        TimelineOf({chain, transfers}, WithoutCommunication(schedule));
    ASSERT_TRUE(step.ok() && on_compute.ok());
    for (size_t k = 0; k < schedule.size(); ++k) {
      MemoryByUse held = step->events[k].held;
      kept += held[MemoryUse::kCommunication] > Bytes(0);
      held[MemoryUse::kCommunication] = Bytes(0);
      EXPECT_TRUE(held == on_compute->events[k].held) << k;
    }
  }
  EXPECT_GT(kept, 100);
}

TEST(StepTimeline, SaysWhatEachInstructionIs) {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage stage;
  stage.forward_time = Nanos(10);
  stage.backward_time = Nanos(20);
  stage.output = Bytes(100);
  stage.saved = Bytes(100);
  stage.output_gradient = Bytes(7);
  stage.backward_overhead = Bytes(1000);
  spec.stages = {stage, stage};
  const Chain chain = Chain::Create(spec).value();
  const CopyCost cost{int64_t{10000000000}, Nanos(0)};  // ten bytes a nanosecond
  const TransferModel transfers{cost, cost, true, Bytes(1000)};
  const Schedule schedule = {ForwardNoSave(1),
                             OffloadStart(TensorKind::kActivation, 0),
                             ForwardSave(2),
                             OffloadWait(TensorKind::kActivation, 0),
                             Discard(TensorKind::kActivation, 1),
                             PrefetchStart(TensorKind::kActivation, 0),
                             PrefetchWait(TensorKind::kActivation, 0),
                             ForwardSave(1),
                             ForwardSave(3),
                             Backward(3),
                             Backward(2),
                             Backward(1)};
  const absl::StatusOr<StepTimeline> step = TimelineOf({chain, transfers}, schedule);
  ASSERT_TRUE(step.ok()) << step.status();
  const StepWork works[] = {StepWork::kForward,  StepWork::kOffload,   StepWork::kForward,
                            StepWork::kWait,     StepWork::kRelease,   StepWork::kPrefetch,
                            StepWork::kWait,     StepWork::kRecompute, StepWork::kForward,
                            StepWork::kBackward, StepWork::kBackward,  StepWork::kBackward};
  for (size_t i = 0; i < schedule.size(); ++i) EXPECT_EQ(step->events[i].work, works[i]) << i;
  const TimelineEvent& offload = step->events[1];
  EXPECT_EQ(offload.start, Nanos(10));
  EXPECT_EQ(offload.end, Nanos(11));
  EXPECT_EQ(offload.reached, Nanos(10));
  EXPECT_EQ(offload.left, Nanos(10));
  EXPECT_EQ(offload.held[MemoryUse::kCopies], Bytes(1));
  EXPECT_EQ(step->events[3].held[MemoryUse::kCopies], Bytes(0));
  EXPECT_EQ(step->events[3].host, Bytes(1));
  EXPECT_EQ(step->events[10].running[MemoryUse::kWorkspace], Bytes(1000 - 7));
  EXPECT_EQ(step->events[10].running[MemoryUse::kGradients], Bytes(7 + 7));
}

TEST(StepTimeline, RefusesWhatTheEvaluatorRefuses) {
  std::mt19937_64 rng(5);
  const Chain chain = RandomChain(3, VariedOptions(0), &rng);
  EXPECT_EQ(TimelineOf({chain, std::nullopt}, {Backward(2)}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage

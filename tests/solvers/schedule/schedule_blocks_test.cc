#include "solvers/schedule/schedule_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <random>
#include <string>

#include "solvers/schedule/instance.h"
#include "solvers/schedule/simulation.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_step.h"

namespace stowage {
namespace {

using ::testing::ElementsAre;
using testing::EvaluatedStep;
using ::testing::HasSubstr;
using testing::RandomChain;
using testing::RandomGraph;
using testing::RandomStep;
using testing::VariedGraphOptions;
using testing::VariedOptions;
using testing::WithSavedTensors;

// Live bytes at each moment.
std::vector<Bytes> LiveBytes(const ScheduleBlocks& blocks, size_t instructions) {
  std::vector<Bytes> change(2 * instructions + 1);
  for (const BlockLife& life : blocks.lives) {
    EXPECT_GT(life.size, Bytes(0));
    EXPECT_LT(life.begin, life.end);
    EXPECT_LE(life.end, static_cast<int64_t>(2 * instructions));
    change[static_cast<size_t>(life.begin)] += life.size;
    change[static_cast<size_t>(life.end)] -= life.size;
  }
  change.pop_back();
  for (size_t t = 1; t < change.size(); ++t) change[t] += change[t - 1];
  return change;
}

// The evaluator's memory at each moment.
std::vector<Bytes> Memory(const std::vector<TimelinePoint>& timeline) {
  std::vector<Bytes> memory;
  for (const TimelinePoint& point : timeline) {
    memory.push_back(point.running);
    memory.push_back(point.held);
  }
  return memory;
}

void ExpectAsEvaluated(const absl::StatusOr<ScheduleBlocks>& blocks,
                       const std::vector<TimelinePoint>& timeline) {
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(blocks->lives.size(), blocks->names.size());
  EXPECT_EQ(LiveBytes(*blocks, timeline.size()), Memory(timeline));
}

TEST(ScheduleBlocks, OfChainsAddUpToTheEvaluatorsMemory) {
  std::mt19937_64 rng(7);
  for (int i = 0; i < 600; ++i) {
    const Chain chain = RandomChain(2 + i % 6, VariedOptions(i), &rng);
    const EvaluatedStep step = RandomStep(chain, /*copies=*/false, &rng);
    SCOPED_TRACE(step.text);
    ExpectAsEvaluated(BlocksOf(chain, step.schedule), step.timeline);
  }
}

TEST(ScheduleBlocks, OfChainsWithTransfersOfPartsAddUp) {
  std::mt19937_64 rng(8);
  for (int i = 0; i < 600; ++i) {
    const Chain plain = RandomChain(2 + i % 6, VariedOptions(i), &rng);
    const Chain chain = i % 3 == 0 ? plain : WithSavedTensors(plain, &rng);
    const EvaluatedStep step = RandomStep(chain, /*copies=*/true, &rng);
    SCOPED_TRACE(step.text);
    ExpectAsEvaluated(BlocksOf(Instance(chain, *step.transfers), step.schedule), step.timeline);
  }
}

TEST(ScheduleBlocks, OfGraphsAddUpToTheEvaluatorsMemory) {
  std::mt19937_64 rng(9);
  for (int i = 0; i < 600; ++i) {
    const Graph graph = RandomGraph(VariedGraphOptions(i), &rng);
    const EvaluatedStep step = RandomStep(graph, /*copies=*/false, &rng);
    SCOPED_TRACE(step.text);
    ExpectAsEvaluated(BlocksOf(graph, step.schedule), step.timeline);
  }
}

TEST(ScheduleBlocks, OfGraphsWithTransfersAddUp) {
  std::mt19937_64 rng(10);
  for (int i = 0; i < 600; ++i) {
    const Graph graph = RandomGraph(VariedGraphOptions(i), &rng);
    const EvaluatedStep step = RandomStep(graph, /*copies=*/true, &rng);
    SCOPED_TRACE(step.text);
    ExpectAsEvaluated(BlocksOf(Instance(graph, *step.transfers), step.schedule), step.timeline);
  }
}

Chain OneStage() {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage stage;
  stage.output = Bytes(10);
  stage.saved = Bytes(35);
  stage.saved_tensors = {Bytes(20), Bytes(2)};
  stage.output_gradient = Bytes(200);
  stage.forward_saving_overhead = Bytes(1000);
  stage.backward_overhead = Bytes(30000);
  spec.stages.push_back(stage);
  return Chain::Create(spec).value();
}

// "use stage size begin-end", of every block.
std::vector<std::string> Text(const ScheduleBlocks& blocks) {
  const char* const uses[] = {"activation", "saved", "gradient", "workspace"};
  std::vector<std::string> text;
  for (size_t i = 0; i < blocks.lives.size(); ++i) {
    const BlockLife& life = blocks.lives[i];
    text.push_back(std::string(uses[static_cast<size_t>(blocks.names[i].use)]) + " " +
                   std::to_string(blocks.names[i].stage) + " " + std::to_string(life.size.value()) +
                   " " + std::to_string(life.begin) + "-" + std::to_string(life.end));
  }
  return text;
}

TEST(ScheduleBlocks, WhatAReduceKeepsStaysWhereItIs) {
  const Chain chain = OneStage();
  const Schedule schedule = {ForwardSave(1), DropSavedKeepOutput(1), ForwardSave(2),
                             Backward(2),    ForwardSave(1),         Backward(1)};
  const absl::StatusOr<ScheduleBlocks> blocks = BlocksOf(chain, schedule);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_THAT(Text(*blocks),
              ElementsAre("activation 0 1 0-11",  //
                          "saved 1 20 0-3", "saved 1 2 0-3", "saved 1 10 0-7", "saved 1 3 0-3",
                          "workspace 1 1000 0-1",  //
                          "gradient 1 200 7-11",   //
                          "saved 1 20 8-11", "saved 1 2 8-11", "saved 1 10 8-11", "saved 1 3 8-11",
                          "workspace 1 1000 8-9",  //
                          "workspace 1 30000 10-11"));
}

TEST(ScheduleBlocks, RefusesWhatTheEvaluatorRefuses) {
  const Chain chain = OneStage();
  EXPECT_EQ(BlocksOf(chain, {Backward(2)}).status().code(), absl::StatusCode::kInvalidArgument);
  Schedule transfers = StoreAllSchedule(chain);
  transfers.insert(transfers.begin(), OffloadWait(TensorKind::kActivation, 1));
  transfers.insert(transfers.begin(), OffloadStart(TensorKind::kActivation, 1));
  EXPECT_THAT(std::string(BlocksOf(chain, transfers).status().message()),
              HasSubstr("transfers need a transfer model"));
  EXPECT_FALSE(BlocksOf(Instance(chain, TransferModel()), transfers).ok());
  Schedule beside = StoreAllSchedule(chain);
  beside.front().stream = Stream::kCommunication;
  EXPECT_EQ(BlocksOf(Instance(chain, TransferModel{{1, Nanos(0)}, {1, Nanos(0)}, false, Bytes(0)}),
                     beside)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage

// The parts of the programs here on networks as small as they get: what they count is there and agrees with
// itself. Times are not looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/schedule/instance.h"
#include "tests/bench/paper_tables.h"
#include "tests/bench/torch/asked_plan.h"
#include "tests/bench/torch/equality_row.h"
#include "tests/bench/torch/gain_row.h"
#include "tests/bench/torch/memory_row.h"
#include "tests/bench/torch/overhead_rows.h"
#include "tests/bench/torch/step_time_rows.h"
#include "tests/bench/torch/trained_network.h"
#include "tests/bench/torch/turns.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

using testing::HasSubstr;

constexpr std::chrono::milliseconds kPatience(
    500);  // of searches of graphs, cut off wherever they are
constexpr std::chrono::seconds kChainPatience(60);  // which end by themselves

NetworkChoice SmallDecoder(const char* name = kDecoder) {
  NetworkChoice choice;
  choice.name = name;
  choice.decoder.layers = 3;
  choice.decoder.width = 16;
  choice.decoder.length = 8;
  choice.decoder.vocabulary = 11;
  return choice;
}

std::unique_ptr<TrainedNetwork> Made(const NetworkChoice& choice, Form form) {
  auto network = TrainedNetwork::Make(choice, form);
  EXPECT_TRUE(network.ok()) << network.status();
  return std::move(network).value();
}

TEST(TrainedNetworkTest, EqualChoicesAreEqualNetworks) {
  for (const Form form : {Form::kChain, Form::kGraph}) {
    const auto a = Made(SmallDecoder(), form);
    const Outcome of_a = Outcome::Of(a->tensors(), a->Plain()->loss);
    const auto b = Made(SmallDecoder(), form);
    EXPECT_TRUE(of_a == Outcome::Of(b->tensors(), b->Plain()->loss)) << ToString(form);
    EXPECT_EQ(ParametersWithoutGradient(b->tensors()), 0);
  }
}

TEST(TrainedNetworkTest, TiedDecoderHasOneMatrixLess) {
  const auto tied = Made(SmallDecoder(kTiedDecoder), Form::kChain);
  const auto untied = Made(SmallDecoder(), Form::kChain);
  EXPECT_EQ(tied->tensors().tied_parameters().size(), 1U);
  EXPECT_EQ(untied->parameter_bytes() - tied->parameter_bytes(), Bytes(16 * 11 * 4));
}

TEST(TrainedNetworkTest, TellsParametersWithoutGradient) {
  const auto network = Made(SmallDecoder(), Form::kGraph);
  network->tensors().ZeroGradients();
  EXPECT_EQ(ParametersWithoutGradient(network->tensors()),
            static_cast<int>(network->tensors().parameters().size()));
}

TEST(TrainedNetworkTest, UnknownNameIsRefused) {
  NetworkChoice choice;
  choice.name = "resnet19";
  EXPECT_EQ(TrainedNetwork::Make(choice, Form::kChain).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AskedPlanTest, TakesMoreMemoryWhereItMust) {
  const auto network = Made(SmallDecoder(), Form::kChain);
  const Profile profile = network->Measure(OnePass()).value();
  const TransferModel link = LinkFor(profile.problem);
  EXPECT_GT(link.to_host.bytes_per_second, 1);
  const Plan plan = PlanFor(profile.problem, {"", 0.001, false}, link, kChainPatience).value();
  EXPECT_EQ(plan.status, PlanStatus::kFound);
  EXPECT_LE(plan.budget, Instance(profile.problem).store_all()->peak);
  const Plan moving =
      PlanFor(profile.problem, {"offload_dynprog", 0.8, true}, link, kChainPatience).value();
  EXPECT_GT(Copies(moving.schedule), 0);
  EXPECT_EQ(Copies(plan.schedule), 0);
}

TEST(TurnsTest, EveryWayHasItsTurnInEveryRound) {
  std::vector<int> calls;
  std::vector<Step> ways;
  for (int i = 0; i < 3; ++i) {
    ways.emplace_back([&calls, i] {
      calls.push_back(i);
      StepReport report;
      report.wall_time = Nanos(100 * (i + 1));
      report.peak = Bytes(i);
      return report;
    });
  }
  const std::vector<StepTimes> times = TakeTurns(ways, 1, 2).value();
  EXPECT_EQ(calls, (std::vector<int>{0, 1, 2, 1, 2, 0, 2, 0, 1}));
  EXPECT_EQ(times[2].wall, (std::vector<Nanos>{Nanos(300), Nanos(300)}));
  EXPECT_EQ(times[2].peak, Bytes(2));
  const Spread spread = SpreadOf(Ratios(times[1].wall, times[0].wall));
  EXPECT_EQ(spread.median, 2);
  calls.clear();
  EXPECT_EQ(TakeTurns(ways, 0, 1, /*before=*/1)->front().wall.size(), 1U);
  EXPECT_EQ(calls, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  ways.emplace_back([] { return absl::StatusOr<StepReport>(absl::InternalError("no")); });
  EXPECT_FALSE(TakeTurns(ways, 0, 1).ok());
}

TEST(TurnsTest, SpreadHasTheQuartiles) {
  const Spread spread = SpreadOf({5, 1, 4, 2, 3, 9, 7, 8});
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.low, 3);
  EXPECT_EQ(spread.high, 7);
}

TEST(EqualityRowTest, TrainsAlikeByFivePlans) {
  for (const Form form : {Form::kChain, Form::kGraph}) {
    for (const bool autocast : {false, true}) {
      const bool is_chain = form == Form::kChain;
      const auto row = ComputeEqualityRow(SmallDecoder(kTiedDecoder), form, autocast,
                                          is_chain ? kChainPatience : kPatience);
      ASSERT_TRUE(row.ok()) << row.status();
      EXPECT_TRUE(row->good());
      EXPECT_GT(row->plans, 0);
      EXPECT_THAT(EqualityMarkdown("x", form, autocast, row),
                  HasSubstr(absl::StrCat(" | ", row->plans, " | ")));
      if (is_chain) {
        EXPECT_EQ(row->plans, 5);
        EXPECT_GT(row->recomputed_forwards, 0);
        EXPECT_GT(row->copies, 0);
      }
    }
  }
}

TEST(EqualityRowTest, FaultsAreNotGood) {
  EqualityRow row;
  row.above_prediction = kScalars;
  EXPECT_TRUE(row.good());
  row.above_prediction = kScalars + Bytes(1);
  EXPECT_FALSE(row.good());
  row.above_prediction = Bytes(0);
  row.least_ratio = 0.98;
  EXPECT_FALSE(row.good());
  row.least_ratio = 1;
  row.parameters_without_gradient = 1;
  EXPECT_FALSE(row.good());
}

TEST(StepTimeRowsTest, HaveEveryPlan) {
  StepTimeOptions options;
  options.repeats = 1;
  options.rounds = 1;
  options.patience = kChainPatience;
  const auto rows = MeasureStepTimes(SmallDecoder(), Form::kChain, options);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 5U);
  for (const StepTimeRow& row : *rows) {
    EXPECT_GE(row.slowdown, 1);
    EXPECT_GT(row.over_prediction.median, 0);
    EXPECT_THAT(StepTimeMarkdown(row), HasSubstr("| decoder | chain | "));
  }
  EXPECT_THAT(StepTimeSummary(*rows), HasSubstr("plans that recompute: off the prediction by"));
  EXPECT_EQ(StepTimeSummary({}), "");
}

TEST(OverheadRowsTest, HaveBothPlans) {
  OverheadOptions options;
  options.repeats = 1;
  options.rounds = 1;
  options.patience = kChainPatience;
  const auto rows = MeasureOverheads(SmallDecoder(), Form::kChain, options);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ((*rows)[1].way, "step");
  EXPECT_EQ((*rows)[2].way, "loop");
  EXPECT_EQ((*rows)[1].share, 1);
  EXPECT_LT(rows->front().share, 1);
  EXPECT_GT(rows->front().recomputed_forwards, 0);
  EXPECT_EQ(rows->back().share, 1);
  EXPECT_EQ(rows->back().recomputed_forwards, 0);
  for (const OverheadRow& row : *rows) {
    EXPECT_GT(row.over_parts.median, 0);
    EXPECT_THAT(OverheadMarkdown(row), HasSubstr("| decoder | chain | "));
  }
}

TEST(GainRowTest, RivalsKeepToTheMemoryOfTheRun) {
  GainOptions options;
  options.repeats = 1;
  options.screenings = 1;
  options.rounds = 1;
  const auto row = MeasureGain(SmallDecoder(), options);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_GE(row->segments, 2);
  EXPECT_LE(row->optimal.peak, row->memory);
  EXPECT_LE(row->memory, row->plain_memory);
  EXPECT_GE(row->optimal.modelled, 0);
  EXPECT_GE(row->choice_of_planner.modelled, row->optimal.modelled);
  EXPECT_THAT(GainSummary({*row, *row}), HasSubstr("mean of 2: optimal_persistent "));
}

TEST(MemoryRowTest, WeightsDecideHowSmallABatchMayBe) {
  std::map<std::string, int64_t> shrinks;
  for (const PaperGraph& graph : PaperGraphs()) {
    if (PaperFiguresOf(graph.name) == nullptr) continue;
    const auto shrink = UsualShrink(graph);
    ASSERT_TRUE(shrink.ok()) << shrink.status();
    EXPECT_EQ(graph.network.batch % *shrink, 0) << graph.name;
    shrinks[graph.name] = *shrink;
  }
  EXPECT_EQ(shrinks.size(), 18U);
  EXPECT_EQ(shrinks["vgg19"], 2);      // 5,189 MB of plain training, 575 of weights
  EXPECT_EQ(shrinks["resnet18"], 32);  // 5,635 and 47
}

TEST(MemoryRowTest, SearchTakesNoMoreThanTheCheckpoints) {
  PaperGraph small;
  for (const PaperGraph& graph : PaperGraphs()) {
    if (graph.name == "resnet18") small = graph;
  }
  small.network.image = 32;
  small.network.batch = 2;
  MemoryOptions options;
  options.shrink = 2;
  const auto row = MeasureMemory(small, options);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_LT(row->checkpoints.peak, row->plain);
  EXPECT_LE(row->same_memory.peak, row->checkpoints.peak);
  EXPECT_LE(row->least.peak, row->same_memory.peak);
  EXPECT_EQ(row->least.accuracy, 1);
  EXPECT_THAT(MemoryMarkdown(*row),
              HasSubstr("| resnet18 (2) | 1/2 | 5635 | 3677 | 0.65 | +30% | "));
  options.shrink = 3;
  EXPECT_FALSE(MeasureMemory(small, options).ok());
}

}  // namespace
}  // namespace stowage

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/bench/curve_gains.h"
#include "tests/bench/curve_report.h"
#include "tests/bench/curve_set.h"
#include "tests/bench/svg_plot.h"

namespace stowage {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr Bytes kUnlimited(std::numeric_limits<int64_t>::max());

ConfigurationCurves SmallCurves() {
  return ComputeCurves({"resnet18", 64, 2}, ModelledV100()).value();
}

TEST(SvgTest, DrawsStepsTicksAndLegend) {
  const Panel panel{"left", "x [s]", "y & z", {{"up", {{1, 10}, {2, 20}}, {{2, 10}}}, {"none"}}};
  const std::string svg = RenderSvg("a < b", {panel, panel, {"empty", "", "", {}}});
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("y &amp; z"));
  EXPECT_THAT(svg, HasSubstr(">up<"));
  // From (1, 10) level to 2, then up to 20: 370 pixels for 2, 234 for 20.
  EXPECT_THAT(svg, HasSubstr("M255.0 221.0H255.0V221.0H440.0V104.0H440.0"));
  EXPECT_THAT(svg, HasSubstr("M436.5 217.5l7.0 7.0m0 -7.0l-7.0 7.0"));
}

TEST(SvgTest, BeginsBelowTheLowestPointWhereTold) {
  Panel panel{"", "", "", {{"up", {{1, 240}, {2, 350}}}}};
  panel.y_from_0 = false;
  const std::string svg = RenderSvg("", {panel});
  EXPECT_THAT(svg, HasSubstr(">240<"));
  EXPECT_THAT(svg, testing::Not(HasSubstr(">220<")));
  // All equal: an axis of some length all the same.
  panel.series = {{"flat", {{1, 5}, {2, 5}}}};
  EXPECT_THAT(RenderSvg("", {panel}), testing::Not(HasSubstr("nan")));
}

TEST(SvgTest, LegendsOfManyRowsLieAboveThePanels) {
  Panel panel{"title", "", "", {}};
  for (int i = 0; i < 30; ++i) panel.series.push_back({"a series of some name", {{1, 10}}});
  EXPECT_THAT(RenderSvg("", {panel}), HasSubstr("y=\"90.0\"")) << "one label: one row";
  for (int i = 0; i < 30; ++i) panel.series[static_cast<size_t>(i)].label += std::to_string(i);
  const std::string svg = RenderSvg("", {panel});
  // Four to a row: eight rows, the last at 46 + 7 * 18.
  EXPECT_THAT(svg, HasSubstr("y=\"176.0\""));
  EXPECT_THAT(svg, HasSubstr("y=\"198.0\""));
  EXPECT_THAT(svg, testing::Not(HasSubstr("y=\"90.0\"")));
}

TEST(CurvesTest, WithoutALinkNothingIsDrawnThatNeedsOne) {
  const ConfigurationCurves curves = SmallCurves();
  EXPECT_NE(CurveOf(curves, "non_persistent"), nullptr);
  EXPECT_EQ(CurveOf(curves, "joint"), nullptr);
  EXPECT_EQ(CurveOf(curves, "offload_dynprog"), nullptr);
}

TEST(CurvesTest, TheOptimumEndsAtTheIdeal) {
  const ConfigurationCurves curves = SmallCurves();
  EXPECT_TRUE(curves.failures.empty());
  EXPECT_GE(curves.curves.size(), 3u);
  const Frontier* optimal = CurveOf(curves, "optimal_persistent");
  ASSERT_NE(optimal, nullptr);
  EXPECT_EQ(optimal->points().back().makespan, curves.ideal);
  EXPECT_LE(optimal->points().back().peak, curves.store_all_peak);
  EXPECT_EQ(CurveOf(curves, "no such strategy"), nullptr);
}

TEST(CurvesTest, DrawsTheStrategiesThatAreNamed) {
  const auto curves =
      ComputeCurves({"resnet18", 64, 2}, ModelledV100(), {"revolve", "store_all"}).value();
  ASSERT_EQ(curves.curves.size(), 2u);
  EXPECT_EQ(curves.curves[0].strategy, "store_all");
  const std::string svg = CurvesAsSvg({curves});
  EXPECT_THAT(svg, HasSubstr(">revolve<"));
  EXPECT_THAT(svg, testing::Not(HasSubstr(">joint<")));
  const auto unknown = ComputeCurves({"resnet18", 64, 2}, ModelledV100(), {"revolve", "magic"});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("magic"));
}

TEST(CurvesTest, TheFrontierOfPeriodicSchedulesIsTheBestOfTheRuns) {
  const ConfigurationCurves curves = SmallCurves();
  const Frontier& sequential = *CurveOf(curves, kSequential);
  ASSERT_EQ(curves.runs.size(), 5u);  // 2 to 2 sqrt(12)
  for (const SequentialRun& run : curves.runs) {
    EXPECT_LE(sequential.At(run.peak)->makespan, run.makespan) << run.segments;
  }
}

TEST(CurvesTest, TheOptimumGains) {
  const ConfigurationCurves curves = SmallCurves();
  // Both include what checkpoint_sequential does.
  EXPECT_GE(GainOverBestRun(curves, "optimal_persistent", kUnlimited).value(), 0.0);
  EXPECT_GT(GainOverCurve(curves, "optimal_persistent").value(), 0.0);
  EXPECT_EQ(GainOverCurve(curves, kSequential).value(), 0.0);
  EXPECT_FALSE(GainOverBestRun(curves, "optimal_persistent", Bytes(1)).has_value());
  EXPECT_FALSE(GainOverCurve(curves, "no such strategy").has_value());
}

TEST(CurvesTest, TheGridEndsAtStoreAll) {
  const ConfigurationCurves curves = SmallCurves();
  const std::vector<Bytes> grid = BudgetGrid(curves);
  ASSERT_EQ(grid.size(), 40u);
  EXPECT_EQ(grid.back(), curves.store_all_peak);
  EXPECT_EQ(grid[19].value(), curves.store_all_peak.value() / 2);
}

TEST(CurvesTest, CsvSaysWhatItIs) {
  const std::string csv = CurvesAsCsv({SmallCurves()});
  EXPECT_THAT(csv, StartsWith("network,image,batch,strategy,parameter,budget_bytes,peak_bytes,"));
  EXPECT_THAT(csv, HasSubstr("resnet18,64,2,checkpoint_sequential,segments=2,"));
  EXPECT_THAT(csv, HasSubstr(",modelled\n"));
}

TEST(CurvesTest, ResultsDoNotDependOnThreads) {
  const std::vector<Configuration> configurations = {
      {"resnet18", 64, 1}, {"vgg11", 64, 1}, {"resnet34", 64, 1}};
  const auto one = ComputeAllCurves(configurations, ModelledV100(), {}, {}, 1, nullptr).value();
  const auto two = ComputeAllCurves(configurations, ModelledV100(), {}, {}, 2, nullptr).value();
  EXPECT_EQ(CurvesAsCsv(one), CurvesAsCsv(two));
  EXPECT_EQ(GainSummary(one, ModelledV100()), GainSummary(two, ModelledV100()));
}

TEST(CurvesTest, AnUnknownNetworkIsAnError) {
  EXPECT_EQ(ComputeAllCurves({{"none", 64, 1}}, ModelledV100(), {}, {}, 2, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage

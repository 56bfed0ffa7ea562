#include "solvers/viz/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "solvers/schedule/instance.h"
#include "solvers/viz/pictures.h"
#include "tests/solvers/base/json_reader.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/viz/markup_check.h"
#include "tests/solvers/viz/report_sample.h"

namespace stowage {
namespace {

using testing::CountMatches;
using ::testing::HasSubstr;
using testing::Json;
using ::testing::Not;
using testing::ReadJson;

Report SampleReport(bool measured, size_t plans = 1) {
  Report report;
  for (size_t p = 0; p < plans; ++p) report.plans.push_back(testing::SampleDrawn(measured));
  report.curves = {{"by \"hand\"", {{Bytes(80000), Nanos(13000)}, {Bytes(90000), Nanos(11000)}}}};
  report.others = {{"<i>", {Bytes(85000), Nanos(12000)}}};
  report.bound = {{Bytes(80000), Nanos(10000)}};
  return report;
}

std::vector<int64_t> Column(const Json& list) {
  std::vector<int64_t> numbers;
  for (const Json& number : list.list) numbers.push_back(static_cast<int64_t>(number.number));
  return numbers;
}

std::vector<int64_t> Summed(const Json& list) {
  std::vector<int64_t> numbers = Column(list);
  for (size_t i = 1; i < numbers.size(); ++i) numbers[i] += numbers[i - 1];
  return numbers;
}

TEST(Report, DataIsTheTimelineInColumns) {
  const Report report = SampleReport(true);
  const std::optional<Json> data = ReadJson(ReportData(testing::SampleProblem().problem(), report));
  ASSERT_TRUE(data);
  const Json& plan = (*data)["plans"].list.at(0);
  const DrawnPlan& drawn = report.plans.front();
  const std::vector<int64_t> start = Summed(plan["start"]), duration = Column(plan["duration"]);
  const std::vector<int64_t> stage = Column(plan["stage"]), pattern = Column(plan["pattern"]);
  for (size_t i = 0; i < drawn.step.events.size(); ++i) {
    const TimelineEvent& event = drawn.step.events[i];
    EXPECT_EQ(start.at(i), event.start.value());
    EXPECT_EQ(start[i] + duration.at(i), event.end.value());
    EXPECT_EQ(stage.at(i), event.instruction.stage);
    EXPECT_EQ((*data)["patterns"].list.at(static_cast<size_t>(pattern.at(i))).text,
              EventText(event, "%"));
    for (size_t u = 0; u < kMemoryUses; ++u) {
      const std::vector<int64_t> bytes = Summed(plan["memory"].list.at(u));
      if (bytes.empty()) {
        EXPECT_EQ(event.running.bytes[u], Bytes(0));
        continue;
      }
      EXPECT_EQ(bytes.at(2 * i), event.running.bytes[u].value());
      EXPECT_EQ(bytes.at(2 * i + 1), event.held.bytes[u].value());
    }
    EXPECT_EQ(Summed(plan["host"]).at(i), event.host.value());
    EXPECT_EQ(Summed(plan["measured"]["peak"]).at(i), drawn.measured->instructions[i].peak.value());
    EXPECT_EQ(Summed(plan["measured"]["held"]).at(i),
              drawn.measured->instructions[i].held_after.value());
  }
  EXPECT_EQ((*data)["stages"]["label"].list.at(2).text, "</script><b>'\"&");
  EXPECT_EQ(Column((*data)["stages"]["made"]),
            (std::vector<int64_t>{1000, 15000, 30000, 7500, 150}));
  EXPECT_EQ((*data)["frontier"]["others"].list.at(0)["label"].text, "<i>");
}

TEST(Report, IsOnePageThatAsksForNothing) {
  const absl::StatusOr<std::string> page =
      HtmlReport(testing::SampleProblem().problem(), SampleReport(true));
  ASSERT_TRUE(page.ok()) << page.status();
  for (const char c : *page) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  EXPECT_EQ(CountMatches(*page, "</script>"), 2);
  EXPECT_EQ(CountMatches(*page, "<b>"), 0);
  EXPECT_EQ(CountMatches(*page, "https?://"), CountMatches(*page, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(CountMatches(*page, "(src|href)=\""), CountMatches(*page, "href=\"data:,\""));
  EXPECT_THAT(*page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(*page, HasSubstr("<h1>sample &#34;net&#34;</h1>"));
  EXPECT_THAT(*page, HasSubstr("as predicted"));
  EXPECT_THAT(*page, HasSubstr("1 forward, 1.0 us"));
}

TEST(Report, SaysWhatItHasAndNothingElse) {
  Report report = SampleReport(false);
  const Problem problem = testing::SampleProblem().problem();
  EXPECT_THAT(HtmlReport(problem, report).value(), Not(HasSubstr("<th scope=\"col\">measured")));
  EXPECT_THAT(HtmlReport(problem, report).value(), HasSubstr("id=\"frontier\""));
  report.curves.clear();
  report.others.clear();
  EXPECT_THAT(HtmlReport(problem, report).value(), Not(HasSubstr("id=\"frontier\"")));
  EXPECT_THAT(HtmlReport(problem, SampleReport(false, 2)).value(), HasSubstr("B  100 kB"));
  for (const size_t plans : {0, 3}) {
    EXPECT_THAT(std::string(HtmlReport(problem, SampleReport(false, plans)).status().message()),
                HasSubstr("report.plans"));
  }
}

TEST(Report, OfAThousandVerticesStaysSmall) {
  std::mt19937_64 rng(1);
  testing::RandomGraphOptions options;
  options.vertices = 1000;
  options.max_size = 500000000;
  options.max_time = 5000000;
  const Graph graph = testing::RandomGraph(options, &rng);
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = StoreAllSchedule(graph);
  Report report;
  report.plans = {DrawPlan({graph, std::nullopt}, "", plan).value(),
                  DrawPlan({graph, std::nullopt}, "", plan).value()};
  const std::string page = HtmlReport(graph, report).value();
  EXPECT_LT(page.size(), 2u << 20);
  EXPECT_LT(page.size(), 100000 + 100 * graph.size() + 110 * plan.schedule.size());
}

TEST(StepSvg, IsWellFormedAndHasTheLanesThatAreUsed) {
  const std::string svg = StepSvg(testing::SampleDrawn(true), {"a < b", 640, 120});
  EXPECT_TRUE(testing::IsWellFormed(svg));
  for (const char* text : {">a &lt; b<", ">compute<", ">to host<", ">to device<", ">measured<",
                           ">budget<", ">97.66 KiB<", ">peak 84.01 KiB<", ">recompute<",
                           ">saved tensors<", ">workspace<", ">10 us<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr("communication")));
  EXPECT_THAT(StepSvg(testing::SampleDrawn(false)), Not(HasSubstr(">measured<")));
}

TEST(StepSvg, OfManyInstructionsIsGathered) {
  std::mt19937_64 rng(2);
  testing::RandomGraphOptions options;
  options.vertices = 3000;
  const Graph graph = testing::RandomGraph(options, &rng);
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = StoreAllSchedule(graph);
  const DrawnPlan drawn = DrawPlan({graph, std::nullopt}, "", plan).value();
  const std::string svg = StepSvg(drawn);
  EXPECT_LT(svg.size(), 300000u);
  EXPECT_THAT(svg, HasSubstr("peak " + ToString(drawn.step.simulation.peak)));
}

}  // namespace
}  // namespace stowage

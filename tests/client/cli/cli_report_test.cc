// `stowage trace` and `stowage report` as a user meets them.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/exit_code.h"
#include "proto/codec/codec.h"
#include "solvers/schedule/measured_step.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char kPlan[] = " --budget=50% --solver=optimal_persistent --slots=500 --profile=";

std::string File(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::string ContentOf(const std::string& path) {
  std::ifstream in(path);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

// A step as if measured by the plan that the flags above give.
std::string MeasuredFile() {
  const Result result =
      Stowage(std::string("plan --format=json") + kPlan + Data("chain_resnet50.json"));
  v1::Plan message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &message).ok());
  const Plan plan = FromProto(message).value();
  MeasuredStep step;
  step.schedule = ScheduleDigest(plan.schedule);
  step.instructions.resize(plan.schedule.size());
  step.peak = plan.prediction.peak;
  step.step_time = Nanos(plan.prediction.makespan.value() * 2);
  const std::string path = File("step.measured");
  std::ofstream(path) << MeasuredStepText(step);
  return path;
}

TEST(CliReport, TracesAPlanBesideWhatWasMeasured) {
  const std::string trace =
      "trace" + std::string(kPlan) + Data("chain_resnet50.json") + " --measured=" + MeasuredFile();
  const Result result = Stowage(trace);
  ASSERT_EQ(result.code, kExitOk);
  const google::protobuf::Struct json = Json(result.out);
  EXPECT_GT(json.fields().at("traceEvents").list_value().values_size(), 100);
  EXPECT_GT(json.fields().at("otherData").struct_value().fields().count("measured_peak_bytes"), 0u);
  const Result file = Stowage(trace + " --out=" + File("trace.json"), true);
  EXPECT_THAT(file.out, HasSubstr("plan: found"));
  EXPECT_EQ(ContentOf(File("trace.json")), result.out);
}

TEST(CliReport, DrawsAPlanWithItsFrontier) {
  const std::string report = "report" + std::string(kPlan) + Data("chain_resnet50.json") +
                             " --measured=" + MeasuredFile() + " --svg=" + File("step.svg") +
                             " --out=" + File("report.html");
  const Result result = Stowage(report, true);
  ASSERT_EQ(result.code, kExitOk) << result.out;
  const std::string page = ContentOf(File("report.html"));
  for (const char* part : {"<!DOCTYPE html>", "id=\"frontier\"", "chen_greedy", "+100.0%"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(ContentOf(File("step.svg")), HasSubstr("</svg>"));
}

TEST(CliReport, DrawsTwoPlansOnOneAxis) {
  const std::string report =
      "report --frontier=false" + std::string(kPlan) + Data("chain_resnet50.json");
  const Result budgets = Stowage(report + " --compare_budget=80%");
  ASSERT_EQ(budgets.code, kExitOk);
  EXPECT_THAT(budgets.out, HasSubstr("A  50%, optimal_persistent"));
  EXPECT_THAT(budgets.out, HasSubstr("B  80%, optimal_persistent"));
  EXPECT_THAT(budgets.out, Not(HasSubstr("id=\"frontier\"")));
  const Result solvers = Stowage(report + " --compare_solver=chen_sqrt");
  EXPECT_THAT(solvers.out, HasSubstr("B  50%, chen_sqrt"));
}

TEST(CliReport, DrawsGraphs) {
  const std::string report = "report --frontier=false --budget=100% --solver=store_all --profile=" +
                             Data("graph_vit_b_16.json") + " --out=" + File("graph.html");
  for (const char* form : {"svg", "dot"}) {
    const std::string picture = File(std::string("graph.") + form);
    const Result result = Stowage(report + " --graph_picture=" + picture, true);
    ASSERT_EQ(result.code, kExitOk) << result.out;
    EXPECT_THAT(ContentOf(picture), HasSubstr(form[0] == 's' ? "</svg>" : "digraph"));
  }
  EXPECT_THAT(ContentOf(File("graph.html")), HasSubstr("Graph of "));
}

TEST(CliReport, SaysWhatIsWrong) {
  const std::string chain = std::string(kPlan) + Data("chain_resnet50.json");
  std::ofstream(File("no.measured")) << "nothing\n";
  const std::pair<std::string, const char*> cases[] = {
      {"trace" + chain + " --measured=/nonexistent", "/nonexistent"},
      {"trace" + chain + " --measured=" + File("no.measured"), "no.measured"},
      {"trace --budget=50% --profile=" + Data("chain_gpt_24.json") +
           " --solver=revolve --measured=" + MeasuredFile(),
       "schedule"},
      {"report" + chain + " --compare_budget=much", "much"},
      {"report --frontier=false" + chain + " --compare_solver=magic", "magic"},
      {"report --frontier=false" + chain + " --out=/nonexistent/x.html", "/nonexistent/x.html"},
      {"report --frontier=false" + chain + " --graph_picture=" + File("x.svg"), "--graph_picture"},
      {"report", "--profile"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(arguments, true);
    EXPECT_EQ(result.code, kExitUsage) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
  for (const char* command : {"trace", "report"}) {
    const Result tight = Stowage(
        command + std::string(" --budget=1000 --profile=") + Data("chain_resnet50.json"), true);
    EXPECT_EQ(tight.code, kExitInfeasible);
    EXPECT_THAT(tight.out, HasSubstr("needs at least"));
  }
}

}  // namespace
}  // namespace stowage

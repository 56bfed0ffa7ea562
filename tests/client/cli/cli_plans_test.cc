// What shows how plans compare, why they are what they are, and how commands end, as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/profile_file.h"
#include "solvers/model/canonical.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string& Resnet() {
  static const auto* const kFlag = new std::string(" --profile=" + Data("chain_resnet50.json"));
  return *kFlag;
}

TEST(CliPlans, EveryPointOfAFrontierIsAPlan) {
  const Result frontier = Stowage("frontier --points=6 --format=csv" + Resnet());
  ASSERT_EQ(frontier.code, kExitOk) << frontier.out;
  const std::vector<CsvRow> points = Csv(frontier.out);
  ASSERT_EQ(points.size(), 6u) << frontier.out;
  for (const CsvRow& point : points) {
    const Result plan =
        Stowage("plan --format=json --budget=" + point.at("budget_bytes") + Resnet());
    ASSERT_EQ(plan.code, kExitOk);
    const auto json = Json(plan.out);
    const auto& prediction = json.fields().at("prediction").struct_value().fields();
    EXPECT_EQ(prediction.at("makespan_ns").string_value(), point.at("makespan_ns"));
  }
  EXPECT_EQ(points.back().at("overhead"), "0");
}

TEST(CliPlans, AFrontierHasThreeFormats) {
  const Result text = Stowage("frontier --points=5" + Resnet());
  EXPECT_EQ(text.code, kExitOk);
  for (const char* part : {"of plain", "over plain", "it stores every activation", "needs at least",
                           "non_persistent", "the fastest of schedules in which"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  EXPECT_THAT(text.out, Not(HasSubstr("*"))) << "a sketch is for terminals";
  const auto json = Json(Stowage("frontier --points=5 --format=json" + Resnet()).out);
  EXPECT_EQ(json.fields().at("points").list_value().values_size(), 5);
  EXPECT_EQ(json.fields().at("store_all_peak_bytes").number_value(), 5574966784.0);
  EXPECT_EQ(Stowage("frontier --points=-1" + Resnet()).code, kExitUsage);
  EXPECT_EQ(Stowage("frontier --solver=magic" + Resnet()).code, kExitUsage);
}

TEST(CliPlans, AServersFrontierIsTheOneMadeHere) {
  StowagedProcess server;
  const std::string frontier = "frontier --points=5 --format=csv" + Resnet();
  const Result there = Stowage(frontier + " --no_local --server=" + server.address());
  EXPECT_EQ(there.code, kExitOk);
  EXPECT_EQ(there.out, Stowage(frontier).out);
}

TEST(CliPlans, ExplainsAPlan) {
  const Result text = Stowage("explain --budget=50%" + Resnet());
  EXPECT_EQ(text.code, kExitOk) << text.out;
  for (const char* part : {"plan: found", "peak at", "extra time", "less memory", "more memory",
                           "lower bound", "recompute", "solved in this process"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const Result csv = Stowage("explain --budget=50% --format=csv" + Resnet());
  int64_t recomputed = 0;
  const std::vector<CsvRow> stages = Csv(csv.out);
  for (const CsvRow& stage : stages) {
    int64_t time = 0;
    ASSERT_TRUE(absl::SimpleAtoi(stage.at("recompute_time_ns"), &time));
    recomputed += time;
  }
  const auto json = Json(Stowage("explain --budget=50% --format=json" + Resnet()).out);
  const auto& plan = json.fields().at("plan").struct_value().fields();
  const auto& prediction = plan.at("prediction").struct_value().fields();
  EXPECT_EQ(absl::StrCat(recomputed), prediction.at("recompute_time_ns").string_value());
  EXPECT_EQ(json.fields().at("stages").list_value().values_size(), static_cast<int>(stages.size()));
  const auto& less = json.fields().at("with_less").struct_value().fields();
  const auto& more = json.fields().at("with_more").struct_value().fields();
  EXPECT_LT(less.at("budget_bytes").number_value(), more.at("budget_bytes").number_value());
  EXPECT_GT(less.at("makespan_ns").number_value(), more.at("makespan_ns").number_value());
}

// Taken from the frontier, it is as fast as that of a search of its own, and says as much of itself.
TEST(CliPlans, ExplainsThePlanThatPlanMakes) {
  for (const char* budget : {"60%", "least"}) {
    const std::string of = absl::StrCat(" --format=json --budget=", budget) + Resnet();
    const auto plan = Json(Stowage("plan" + of).out);
    const auto explanation = Json(Stowage("explain" + of).out);
    const auto& explained = explanation.fields().at("plan").struct_value().fields();
    EXPECT_EQ(explained.at("budget_bytes").string_value(),
              plan.fields().at("budget_bytes").string_value());
    for (const char* part : {"bounds", "prediction"}) {
      const auto& here = explained.at(part).struct_value().fields();
      const auto& there = plan.fields().at(part).struct_value().fields();
      for (const char* field : {"makespan_ns", "recomputed_forwards", "lower_bound_ns",
                                "store_all_peak_bytes", "schedule_class"}) {
        ASSERT_EQ(here.count(field), there.count(field)) << part << " " << field;
        if (here.count(field) == 0) continue;
        EXPECT_EQ(here.at(field).ShortDebugString(), there.at(field).ShortDebugString())
            << part << " " << field << " at " << budget;
      }
    }
  }
}

TEST(CliPlans, ExplainsABudgetThatNothingFits) {
  const Result result = Stowage("explain --budget=1KiB" + Resnet());
  EXPECT_EQ(result.code, kExitInfeasible);
  EXPECT_THAT(result.out, HasSubstr("proven infeasible"));
  EXPECT_THAT(result.out, HasSubstr("more memory"));
}

TEST(CliPlans, ExplainsAPlanThatAServerKeeps) {
  StowagedProcess server;
  const std::string at = " --server=" + server.address();
  ASSERT_EQ(Stowage("plan --budget=50%" + Resnet() + at).code, kExitOk);
  const Profile profile = ReadProfile(Data("chain_resnet50.json")).value();
  const std::string key = " --key=" + MakePlanKey(profile, KeyOptions()).digest.ToHex();
  const Result text = Stowage("explain --budget=50%" + key + at, true);
  EXPECT_EQ(text.code, kExitOk) << text.out;
  EXPECT_THAT(text.out, HasSubstr("Plan: "));
  const auto json = Json(Stowage("explain --budget=50% --format=json" + key + at).out);
  EXPECT_EQ(json.fields().at("explanation").string_value(),
            Stowage("explain --budget=50%" + key + at).out);
  EXPECT_EQ(Stowage("explain --budget=50% --format=csv" + key + at).code, kExitUsage);
  EXPECT_EQ(Stowage("explain --budget=50%" + key).code, kExitUsage) << "nobody keeps it";
  EXPECT_EQ(Stowage("explain --budget=50%" + key + at + Resnet()).code, kExitUsage);
}

TEST(CliPlans, ComparesStrategies) {
  const Result csv = Stowage("compare --budget=40% --format=csv" + Resnet());
  ASSERT_EQ(csv.code, kExitOk) << csv.out;
  std::map<std::string, CsvRow> by_strategy;
  for (const CsvRow& row : Csv(csv.out)) by_strategy[row.at("strategy")] = row;
  ASSERT_EQ(by_strategy.size(), 7u) << csv.out;
  EXPECT_EQ(by_strategy["store_all"].at("outcome"), "does not fit");
  EXPECT_EQ(by_strategy["store_all"].at("makespan_ns"), "");
  for (const char* strategy : {"checkpoint_sequential", "revolve", "optimal_persistent"}) {
    const auto plan =
        Json(Stowage(std::string("plan --format=json --budget=40% --solver=") + strategy + Resnet())
                 .out);
    EXPECT_EQ(
        by_strategy[strategy].at("makespan_ns"),
        plan.fields().at("prediction").struct_value().fields().at("makespan_ns").string_value())
        << strategy;
  }
  const Result text = Stowage("compare --budget=40%" + Resnet());
  for (const char* part : {"budget 40% of plain training's peak", "does not fit",
                           "planner's choice", "of those that its solver chooses among"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
}

TEST(CliPlans, ComparesBudgetsAndProfiles) {
  const Result budgets =
      Stowage("compare --solvers=revolve,planner --budgets=40%,3GiB,least --format=csv" + Resnet());
  EXPECT_EQ(budgets.code, kExitOk);
  const std::vector<CsvRow> rows = Csv(budgets.out);
  ASSERT_EQ(rows.size(), 6u) << budgets.out;
  EXPECT_EQ(rows[2].at("budget_bytes"), absl::StrCat(int64_t{3} << 30));
  EXPECT_EQ(rows[4].at("budget"), "least");
  const Result profiles = Stowage("compare --budget=60% --profiles=" + Data("chain_resnet50.json") +
                                  "," + Data("graph_resnet50.json"));
  EXPECT_EQ(profiles.code, kExitOk);
  EXPECT_THAT(profiles.out, HasSubstr("graph_resnet50.json"));
  EXPECT_THAT(profiles.out, HasSubstr("order_search"));
  EXPECT_EQ(Stowage("compare --budget=1KiB" + Resnet()).code, kExitInfeasible);
  EXPECT_EQ(Stowage("compare --budget=50% --solvers=magic" + Resnet()).code, kExitUsage);
  EXPECT_EQ(Stowage("compare --budget=50%").code, kExitUsage);
  EXPECT_EQ(Stowage("compare --budget=50% --plans=x.json" + Resnet()).code, kExitUsage);
}

TEST(CliPlans, ComparesPlanFilesAsTheyAre) {
  std::vector<std::string> files;
  std::vector<std::string> makespans;
  for (const char* budget : {"40%", "80%"}) {
    files.push_back(absl::StrCat(::testing::TempDir(), "/plan_", files.size(), ".json"));
    const Result plan = Stowage(absl::StrCat("plan --format=json --budget=", budget, Resnet()));
    std::ofstream(files.back()) << plan.out;
    makespans.push_back(Json(plan.out)
                            .fields()
                            .at("prediction")
                            .struct_value()
                            .fields()
                            .at("makespan_ns")
                            .string_value());
  }
  const Result csv = Stowage("compare --format=csv --plans=" + files[0] + "," + files[1]);
  EXPECT_EQ(csv.code, kExitOk);
  const std::vector<CsvRow> rows = Csv(csv.out);
  ASSERT_EQ(rows.size(), 2u) << csv.out;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rows[i].at("of"), files[i]);
    EXPECT_EQ(rows[i].at("makespan_ns"), makespans[i]);
  }
  const Result wrong = Stowage("compare --plans=" + Data("chain_resnet50.json"), true);
  EXPECT_EQ(wrong.code, kExitUsage);
  EXPECT_THAT(wrong.out, HasSubstr("chain_resnet50.json: not the JSON mapping of stowage.v1.Plan"));
}

TEST(CliPlans, ListsAreForProgramsToo) {
  const std::string csv = Stowage("solvers --format=csv").out;
  EXPECT_THAT(csv, StartsWith("name,description,schedule_class,for,rule\nstore_all,"));
  EXPECT_THAT(Stowage("solvers --format=json").out, StartsWith("[{\"name\": \"store_all\""));
  const Result schedule = Stowage("plan --budget=50% --format=csv" + Resnet());
  EXPECT_THAT(schedule.out, StartsWith("op,stage,name,tensor,part,stream\nforward-"));
  EXPECT_THAT(schedule.out, HasSubstr("\nbackward,1,"));
  const Result doctor = Stowage("doctor --format=csv --server=unix:/tmp/no_stowaged_here");
  EXPECT_EQ(doctor.code, kExitFailure);
  EXPECT_THAT(doctor.out, StartsWith("kind,what,remedy\n"));
  EXPECT_THAT(doctor.out, HasSubstr("wrong,"));
  EXPECT_EQ(Stowage("solvers --format=xml").code, kExitUsage);
}

// The search takes a second or more, its first points some milliseconds.
TEST(CliPlans, AFrontierOutOfTimeHasThePointsSoFarAndSaysSo) {
  const std::string command = "frontier --profile=" + Data("graph_inception_v3.json");
  for (int ms = 20;; ms *= 2) {
    const std::string timeout = absl::StrCat(" --timeout=", ms, "ms");
    const Result text = Stowage(command + timeout);
    if (text.code != kExitOk) continue;
    ASSERT_THAT(text.out, HasSubstr("cut short by --timeout"));
    break;
  }
  EXPECT_THAT(Stowage(command).out, Not(HasSubstr("cut short")));
}

// Nothing but data on standard output, nothing but notices on the other.
TEST(CliPlans, NoticesAreNotData) {
  const std::string plan = "plan --format=json --budget=40% --server=127.0.0.1:1" + Resnet();
  EXPECT_THAT(Stowage(plan).out, StartsWith("{"));
  const auto notices = [](const std::string& arguments) {
    return Shell("stowage " + arguments + " 2>&1 >/dev/null", ::testing::TempDir()).out;
  };
  EXPECT_THAT(notices(plan), HasSubstr("falling back"));
  EXPECT_EQ(notices("plan --format=json --budget=40%" + Resnet()), "");
}

TEST(CliPlans, AServerThatIsAwayIsUnavailableWherePlanningHereIsForbidden) {
  const std::string away = " --no_local --server=127.0.0.1:1" + Resnet();
  for (const char* command :
       {"plan --budget=40%", "frontier", "explain --budget=40%", "compare --budget=40%"}) {
    const Result result = Stowage(command + away, true);
    EXPECT_EQ(result.code, kExitUnavailable) << command << result.out;
    EXPECT_THAT(result.out, Not(HasSubstr("falling back")));
  }
  const Result nobody = Stowage("plan --budget=40% --no_local" + Resnet(), true);
  EXPECT_EQ(nobody.code, kExitUsage);
  EXPECT_THAT(nobody.out, HasSubstr("--no_local"));
}

TEST(CliPlans, ExitCodesAreInTheHelp) {
  const std::string help = Stowage("--help").out;
  for (const ExitCodeMeaning& code : ExitCodeMeanings()) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("\n  ", code.code, "  ", code.meaning, "\n")));
  }
}

}  // namespace
}  // namespace stowage

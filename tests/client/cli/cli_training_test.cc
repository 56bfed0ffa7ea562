// The commands of `stowage` that measure and train, as a user meets them.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "client/cli/exit_code.h"
#include "solvers/plan/measured_step.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CliTraining, HasHelp) {
  for (const char* command : {"profile", "run", "verify"}) {
    EXPECT_THAT(Stowage("--help").out, HasSubstr(command));
    EXPECT_EQ(Stowage(std::string(command) + " --help").code, kExitOk);
  }
}

TEST(CliTraining, WrongUsageSaysWhatAndExitsWithTwo) {
  const std::pair<const char*, const char*> cases[] = {
      {"run --steps=0", "--steps"},
      {"run --budgets=150%", "budget"},
      {"run --budgets=,", "--budgets"},
      {"run --model=skynet", "skynet"},
      {"verify --profile=/nonexistent", "/nonexistent"},
      {"run --batch=0", "must be"},
      {"profile --threads=-1", "--threads"},
      {"verify --steps=0", "--steps"},
      {"verify --graph --model=skynet", "skynet"},
      {"verify --format=xml", "--format"},
      {"verify --link=fast", "--link"},
      {"verify --link=12:soon", "--link"},
      {"verify --link=0", "--link"},
      {"run --link=0", "--link"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(arguments, true);
    EXPECT_EQ(result.code, kExitUsage) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
}

TEST(CliTraining, ProfilesANetworkThatCanThenBePlanned) {
  const std::string file = ::testing::TempDir() + "/profile.json";
  const std::string network = "--model=resnet18 --image_size=64 --batch=4 --threads=1";
  const Result profiled = Stowage("profile --repeats=2 " + network + " --out=" + file, true);
  ASSERT_EQ(profiled.code, kExitOk) << profiled.out;
  EXPECT_THAT(profiled.out, HasSubstr("layer1.0"));
  EXPECT_THAT(profiled.out, HasSubstr("not held against whole steps: takes 3 passes at least"));
  // No terminal, no progress.
  EXPECT_THAT(profiled.out, Not(HasSubstr("%")));
  EXPECT_EQ(Stowage("plan --budget=90% --profile=" + file).code, kExitOk);
  // Written to a file or not, it is the same thing.
  const Result json = Stowage("profile --repeats=1 " + network);
  std::ofstream(file) << json.out;
  EXPECT_EQ(Stowage("plan --budget=90% --profile=" + file).code, kExitOk) << json.out;
  EXPECT_EQ(Stowage("profile --repeats=2 " + network + " --out=/nonexistent/x.json", true).code,
            kExitUsage);
}

TEST(CliTraining, ProfilesANetworkAsAGraphAndHoldsItAgainstWholeSteps) {
  const std::string file = ::testing::TempDir() + "/graph.json";
  const std::string profile =
      "profile --graph --model=resnet18 --image_size=32 --batch=2 --threads=1 --repeats=3 --out=" +
      file;
  const Result with = Stowage(profile);
  ASSERT_EQ(with.code, kExitOk) << with.out;
  EXPECT_THAT(with.out, HasSubstr("vertex"));
  EXPECT_THAT(with.out, HasSubstr("whole step"));
  EXPECT_EQ(Stowage("plan --budget=100% --profile=" + file).code, kExitOk);
  EXPECT_THAT(Stowage(profile + " --calibrate=false").out,
              HasSubstr("not held against whole steps: not asked for"));
}

TEST(CliTraining, RunAndVerifyGoByASavedProfile) {
  const std::string file = ::testing::TempDir() + "/saved.json";
  const std::string network = " --model=resnet18 --image_size=32 --batch=2 --threads=1 ";
  ASSERT_EQ(Stowage("profile --repeats=1 --out=" + file + network).code, kExitOk);
  const std::string by = network + "--steps=1 --budgets=least --profile=" + file;
  for (const char* command : {"run", "verify"}) {
    const Result result = Stowage(command + by, true);
    EXPECT_EQ(result.code, kExitOk) << result.out;
    EXPECT_THAT(result.out, Not(HasSubstr("profiling")));
    const Result other = Stowage(command + by + " --batch=3", true);
    EXPECT_EQ(other.code, kExitUsage) << other.out;
    EXPECT_THAT(other.out, HasSubstr("bytes of the batch's inputs"));
  }
}

TEST(CliTraining, RunTrainsWithinBudgetsAsPlainTrainingDoes) {
  const std::string run =
      "run --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 --budgets=";
  const Result result = Stowage(run + "100%,least", true);
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("local"));
  EXPECT_THAT(result.out, Not(HasSubstr("NO")));
  const Result infeasible = Stowage(run + "least,1KiB", true);
  EXPECT_EQ(infeasible.code, kExitInfeasible) << infeasible.out;
  EXPECT_THAT(infeasible.out, HasSubstr("proven infeasible"));
}

TEST(CliTraining, VerifyProvesThatTrainingByPlansIsPlainTraining) {
  const std::string verify =
      "verify --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 ";
  const Result chain = Stowage(verify + "--budgets=100%,least");
  EXPECT_EQ(chain.code, kExitOk) << chain.out;
  EXPECT_THAT(chain.out, HasSubstr("resnet18 as a chain, 2 steps each"));
  EXPECT_THAT(chain.out, Not(HasSubstr("NO")));
  const Result graph = Stowage(verify + "--graph --budgets=98%,1KiB --format=json --arena");
  EXPECT_EQ(graph.code, kExitInfeasible) << graph.out;
  google::protobuf::Struct json;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(graph.out, &json).ok()) << graph.out;
  EXPECT_EQ(json.fields().at("form").string_value(), "graph");
  EXPECT_TRUE(json.fields().at("equal").bool_value());
  const auto& budget = json.fields().at("budgets").list_value().values(0).struct_value().fields();
  EXPECT_EQ(budget.at("status").string_value(), "found");
  const auto& recomputed = budget.at("recomputed_forwards").struct_value().fields();
  EXPECT_GT(recomputed.at("planned").number_value(), 0);
  EXPECT_EQ(recomputed.at("planned").number_value(), recomputed.at("executed").number_value());
  const auto& reserved = budget.at("reserved").struct_value().fields();
  EXPECT_TRUE(reserved.at("served_from_region").bool_value()) << graph.out;
  EXPECT_GE(reserved.at("peak_bytes").number_value(), reserved.at("region_bytes").number_value());
  EXPECT_LE(reserved.at("peak_bytes").number_value(), budget.at("budget_bytes").number_value());
}

TEST(CliTraining, VerifyHoldsCopiesAgainstThePlan) {
  const Result result = Stowage(
      "verify --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 "
      "--link=12:10us --solver=offload_greedy --budgets=99% --format=json");
  EXPECT_EQ(result.code, kExitOk) << result.out;
  google::protobuf::Struct json;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &json).ok()) << result.out;
  EXPECT_TRUE(json.fields().at("equal").bool_value()) << result.out;
  const auto& budget = json.fields().at("budgets").list_value().values(0).struct_value().fields();
  const auto& copies = budget.at("transfers").struct_value().fields();
  EXPECT_GT(copies.at("planned").number_value(), 0);
  EXPECT_EQ(copies.at("planned").number_value(), copies.at("executed").number_value());
}

MeasuredStep StepIn(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const absl::StatusOr<MeasuredStep> step = ParseMeasuredStep(text);
  EXPECT_TRUE(step.ok()) << step.status() << "\n" << text;
  return step.value_or(MeasuredStep());
}

TEST(CliTraining, RunCopiesReservesAndLeavesTraces) {
  const std::string file = ::testing::TempDir() + "/run-trace";
  const Result result = Stowage(
      "run --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 "
      "--link=12:10us --solver=offload_greedy --arena --budgets=98%,99% --trace=" +
          file,
      true);
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("sent MiB"));
  EXPECT_THAT(result.out, HasSubstr("reserved"));
  EXPECT_THAT(result.out, Not(HasSubstr("NO")));
  EXPECT_THAT(result.out, HasSubstr(file + ".2"));
  const MeasuredStep tight = StepIn(file + ".1"), loose = StepIn(file + ".2");
  EXPECT_LE(tight.peak, loose.peak);
  EXPECT_FALSE(loose.instructions.empty());
}

TEST(CliTraining, VerifyLeavesATrace) {
  const std::string file = ::testing::TempDir() + "/verify-trace";
  const Result result = Stowage(
      "verify --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=1 --repeats=1 --graph "
      "--budgets=98% --trace=" +
      file);
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_GT(StepIn(file).instructions.back().end, Nanos(0));
}

}  // namespace
}  // namespace stowage

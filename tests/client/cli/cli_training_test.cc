// The commands of `stowage` that measure and train, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/exit_code.h"
#include "solvers/schedule/measured_step.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/proto/trace_sink.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

// What is trained here is profiled first, and how much of its memory is workspace differs between processors. So
// budgets are the least, those with room for plain training, and next to nothing: what a share may have, or not.

using ::testing::ElementsAre;
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
      {"run --budgets=80%,150%", "--budgets = \"150%\": must be "},
      {"run --budgets=,", "--budgets"},
      {"run --model=skynet", "skynet"},
      {"verify --profile=/nonexistent", "/nonexistent"},
      {"run --batch=0", "batch = 0: must be >= 1"},
      {"profile --threads=-1", "--threads"},
      {"verify --steps=0", "--steps"},
      {"verify --graph --model=skynet", "skynet"},
      {"verify --format=xml", "--format"},
      {"run --format=xml", "--format"},
      {"verify --link=fast", "--link"},
      {"verify --link=12:soon", "--link"},
      {"verify --link=0", "--link"},
      {"run --link=0", "--link"},
      // Before anything was trained.
      {"run --solver=magic", "--solver = magic"},
      {"verify --repeats=0", "--repeats = 0"},
      {"profile --repeats=0", "--repeats = 0"},
      {"verify --trace=/nonexistent/x", "cannot write /nonexistent/x"},
      {"profile --out=/nonexistent/x", "cannot write /nonexistent/x"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(arguments, true);
    EXPECT_EQ(result.code, kExitUsage) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
}

TEST(CliTraining, ProfilesANetworkThatCanThenBePlanned) {
  const TemporaryFolder folder;
  const std::string file = folder / "profile.json";
  const std::string network = "--model=resnet18 --image_size=64 --batch=4 --threads=1";
  const Result profiled = Stowage("profile --repeats=2 " + network + " --out=" + file, true);
  ASSERT_EQ(profiled.code, kExitOk) << profiled.out;
  EXPECT_THAT(profiled.out, HasSubstr("layer1.0"));
  EXPECT_THAT(profiled.out, HasSubstr("not held against whole steps: takes 3 passes at least"));
  // No terminal, no progress.
  EXPECT_THAT(profiled.out, Not(HasSubstr("%")));
  EXPECT_EQ(Stowage("plan --budget=least --profile=" + file).code, kExitOk);
  // Written to a file or not, it is the same thing.
  const Result json = Stowage("profile --repeats=1 " + network);
  std::ofstream(file) << json.out;
  EXPECT_EQ(Stowage("plan --budget=least --profile=" + file).code, kExitOk) << json.out;
  EXPECT_EQ(Stowage("profile --repeats=2 " + network + " --out=/nonexistent/x.json", true).code,
            kExitUsage);
}

TEST(CliTraining, ProfilesANetworkAsAGraphAndHoldsItAgainstWholeSteps) {
  const TemporaryFolder folder;
  const std::string file = folder / "graph.json";
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
  const TemporaryFolder folder;
  const std::string file = folder / "saved.json";
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
  // A collector is told of the requests: one for each budget.
  testing::TraceSink sink;
  const TemporaryFolder folder;
  const std::string told = "OTEL_EXPORTER_OTLP_ENDPOINT='" + sink.address() + "' stowage ";
  const Result result = Shell(told + run + "100%,least", folder.path());
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("local"));
  EXPECT_FALSE(HasNoCell(result.out)) << result.out;
  EXPECT_EQ(sink.service(), "stowage");
  // The command does not wait for a collector that is slow to listen.
  for (int i = 0; i < 3 && sink.spans().size() < 2; ++i)
    Shell(told + run + "100%,least", folder.path());
  const auto spans = sink.spans();
  ASSERT_GE(spans.size(), 2u);
  EXPECT_EQ(spans[0].name(), "stowage.plan");
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
  EXPECT_FALSE(HasNoCell(chain.out)) << chain.out;
  const Result graph = Stowage(verify + "--graph --budgets=least,1GiB,1KiB --format=json --arena");
  ASSERT_EQ(graph.code, kExitInfeasible) << graph.out;
  const google::protobuf::Struct json = Json(graph.out);
  EXPECT_EQ(json.fields().at("form").string_value(), "graph");
  EXPECT_TRUE(json.fields().at("equal").bool_value());
  const auto& budgets = json.fields().at("budgets").list_value().values();
  ASSERT_EQ(budgets.size(), 3);
  const auto& budget = budgets[0].struct_value().fields();
  ASSERT_EQ(budget.at("status").string_value(), "found") << graph.out;
  const auto& recomputed = budget.at("recomputed_forwards").struct_value().fields();
  EXPECT_GT(recomputed.at("planned").number_value(), 0);
  EXPECT_EQ(recomputed.at("planned").number_value(), recomputed.at("executed").number_value());
  // There is room for blocks that do not fill the region.
  const auto& ample = budgets[1].struct_value().fields();
  ASSERT_EQ(ample.at("status").string_value(), "found") << graph.out;
  const auto& reserved = ample.at("reserved").struct_value().fields();
  EXPECT_TRUE(reserved.at("served_from_region").bool_value()) << graph.out;
  EXPECT_GE(reserved.at("peak_bytes").number_value(), reserved.at("region_bytes").number_value());
  EXPECT_LE(reserved.at("peak_bytes").number_value(), ample.at("budget_bytes").number_value());
}

constexpr char kSmall[] =
    " --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 ";

TEST(CliTraining, RunTellsProgramsWhatEveryStepTook) {
  const Result result =
      Stowage(std::string("run --seed=3 --budgets=least,1KiB --format=json --graph") + kSmall);
  ASSERT_EQ(result.code, kExitInfeasible) << result.out;
  const google::protobuf::Struct json = Json(result.out);
  const auto& run = json.fields();
  EXPECT_EQ(run.at("model").string_value(), "resnet18");
  EXPECT_EQ(run.at("form").string_value(), "graph");
  EXPECT_EQ(run.at("seed").number_value(), 3);
  EXPECT_EQ(run.at("threads").number_value(), 1);
  EXPECT_THAT(run.at("plans_from").string_value(), HasSubstr("local"));
  EXPECT_EQ(run.at("plain").struct_value().fields().at("steps").list_value().values_size(), 2);
  ASSERT_EQ(run.at("budgets").list_value().values_size(), 2);
  const auto& found = run.at("budgets").list_value().values(0).struct_value().fields();
  ASSERT_EQ(found.at("status").string_value(), "found") << result.out;
  EXPECT_EQ(found.at("plan").string_value().size(), 64u);
  EXPECT_FALSE(found.at("solver").string_value().empty());
  EXPECT_EQ(found.at("source").string_value(), "local");
  EXPECT_TRUE(found.at("fails_and_mends_64_bytes_below").bool_value());
  EXPECT_EQ(found.at("faults").list_value().values_size(), 0);
  const auto& measured = found.at("measured").struct_value().fields();
  ASSERT_EQ(found.at("steps").list_value().values_size(), 2);
  for (const auto& value : found.at("steps").list_value().values()) {
    const auto& step = value.struct_value().fields();
    EXPECT_GT(step.at("step_time_ns").number_value(), 0);
    EXPECT_LE(step.at("peak_bytes").number_value(), measured.at("peak_bytes").number_value());
    EXPECT_GT(step.at("recomputed_forwards").number_value(), 0);
  }
  // What ran out of memory on purpose is no event of the run.
  std::vector<std::string> kinds;
  for (const auto& event : found.at("events").list_value().values()) {
    kinds.push_back(event.struct_value().fields().at("kind").string_value());
  }
  EXPECT_THAT(kinds, ElementsAre("planned", "adopted"));
  const auto& infeasible = run.at("budgets").list_value().values(1).struct_value().fields();
  EXPECT_EQ(infeasible.at("status").string_value(), "proven infeasible");
  EXPECT_EQ(infeasible.at("steps").list_value().values_size(), 0);
  EXPECT_TRUE(infeasible.at("measured").has_null_value());
  EXPECT_EQ(infeasible.size(), found.size()) << "what there is not is null";
}

TEST(CliTraining, RunHasALineForEveryStep) {
  const Result result = Stowage(std::string("run --budgets=least,1KiB --format=csv") + kSmall);
  EXPECT_EQ(result.code, kExitInfeasible) << result.out;
  const std::vector<CsvRow> rows = Csv(result.out);
  ASSERT_EQ(rows.size(), 5u) << result.out;
  EXPECT_EQ(rows[0].at("budget"), "none");
  EXPECT_EQ(rows[1].at("step"), "2");
  EXPECT_EQ(rows[2].at("budget"), "least");
  EXPECT_EQ(rows[3].at("step"), "2");
  EXPECT_GT(std::stoll(rows[3].at("peak_bytes")), 0);
  EXPECT_LE(std::stoll(rows[3].at("peak_bytes")), std::stoll(rows[3].at("budget_bytes")));
  EXPECT_EQ(rows[4].at("status"), "proven infeasible");
  EXPECT_EQ(rows[4].at("step"), "");
}

TEST(CliTraining, VerifyHasALineForEveryBudget) {
  const Result result = Stowage(std::string("verify --budgets=least,1KiB --format=csv") + kSmall);
  EXPECT_EQ(result.code, kExitInfeasible) << result.out;
  const std::vector<CsvRow> rows = Csv(result.out);
  ASSERT_EQ(rows.size(), 3u) << result.out;
  EXPECT_EQ(rows[0].at("budget"), "none");
  const CsvRow& found = rows[1];
  ASSERT_EQ(found.at("status"), "found") << result.out;
  EXPECT_EQ(found.at("gradients_equal"), "true");
  EXPECT_EQ(found.at("faults"), "");
  EXPECT_EQ(found.at("planned_recomputes"), found.at("executed_recomputes"));
  EXPECT_LE(std::stoll(found.at("measured_peak_bytes")), std::stoll(found.at("budget_bytes")));
  EXPECT_EQ(rows[2].at("status"), "proven infeasible");
  EXPECT_EQ(rows[2].at("predicted_peak_bytes"), "");
}

// What was found before it is not lost.
TEST(CliTraining, AnErrorLeavesWhatWasFoundSoFar) {
  const TemporaryFolder folder;
  const std::string trace = folder / "ended";
  const std::string verify = "verify --budgets=100%,least --trace=" + trace + kSmall + "--format=";
  // The second trace cannot be written: a folder has its name.
  std::filesystem::create_directory(trace + ".2");
  const Result csv = Stowage(verify + "csv");
  EXPECT_EQ(csv.code, kExitUsage) << csv.out;
  EXPECT_EQ(Csv(csv.out).size(), 2u) << csv.out;
  const Result json = Stowage(verify + "json");
  ASSERT_EQ(json.code, kExitUsage) << json.out;
  EXPECT_THAT(Json(json.out).fields().at("ended_by").string_value(), HasSubstr(trace + ".2"));
}

TEST(CliTraining, VerifyHoldsCopiesAgainstThePlan) {
  const Result result = Stowage(
      "verify --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 "
      "--link=12:10us --solver=offload_greedy --budgets=least --format=json");
  ASSERT_EQ(result.code, kExitOk) << result.out;
  const google::protobuf::Struct json = Json(result.out);
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
  const TemporaryFolder folder;
  const std::string file = folder / "run-trace";
  const Result result = Stowage(
      "run --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=2 --repeats=2 "
      "--link=12:10us --solver=offload_greedy --arena --budgets=least,1GiB --trace=" +
          file,
      true);
  ASSERT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("offloaded MiB"));
  EXPECT_THAT(result.out, HasSubstr("reserved"));
  EXPECT_FALSE(HasNoCell(result.out)) << result.out;
  EXPECT_THAT(result.out, HasSubstr(file + ".2"));
  const MeasuredStep tight = StepIn(file + ".1"), loose = StepIn(file + ".2");
  EXPECT_LE(tight.peak, loose.peak);
  EXPECT_FALSE(loose.instructions.empty());
}

TEST(CliTraining, VerifyLeavesATrace) {
  const TemporaryFolder folder;
  const std::string file = folder / "verify-trace";
  const Result result = Stowage(
      "verify --model=resnet18 --image_size=32 --batch=2 --threads=1 --steps=1 --repeats=1 --graph "
      "--budgets=least --trace=" +
      file);
  ASSERT_EQ(result.code, kExitOk) << result.out;
  const MeasuredStep step = StepIn(file);
  ASSERT_FALSE(step.instructions.empty());
  EXPECT_GT(step.instructions.back().end, Nanos(0));
}

}  // namespace
}  // namespace stowage

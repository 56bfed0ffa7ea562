// The `stowage` command as a user meets it: a process, its output and its exit code.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "client/cli/exit_code.h"
#include "proto/codec/codec.h"
#include "solvers/plan/simulate.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Result {
  int code = -1;
  std::string out;  // standard output; standard error too where asked for
};

Result Stowage(const std::string& arguments, bool with_errors = false) {
  const std::string command =
      std::string(STOWAGE_BINARY) + " " + arguments + (with_errors ? " 2>&1" : " 2>/dev/null");
  Result result;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string Data(const std::string& file) {
  return std::string(STOWAGE_SOURCE_DIR) + "/tests/data/" + file;
}

v1::Plan PlanFromJson(const std::string& json) {
  v1::Plan plan;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &plan).ok()) << json;
  return plan;
}

TEST(Cli, HelpIsComplete) {
  const Result help = Stowage("--help");
  EXPECT_EQ(help.code, kExitOk);
  for (const char* command : {"profile", "plan", "run", "verify", "solvers", "doctor"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    EXPECT_EQ(Stowage(std::string(command) + " --help").code, kExitOk);
  }
  EXPECT_THAT(Stowage("plan --help").out, HasSubstr("--budget"));
  EXPECT_THAT(Stowage("plan --help").out, Not(HasSubstr("--batch")));
}

TEST(Cli, WrongUsageSaysWhatAndExitsWithTwo) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "usage"},
      {"dance", "unknown command dance"},
      {"plan --tempo=5", "unknown argument --tempo"},
      {"plan --budget=50%", "--profile"},
      {"plan --profile=/nonexistent --budget=50%", "/nonexistent"},
      {"plan --profile=/ --budget=50%", "cannot read /"},
      {"plan --budget=50% --profile=" STOWAGE_SOURCE_DIR "/README.md", "JSON"},
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
      {"doctor", "--server is empty"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(arguments, true);
    EXPECT_EQ(result.code, kExitUsage) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
  const std::string plan = "plan --profile=" + Data("chain_resnet50.json");
  for (const char* rest :
       {"", " --budget=much", " --budget=-5", " --budget=50% --solver=magic",
        " --budget=50% --format=xml", " --budget=50% --timeout=0s", " --budget=50% --slots=-3"}) {
    EXPECT_EQ(Stowage(plan + rest).code, kExitUsage) << rest;
  }
}

TEST(Cli, TheDoctorSaysWhatIsWrongAndWhatToDo) {
  const Result result = Stowage("doctor --server=unix:/tmp/no_stowaged_here");
  EXPECT_EQ(result.code, kExitFailure);
  EXPECT_THAT(result.out, HasSubstr("there is no socket at unix:/tmp/no_stowaged_here"));
  EXPECT_THAT(result.out, HasSubstr("start stowaged"));
}

TEST(Cli, ListsTheSolvers) {
  const Result result = Stowage("solvers");
  EXPECT_EQ(result.code, kExitOk);
  for (const char* name :
       {"store_all", "checkpoint_sequential", "chen_sqrt", "chen_greedy", "revolve",
        "optimal_persistent", "beyond_persistent", "joint", "offload_dynprog", "offload_greedy",
        "offload_vdnn", "offload_tflms", "offload_autoswap"}) {
    EXPECT_THAT(result.out, HasSubstr(name));
  }
}

TEST(Cli, PlansAProfileInJson) {
  const Result result =
      Stowage("plan --format=json --solver=optimal_persistent --slots=500 --budget=50% --profile=" +
              Data("chain_resnet50.json"));
  ASSERT_EQ(result.code, kExitOk);
  const v1::Plan plan = PlanFromJson(result.out);
  EXPECT_EQ(plan.status(), v1::PLAN_STATUS_FOUND);
  EXPECT_EQ(plan.prediction().makespan_ns(), 275554387);
  EXPECT_LE(plan.prediction().peak_bytes(), 5574966784 / 2);
  EXPECT_EQ(plan.bounds().lower_bound_ns(), 272481962);
  EXPECT_GT(plan.schedule().instructions_size(), 42);
}

TEST(Cli, PlansAProfileInText) {
  const Result result = Stowage("plan --budget=2GiB --profile=" + Data("chain_resnet50.json"));
  EXPECT_EQ(result.code, kExitOk);
  for (const char* part : {"plan: found", "2.00 GiB", "recomputed", "beyond_persistent",
                           "source         local", "forward-keep", "backward"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(Cli, PlansAGraph) {
  for (const char* file : {"graph_resnet50.json", "graph_vit_b_16.json"}) {
    const Result result = Stowage("plan --format=json --budget=50% --profile=" + Data(file));
    ASSERT_EQ(result.code, kExitOk) << file;
    const v1::Plan plan = PlanFromJson(result.out);
    EXPECT_EQ(plan.status(), v1::PLAN_STATUS_FOUND);
    EXPECT_GT(plan.stage_vertices_size(), 10);
    EXPECT_GT(plan.prediction().recomputed_forwards(), 0);
  }
}

TEST(Cli, EverySolverIsReachedByName) {
  for (const char* solver : {"store_all", "checkpoint_sequential", "chen_sqrt", "chen_greedy",
                             "revolve", "optimal_persistent", "beyond_persistent"}) {
    const Result result = Stowage(std::string("plan --format=json --budget=100% --solver=") +
                                  solver + " --profile=" + Data("chain_gpt_24.json"));
    ASSERT_EQ(result.code, kExitOk) << solver;
    EXPECT_EQ(PlanFromJson(result.out).provenance().solver(), solver);
  }
}

// The profile of a device with a link to host memory, at the speed of PCIe 3.
std::string LinkedProfile() {
  std::ifstream in(Data("chain_resnet50.json"));
  v1::Profile profile;
  const std::string json((std::istreambuf_iterator<char>(in)), {});
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &profile).ok());
  profile.mutable_device()->set_host_memory_bytes(int64_t{64} << 30);
  profile.mutable_device()->set_to_host_bytes_per_second(12200000000);
  profile.mutable_device()->set_to_device_bytes_per_second(12200000000);
  const std::string path = ::testing::TempDir() + "/linked.json";
  std::ofstream(path) << ToJson(profile);
  return path;
}

TEST(Cli, SaysWhatAPlanCopies) {
  const std::string plan = "plan --budget=50% --solver=offload_greedy --profile=" + LinkedProfile();
  const Result text = Stowage(plan);
  EXPECT_EQ(text.code, kExitOk) << text.out;
  for (const char* part : {"GiB to the host", "GiB back", "at most", "of waiting",
                           "offload-start saved", "prefetch-wait saved"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const v1::Plan json = PlanFromJson(Stowage(plan + " --format=json").out);
  EXPECT_GT(json.prediction().sent_bytes(), 5574966784 / 2);
  EXPECT_EQ(json.prediction().fetched_bytes(), json.prediction().sent_bytes());
  EXPECT_EQ(json.prediction().host_peak_bytes(), json.prediction().sent_bytes());
  EXPECT_GT(json.prediction().idle_time_ns(), 0);
}

TEST(Cli, WithALinkJointPlansChains) {
  const Result result = Stowage("plan --format=json --budget=40% --profile=" + LinkedProfile());
  ASSERT_EQ(result.code, kExitOk);
  const v1::Plan joint = PlanFromJson(result.out);
  EXPECT_EQ(joint.provenance().solver(), "joint");
  const v1::Plan recomputing = PlanFromJson(
      Stowage("plan --format=json --budget=40% --recompute_only --profile=" + LinkedProfile()).out);
  EXPECT_LE(joint.prediction().makespan_ns(), recomputing.prediction().makespan_ns());
  EXPECT_EQ(recomputing.prediction().sent_bytes(), 0);
}

TEST(Cli, CopiesNothingWhenTold) {
  const std::string profile = " --profile=" + LinkedProfile();
  EXPECT_EQ(Stowage("plan --recompute_only --budget=50% --solver=offload_greedy" + profile).code,
            kExitInfeasible);
  const Result recomputing = Stowage("plan --recompute_only --budget=50%" + profile);
  EXPECT_EQ(recomputing.code, kExitOk);
  EXPECT_THAT(recomputing.out, HasSubstr("beyond_persistent"));
  EXPECT_THAT(recomputing.out, Not(HasSubstr("offload")));
}

TEST(Cli, TheDoctorFindsNothingWrongWithAServer) {
  StowagedProcess server;
  const Result result = Stowage("doctor --server=" + server.address());
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("good   stowaged at " + server.address()));
}

TEST(Cli, AServersPlanMayCopyAndIsJudgedWithTheLink) {
  StowagedProcess server;
  const std::string plan =
      "plan --budget=50% --solver=offload_greedy --profile=" + LinkedProfile() +
      " --server=" + server.address();
  EXPECT_THAT(Stowage(plan).out, HasSubstr("source         solved"));
  const Result cached = Stowage(plan);
  EXPECT_EQ(cached.code, kExitOk) << cached.out;
  EXPECT_THAT(cached.out, HasSubstr("source         cache"));
  EXPECT_THAT(cached.out, HasSubstr("offload-start"));
  EXPECT_EQ(Stowage(plan + " --recompute_only").code, kExitInfeasible);
  EXPECT_EQ(server.Stop(), 0);
}

TEST(Cli, AnInfeasibleBudgetExitsWithThreeAndNamesTheLeast) {
  const std::string profile = " --profile=" + Data("chain_resnet50.json");
  const Result result = Stowage("plan --format=json --budget=1000" + profile);
  EXPECT_EQ(result.code, kExitInfeasible);
  const v1::Plan plan = PlanFromJson(result.out);
  EXPECT_EQ(plan.status(), v1::PLAN_STATUS_PROVEN_INFEASIBLE);
  const int64_t least = plan.bounds().least_budget_bytes();
  EXPECT_EQ(Stowage("plan --budget=" + std::to_string(least) + profile).code, kExitOk);
  EXPECT_EQ(Stowage("plan --budget=" + std::to_string(least - 1) + profile).code, kExitInfeasible);
  const Result text = Stowage("plan --budget=1000" + profile);
  EXPECT_THAT(text.out, HasSubstr(std::to_string(least) + " bytes"));
}

TEST(Cli, TheDeadlineHolds) {
  const auto start = std::chrono::steady_clock::now();
  const Result result = Stowage(
      "plan --timeout=50ms --slots=5000 --budget=50% --profile=" + Data("chain_gpt_339.json"),
      true);
  EXPECT_EQ(result.code, kExitDeadline) << result.out;
  // The start of the process is in it.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST(Cli, PlansWithAServerAndGetsTheSecondPlanFromItsCache) {
  StowagedProcess server;
  const std::string command = "plan --budget=40% --profile=" + Data("chain_resnet50.json") +
                              " --server=" + server.address();
  const Result solved = Stowage(command, true);
  EXPECT_EQ(solved.code, kExitOk) << solved.out;
  EXPECT_THAT(solved.out, HasSubstr("source         solved"));
  const Result cached = Stowage(command, true);
  EXPECT_THAT(cached.out, HasSubstr("source         cache"));
  // In process or by the service: the same plan.
  const std::string local =
      "plan --format=json --budget=40% --profile=" + Data("chain_resnet50.json");
  const v1::Plan here = PlanFromJson(Stowage(local).out);
  const v1::Plan there = PlanFromJson(Stowage(local + " --server=" + server.address()).out);
  EXPECT_EQ(here.digest(), there.digest());
  EXPECT_EQ(Stowage("plan --budget=1000 --profile=" + Data("chain_resnet50.json") +
                    " --server=" + server.address())
                .code,
            kExitInfeasible);
  EXPECT_EQ(server.Stop(), 0);
}

TEST(Cli, WithoutTheServerItPlansHereAndSaysSoOnce) {
  const Result result = Stowage(
      "plan --budget=40% --profile=" + Data("chain_resnet50.json") + " --server=127.0.0.1:1", true);
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("falling back to local planning"));
  EXPECT_THAT(result.out, HasSubstr("source         local"));
  const size_t first = result.out.find("falling back");
  EXPECT_EQ(result.out.find("falling back", first + 1), std::string::npos);
}

TEST(Cli, ProfilesANetworkThatCanThenBePlanned) {
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

TEST(Cli, ProfilesANetworkAsAGraphAndHoldsItAgainstWholeSteps) {
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

TEST(Cli, RunAndVerifyGoByASavedProfile) {
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

TEST(Cli, RunTrainsWithinBudgetsAsPlainTrainingDoes) {
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

TEST(Cli, VerifyProvesThatTrainingByPlansIsPlainTraining) {
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

TEST(Cli, VerifyHoldsCopiesAgainstThePlan) {
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

}  // namespace
}  // namespace stowage

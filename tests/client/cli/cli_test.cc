// The commands of `stowage` that plan, as a user meets them: a process, its output and its exit code.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/exit_code.h"
#include "proto/codec/codec.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Plan PlanFromJson(const std::string& json) {
  v1::Plan plan;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &plan).ok()) << json;
  return plan;
}

TEST(Cli, HelpIsComplete) {
  const Result help = Stowage("--help");
  EXPECT_EQ(help.code, kExitOk);
  for (const char* command : {"plan", "solvers", "doctor"}) {
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
      {"plan --budget=50% --profile=" STOWAGE_SOURCE_DIR "/README.md", "/README.md: "},
      {"doctor", "--server = \"\": must name a stowaged"},
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

TEST(Cli, AFullDiskIsNoAnswer) {
  const Result result = Shell("stowage solvers >/dev/full", ::testing::TempDir());
  EXPECT_EQ(result.code, kExitFailure);
  EXPECT_THAT(result.out, HasSubstr("cannot write to standard output"));
}

TEST(Cli, ListsTheSolvers) {
  const Result result = Stowage("solvers");
  EXPECT_EQ(result.code, kExitOk);
  for (const char* name :
       {"store_all", "checkpoint_sequential", "chen_sqrt", "chen_greedy", "revolve",
        "optimal_persistent", "non_persistent", "joint", "offload_dynprog", "offload_greedy",
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
  for (const char* part : {"plan: found", "2.00 GiB", "recomputed", "non_persistent",
                           "source         local", "forward-save", "backward"}) {
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

// What a compiler makes of `layers` layers: forwards, the loss, backwards that read an activation each.
std::string JointGraphFile(int layers) {
  v1::Profile profile;
  profile.set_name("joint");
  const auto add = [&profile](const std::string& name, std::vector<int64_t> inputs, int64_t time) {
    v1::Node* node = profile.mutable_dag()->add_nodes();
    const int64_t id = profile.dag().nodes_size() - 1;
    node->set_id(id);
    node->set_name(name);
    node->set_op_kind(name.substr(0, 4));
    node->set_program_order(id);
    for (const int64_t input : inputs) node->add_inputs(input);
    node->set_output_bytes(1 << 20);
    node->set_workspace_bytes(1 << 10);
    node->set_time_ns(time);
    return id;
  };
  std::vector<int64_t> forwards = {add("input", {}, 0)};
  for (int l = 0; l < layers; ++l) {
    forwards.push_back(add("forward " + std::to_string(l), {forwards.back()}, 1000));
  }
  int64_t gradient = add("loss", {forwards.back()}, 10);
  for (int l = layers; l-- > 0;) {
    const auto at = static_cast<size_t>(l);
    gradient =
        add("backward " + std::to_string(l), {gradient, forwards[at], forwards[at + 1]}, 2000);
  }
  profile.mutable_dag()->mutable_nodes(static_cast<int>(gradient))->set_result(true);
  const std::string path = ::testing::TempDir() + "/joint.json";
  std::ofstream(path) << ToJson(profile);
  return path;
}

TEST(Cli, PlansAComputeDag) {
  const std::string of = " --profile=" + JointGraphFile(12);
  const Result result = Stowage("plan --format=json --budget=60%" + of);
  ASSERT_EQ(result.code, kExitOk) << result.out;
  const v1::Plan plan = PlanFromJson(result.out);
  EXPECT_EQ(plan.status(), v1::PLAN_STATUS_FOUND);
  EXPECT_EQ(plan.provenance().solver(), "order_search");
  EXPECT_EQ(plan.stage_vertices_size(), 26);
  EXPECT_GT(plan.prediction().recomputed_forwards(), 0);
  EXPECT_LE(plan.prediction().peak_bytes(), plan.bounds().store_all_peak_bytes() * 6 / 10);
  for (const char* rest : {"plan --budget=least", "frontier", "explain --budget=60%",
                           "compare --budget=60%", "report --out=/dev/null --budget=60%"}) {
    EXPECT_EQ(Stowage(rest + of).code, kExitOk) << rest;
  }
  const Result tight = Stowage("plan --budget=1KiB" + of);
  EXPECT_EQ(tight.code, kExitInfeasible) << tight.out;
  const Result chain_solver = Stowage("plan --budget=60% --solver=revolve" + of, true);
  EXPECT_EQ(chain_solver.code, kExitUsage);
  EXPECT_THAT(chain_solver.out, HasSubstr("must be empty or one of order_search"));
  const Result checkpoints = Stowage("checkpoints" + of, true);
  EXPECT_EQ(checkpoints.code, kExitUsage);
  EXPECT_THAT(checkpoints.out, HasSubstr("of a compute DAG it is not known"));
}

TEST(Cli, EverySolverIsReachedByName) {
  for (const char* solver : {"store_all", "checkpoint_sequential", "chen_sqrt", "chen_greedy",
                             "revolve", "optimal_persistent", "non_persistent"}) {
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
  for (const char* part : {"GiB copied to the host", "GiB back", "at most", "of waiting",
                           "offload-start saved", "prefetch-wait saved"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const v1::Plan json = PlanFromJson(Stowage(plan + " --format=json").out);
  EXPECT_GT(json.prediction().offloaded_bytes(), 5574966784 / 2);
  EXPECT_EQ(json.prediction().prefetched_bytes(), json.prediction().offloaded_bytes());
  EXPECT_EQ(json.prediction().host_peak_bytes(), json.prediction().offloaded_bytes());
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
  EXPECT_EQ(recomputing.prediction().offloaded_bytes(), 0);
}

TEST(Cli, CopiesNothingWhenTold) {
  const std::string profile = " --profile=" + LinkedProfile();
  EXPECT_EQ(Stowage("plan --recompute_only --budget=50% --solver=offload_greedy" + profile).code,
            kExitInfeasible);
  const Result recomputing = Stowage("plan --recompute_only --budget=50%" + profile);
  EXPECT_EQ(recomputing.code, kExitOk);
  EXPECT_THAT(recomputing.out, HasSubstr("non_persistent"));
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

TEST(Cli, AnOffloadSolverWithoutALinkSaysWhatIsMissing) {
  const std::string plan = "plan --solver=offload_greedy --profile=" + Data("chain_resnet50.json");
  const Result below = Stowage(plan + " --budget=50%");
  EXPECT_EQ(below.code, kExitInfeasible);
  EXPECT_THAT(below.out, HasSubstr("without a link to host memory"));
  EXPECT_EQ(Stowage(plan + " --budget=least").code, kExitOk);
  // Those plan chains alone.
  const Result graph = Stowage(
      "plan --solver=offload_greedy --budget=50% --profile=" + Data("graph_resnet50.json"), true);
  EXPECT_EQ(graph.code, kExitUsage);
  EXPECT_THAT(graph.out, HasSubstr("options.solver"));
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
  const auto cpu_seconds = [] {
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec;
  };
  const auto before = cpu_seconds();
  const Result result = Stowage(
      "plan --timeout=50ms --slots=5000 --budget=50% --profile=" + Data("chain_gpt_339.json"),
      true);
  EXPECT_EQ(result.code, kExitDeadline) << result.out;
  // The start of the process is in it.
  EXPECT_LT(cpu_seconds() - before, 3);
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

}  // namespace
}  // namespace stowage

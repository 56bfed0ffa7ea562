// stowage checkpoints, as a user meets it: every solver, every format, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "client/cli/profile_file.h"
#include "solvers/graph/checkpoint_solver.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::string>& Graphs() {
  static const auto* const kGraphs = new std::vector<std::string>{
      "graph_resnet50.json", "graph_inception_v3.json", "graph_vit_b_16.json"};
  return *kGraphs;
}

std::string Of(const std::string& file) { return " --profile=" + Data(file); }

int64_t BytesOf(const google::protobuf::Struct& json, const std::string& field) {
  return static_cast<int64_t>(json.fields().at(field).number_value());
}

// Of the "vertices" of the command's JSON: those that are kept.
std::vector<int> KeptOf(const google::protobuf::Struct& json) {
  std::vector<int> kept;
  for (const auto& value : json.fields().at("vertices").list_value().values()) {
    const auto& vertex = value.struct_value().fields();
    if (vertex.at("checkpoint").bool_value()) {
      kept.push_back(static_cast<int>(vertex.at("vertex").number_value()));
    }
  }
  return kept;
}

// What the command says of a set against what the validator says of it.
void ExpectJudgedAs(const google::protobuf::Struct& json, const CheckpointProblem& problem,
                    const CheckpointSolver& solver) {
  const absl::StatusOr<CheckpointSet> set =
      ValidateCheckpoints(problem.graph, KeptOf(json), solver.rule());
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(BytesOf(json, "store_all_bytes"), problem.graph.total().value());
  EXPECT_EQ(BytesOf(json, "checkpoint_bytes"), set->checkpoint_bytes.value());
  EXPECT_EQ(BytesOf(json, "largest_segment_bytes"), set->segment_bytes.value());
  EXPECT_EQ(BytesOf(json, "objective_bytes"), set->objective().value());
  EXPECT_EQ(json.fields().at("rule").string_value(), ToString(solver.rule()));
  EXPECT_EQ(json.fields().at("checkpoints").list_value().values_size(),
            static_cast<int>(set->checkpoints.size()));
  const auto& bound = json.fields().at("lower_bound_bytes");
  if (json.fields().at("proven_optimal").bool_value()) {
    EXPECT_EQ(bound.number_value(), static_cast<double>(set->objective().value()));
  } else if (!bound.has_null_value()) {
    EXPECT_LE(bound.number_value(), static_cast<double>(set->objective().value()));
  }
}

TEST(Checkpoints, EverySolverOnEveryGraphIsJudgedAsItSays) {
  for (const std::string& file : Graphs()) {
    const Profile profile = ReadProfile(Data(file)).value();
    const CheckpointProblem problem =
        MakeCheckpointProblem(std::get<Graph>(profile.problem)).value();
    int64_t least = problem.graph.total().value();
    for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
      const std::string& name = solver->info().name;
      SCOPED_TRACE(absl::StrCat(file, " ", name));
      const Result result = Stowage("checkpoints --format=json --solver=" + name + Of(file), true);
      if (name == "linear") {
        EXPECT_EQ(result.code, kExitUsage);
        EXPECT_THAT(result.out, HasSubstr("--solver = linear"));
        EXPECT_THAT(result.out, HasSubstr("one path"));
        continue;
      }
      ASSERT_EQ(result.code, kExitOk) << result.out;
      const auto json = Json(result.out);
      ExpectJudgedAs(json, problem, *solver);
      EXPECT_EQ(BytesOf(json, "objective_bytes"),
                solver->Solve(problem.graph, {}).value().set.objective().value());
      // Where no op of several inputs needs them again.
      if (solver == &DivisionTreeSolver() && file != "graph_vit_b_16.json") {
        EXPECT_TRUE(json.fields().at("proven_optimal").bool_value());
      }
      if (solver->rule() == SegmentRule::kTwoEndPoints && solver != &DivisionTreeSolver()) {
        EXPECT_FALSE(json.fields().at("proven_optimal").bool_value());
      }
      least = std::min(least, BytesOf(json, "objective_bytes"));
    }
    const auto best =
        Json(Stowage("checkpoints --format=json --rule=several_end_points" + Of(file)).out);
    EXPECT_EQ(BytesOf(best, "objective_bytes"), least) << file;
  }
}

TEST(Checkpoints, WithoutASolverTheRulesBestOneIsTaken) {
  const auto solver = [](const std::string& flags) {
    return Json(Stowage("checkpoints --format=json" + flags + Of("graph_resnet50.json")).out)
        .fields()
        .at("solver")
        .string_value();
  };
  EXPECT_EQ(solver(""), "division_tree");
  EXPECT_EQ(solver(" --rule=two_end_points"), "division_tree");
  EXPECT_EQ(solver(" --rule=several_end_points"), "acyclic_quotient");
  EXPECT_EQ(solver(" --rule=two_end_points --solver=random_checkpoints"), "random_checkpoints");
}

TEST(Checkpoints, TextNamesWhatIsKeptAndWhatItTakes) {
  const Result text = Stowage("checkpoints" + Of("graph_resnet50.json"));
  ASSERT_EQ(text.code, kExitOk) << text.out;
  for (const char* part :
       {"division_tree", "kept", "recomputed", "needed", "of keeping every tensor", "lower bound",
        "proven the least of all sets", "two_end_points", "of CPU time", "not counted"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const auto json = Json(Stowage("checkpoints --format=json" + Of("graph_resnet50.json")).out);
  for (const auto& name : json.fields().at("checkpoints").list_value().values()) {
    EXPECT_THAT(text.out, HasSubstr("\n" + name.string_value()));
  }
  const Result random =
      Stowage("checkpoints --solver=random_checkpoints" + Of("graph_resnet50.json"));
  EXPECT_THAT(random.out, HasSubstr("this solver proves none"));
}

TEST(Checkpoints, CsvHasARowPerVertex) {
  const Result csv = Stowage("checkpoints --format=csv" + Of("graph_resnet50.json"));
  ASSERT_EQ(csv.code, kExitOk) << csv.out;
  const auto json = Json(Stowage("checkpoints --format=json" + Of("graph_resnet50.json")).out);
  const std::vector<CsvRow> rows = Csv(csv.out);
  ASSERT_EQ(rows.size(),
            static_cast<size_t>(json.fields().at("vertices").list_value().values_size()));
  int64_t kept = 0, all = 0;
  std::set<std::string> segments;
  for (const CsvRow& row : rows) {
    int64_t bytes = 0;
    ASSERT_TRUE(absl::SimpleAtoi(row.at("bytes"), &bytes));
    all += bytes;
    EXPECT_EQ(row.at("segment").empty(), row.at("checkpoint") == "true") << row.at("name");
    if (row.at("checkpoint") == "true") kept += bytes;
    if (!row.at("segment").empty()) segments.insert(row.at("segment"));
  }
  EXPECT_EQ(kept, BytesOf(json, "checkpoint_bytes"));
  EXPECT_EQ(all, BytesOf(json, "store_all_bytes"));
  EXPECT_EQ(static_cast<int>(segments.size()),
            json.fields().at("segments").list_value().values_size());
}

TEST(Checkpoints, AChainIsThePathOfItsStagesOutputs) {
  const std::string chain = Of("chain_resnet50.json");
  const auto json = Json(Stowage("checkpoints --format=json --solver=linear" + chain).out);
  EXPECT_EQ(json.fields().at("form").string_value(), "chain");
  EXPECT_TRUE(json.fields().at("proven_optimal").bool_value());
  const Profile profile = ReadProfile(Data("chain_resnet50.json")).value();
  const Chain& stages = std::get<Chain>(profile.problem);
  int64_t outputs = stages.activation(0).value(), beside = 0;
  for (int l = 1; l <= stages.length() + 1; ++l) {
    outputs += stages.stage(l).output.value();
    beside += (stages.stage(l).saved - stages.stage(l).output).value();
  }
  EXPECT_EQ(BytesOf(json, "store_all_bytes"), outputs);
  EXPECT_EQ(BytesOf(json, "saved_beside_bytes"), beside);
  const auto tree = Json(Stowage("checkpoints --format=json" + chain).out);
  EXPECT_EQ(BytesOf(json, "objective_bytes"), BytesOf(tree, "objective_bytes"));
  EXPECT_EQ(KeptOf(json).front(), 0) << "the input";
  EXPECT_EQ(KeptOf(json).back(), stages.length() + 1) << "the loss";
  const std::string text = Stowage("checkpoints" + chain).out;
  EXPECT_THAT(text, HasSubstr("a chain, as the path of its stages' outputs"));
  EXPECT_THAT(text, HasSubstr("\ninput "));
}

std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Checkpoints, PicturesAreOfTheGraphOrOfItsDivisionTree) {
  const TemporaryFolder folder;
  for (const std::string& file : {std::string("graph_resnet50.json"), Graphs()[1]}) {
    for (const std::string tree : {"", " --tree"}) {
      const std::string svg = folder / "picture.svg";
      const Result drawn = Stowage("checkpoints --format=svg --out=" + svg + tree + Of(file));
      ASSERT_EQ(drawn.code, kExitOk) << drawn.out;
      EXPECT_THAT(drawn.out, HasSubstr("lower bound")) << "what it costs goes to standard output";
      EXPECT_THAT(Content(svg), StartsWith("<svg xmlns="));
      const Result parsed = Shell(
          "python3 -c 'import sys, xml.dom.minidom as m; "
          "m.parse(\"picture.svg\")'",
          folder.path());
      EXPECT_EQ(parsed.code, 0) << parsed.out;
      const Result dot = Stowage("checkpoints --format=dot" + tree + Of(file));
      ASSERT_EQ(dot.code, kExitOk);
      EXPECT_THAT(dot.out, StartsWith("digraph {\n"));
      EXPECT_THAT(dot.out, HasSubstr("division_tree"));
      std::ofstream(folder / "picture.dot") << dot.out;
      const Result checked =
          Shell("if command -v dot >/dev/null; then dot -Tcanon picture.dot >/dev/null; fi",
                folder.path());
      EXPECT_EQ(checked.code, 0) << checked.out;
    }
  }
  const std::string graph = Stowage("checkpoints --format=dot" + Of("graph_resnet50.json")).out;
  const std::string tree =
      Stowage("checkpoints --format=dot --tree" + Of("graph_resnet50.json")).out;
  EXPECT_THAT(tree, HasSubstr("linear"));
  EXPECT_THAT(graph, Not(HasSubstr("linear\\n")));
}

TEST(Checkpoints, RefusesInOneLineWhatIsNoInput) {
  const TemporaryFolder folder;
  std::ofstream(folder / "broken.json") << "{\"graph\": {\"vertices\": []}}";
  const std::string graph = Of("graph_resnet50.json");
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"", "--profile = \"\": must name a profile file"},
      {" --profile=/nonexistent.json", "/nonexistent.json"},
      {" --profile=" + (folder / "broken.json"), "broken.json: profile.graph.vertices"},
      {graph + " --solver=magic", "--solver = \"magic\": must be keep_all or "},
      {graph + " --solver=revolve", "division_tree"},
      {graph + " --rule=any", "--rule = \"any\": must be two_end_points or several_end_points"},
      {graph + " --rule=several_end_points --solver=division_tree",
       "--rule = several_end_points: must be two_end_points with --solver=division_tree"},
      {graph + " --format=html", "must be text or json or csv or svg or dot"},
      {graph + " --format=json --tree", "--tree = true: needs --format=svg"},
      {graph + " --timeout=0s", "--timeout"},
      {graph + " --out=/nonexistent/x", "cannot write /nonexistent/x"},
      {graph + " --budget=50%", "budget"}};
  for (const auto& [flags, words] : lines) {
    const Result result = Stowage("checkpoints" + flags, true);
    EXPECT_EQ(result.code, kExitUsage) << flags << result.out;
    EXPECT_THAT(result.out, HasSubstr(words)) << flags;
    const std::vector<std::string> all = absl::StrSplit(result.out, '\n');
    EXPECT_EQ(all.size(), 2u) << result.out;
  }
}

TEST(Checkpoints, ATimeThatIsUpIsSaid) {
  const Result result = Stowage("checkpoints --timeout=1ns" + Of("graph_inception_v3.json"), true);
  EXPECT_EQ(result.code, kExitDeadline) << result.out;
  EXPECT_THAT(result.out, HasSubstr("deadline"));
}

// Beside all solvers of plans.
TEST(Checkpoints, TheirSolversAreListed) {
  std::set<std::string> listed;
  for (const CsvRow& row : Csv(Stowage("solvers --format=csv").out)) {
    EXPECT_EQ(row.at("for") == "checkpoints", !row.at("rule").empty());
    if (row.at("for") == "checkpoints") listed.insert(row.at("name"));
  }
  const std::string text = Stowage("solvers").out;
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    EXPECT_EQ(listed.count(solver->info().name), 1u);
    EXPECT_THAT(text, HasSubstr(solver->info().name));
  }
}

// What trains by the set says what it takes, and is one of those that compare and frontier know.
TEST(Checkpoints, PlansTrainByTheDivisionTree) {
  const std::string graph = Of("graph_resnet50.json");
  const std::string plan = "plan --format=json --solver=division_tree" + graph;
  const auto least = Json(Stowage(plan + " --budget=least").out);
  EXPECT_EQ(least.fields().at("status").string_value(), "PLAN_STATUS_FOUND");
  int64_t bytes = 0;
  ASSERT_TRUE(absl::SimpleAtoi(least.fields().at("budget_bytes").string_value(), &bytes));
  const Result less = Stowage(absl::StrCat(plan, " --budget=", bytes - 1));
  EXPECT_EQ(less.code, kExitInfeasible);
  const auto none = Json(less.out);
  EXPECT_EQ(none.fields().at("status").string_value(), "PLAN_STATUS_NOT_FOUND");
  const auto& bounds = none.fields().at("bounds").struct_value().fields();
  EXPECT_EQ(bounds.at("least_budget_bytes").string_value(), absl::StrCat(bytes));
  const Result text =
      Stowage(absl::StrCat("plan --solver=division_tree --budget=", bytes - 1, graph));
  EXPECT_THAT(text.out, HasSubstr(absl::StrCat(bytes, " bytes")));
  const Result compared = Stowage(
      "compare --format=csv --solvers=store_all,division_tree "
      "--budgets=least" +
      graph);
  ASSERT_EQ(compared.code, kExitOk) << compared.out;
  EXPECT_EQ(Csv(compared.out)[1].at("budget_bytes"), absl::StrCat(bytes));
  const auto frontier = Json(Stowage("frontier --format=json --solver=division_tree" + graph).out);
  const auto& points = frontier.fields().at("points").list_value().values();
  ASSERT_GE(points.size(), 2);
  EXPECT_EQ(points[0].struct_value().fields().at("peak_bytes").number_value(),
            static_cast<double>(bytes));
}

}  // namespace
}  // namespace stowage

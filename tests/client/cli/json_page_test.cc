// The page on the command's JSON names what is printed, and what is printed leaves nothing out.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "client/cli/exit_code.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/stowaged_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using google::protobuf::Value;
using ::testing::HasSubstr;

// The fields of an object, or of each object of an array, and of what these hold; but not of the contract's messages.
void CollectNames(const Value& value, std::set<std::string>* names) {
  for (const Value& one : value.list_value().values()) CollectNames(one, names);
  for (const auto& [name, field] : value.struct_value().fields()) {
    names->insert(name);
    if (name != "plan" && name != "bytes_by_use") CollectNames(field, names);
  }
}

Value JsonOf(const std::string& command) {
  const Result result = Stowage(command + " --format=json");
  EXPECT_TRUE(result.code == kExitOk || result.code == kExitInfeasible) << command;
  Value value;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &value).ok())
      << command << "\n"
      << result.out;
  return value;
}

std::set<std::string> NamesOf(const Value& value) {
  std::set<std::string> names;
  CollectNames(value, &names);
  return names;
}

// What the page says of a command: its section, or its row where several share a section.
std::string PageOf(const std::string& command) {
  static const auto* const kPage = [] {
    std::ostringstream text;
    text << std::ifstream(STOWAGE_SOURCE_DIR "/client/cli/json.md").rdbuf();
    return new std::string(text.str());
  }();
  const auto part = [](const std::string& begin, const std::string& end) -> std::string {
    const size_t start = kPage->find(begin);
    return start == std::string::npos ? ""
                                      : kPage->substr(start, kPage->find(end, start + 1) - start);
  };
  const std::string section = part("\n## `" + command + "`", "\n## ");
  return section.empty() ? part("\n| `" + command + "`", "\n") : section;
}

// That the page names every field that this prints, of which there are so many at least.
void ExpectNamed(const std::string& of, const std::string& command, size_t least) {
  const std::string page = PageOf(of);
  ASSERT_FALSE(page.empty()) << of;
  const std::set<std::string> names = NamesOf(JsonOf(command));
  EXPECT_GE(names.size(), least) << command;
  for (const std::string& field : names) {
    EXPECT_THAT(page, HasSubstr("`" + field + "`")) << of;
  }
}

const std::string& ChainFlag() {
  static const auto* const kFlag = new std::string(" --profile=" + Data("chain_resnet50.json"));
  return *kFlag;
}

TEST(JsonPage, NamesEveryFieldThatIsPrinted) {
  const std::string catalogue = " --catalogue=" STOWAGE_SOURCE_DIR "/solvers/zoo/data";
  ExpectNamed("frontier", "frontier --points=3" + ChainFlag(), 14);
  ExpectNamed("explain", "explain --budget=60%" + ChainFlag(), 20);
  ExpectNamed("compare", "compare --budget=60%" + ChainFlag(), 15);
  const std::string pipeline = "pipeline --devices=2 --microbatches=4 --budget=";
  ExpectNamed("pipeline", pipeline + "least" + ChainFlag(), 20);
  ExpectNamed("pipeline", pipeline + "1KiB" + ChainFlag(), 15);
  ExpectNamed("checkpoints", "checkpoints" + ChainFlag(), 20);
  ExpectNamed("solvers", "solvers", 5);
  ExpectNamed("fit", "fit --model=resnet18 --device=v100 --max_batch=4 --slots=50", 20);
  ExpectNamed("catalogue ls", "catalogue ls" + catalogue, 10);
  ExpectNamed("catalogue show", "catalogue show resnet50 --batch=64" + catalogue, 4);
}

TEST(JsonPage, NamesWhatIsSaidOfAServer) {
  StowagedProcess server;
  const std::string where = " --server=" + server.address();
  ASSERT_EQ(Stowage("plan --budget=60%" + ChainFlag() + where).code, kExitOk);
  ExpectNamed("doctor", "doctor" + where, 3);
  ExpectNamed("cache ls", "cache ls" + where, 15);
  const Value plans = JsonOf("cache ls" + where);
  ASSERT_EQ(plans.list_value().values_size(), 1);
  const std::string key =
      plans.list_value().values(0).struct_value().fields().at("key").string_value();
  ExpectNamed("cache ls`, `cache get KEY", "cache get " + key + where, 15);
  ExpectNamed("cache get KEY --budget", "cache get " + key + " --budget=60%" + where, 3);
  const TemporaryFolder folder;
  std::ofstream(folder / "decisions") << "stowage decisions 1\n";
  ExpectNamed("decisions import", "decisions import " + (folder / "decisions") + where, 2);
}

#ifdef STOWAGE_TEST_TORCH
// One budget with a plan, and one without.
TEST(JsonPage, NamesWhatTrainingMeasures) {
  for (const std::string command : {"run", "verify"}) {
    ExpectNamed(
        "run",
        command +
            " --model=resnet18 --image_size=32 --batch=1 --steps=1 --budgets=100%,1% --threads=1",
        50);
  }
}
#endif

// The same fields whether there is a plan or none: a program that reads one reads the other.
TEST(JsonPage, AnAnswerThatNothingFitsHasTheSameFields) {
  for (const std::string command : {"plan", "explain", "compare"}) {
    const Value found = JsonOf(command + " --budget=60%" + ChainFlag());
    const Value none = JsonOf(command + " --budget=1KiB" + ChainFlag());
    const auto fields = [](const Value& value) {
      std::set<std::string> names;
      const Value& one = value.has_list_value() ? value.list_value().values(0) : value;
      for (const auto& field : one.struct_value().fields()) names.insert(field.first);
      return names;
    };
    EXPECT_EQ(fields(found), fields(none)) << command;
    EXPECT_FALSE(fields(found).empty()) << command;
  }
}

TEST(JsonPage, PlansCarryZeros) {
  const std::string plan = Stowage("plan --format=json --budget=100%" + ChainFlag()).out;
  for (const char* part : {"\"recomputed_forwards\": 0", "\"offloaded_bytes\": \"0\"",
                           "\"part\": 0", "\"stage_vertices\": []"}) {
    EXPECT_THAT(plan, HasSubstr(part));
  }
}

// What differs from run to run and from version to version is put aside.
std::string Steady(std::string text) {
  text = std::regex_replace(text, std::regex(R"x(("(solve|cpu)_time_ns": "?)\d+)x"), "$010");
  return std::regex_replace(text, std::regex(R"x(("solver_version": )"[^"]*")x"), "$01\"VERSION\"");
}

// What is printed for a small profile, byte by byte.
TEST(JsonGolden, IsWhatItWas) {
  const std::string folder = STOWAGE_SOURCE_DIR "/tests/data/cli/";
  for (const std::string command : {"plan", "frontier", "explain", "compare"}) {
    const std::string budget = command == "frontier" ? "" : " --budget=85%";
    const Result result =
        Stowage(command + budget + " --format=json --profile=" + folder + "profile.json");
    EXPECT_EQ(result.code, kExitOk) << command;
    std::ostringstream golden;
    golden << std::ifstream(folder + command + ".json").rdbuf();
    EXPECT_EQ(Steady(result.out), golden.str()) << command;
  }
}

}  // namespace
}  // namespace stowage

// The page on the command's JSON names what is printed, and what is printed leaves nothing out.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/exit_code.h"
#include "tests/client/cli/stowage_command.h"

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

// The section of the page that begins with this heading.
std::string SectionOf(const std::string& command) {
  static const auto* const kPage = [] {
    std::ostringstream text;
    text << std::ifstream(STOWAGE_SOURCE_DIR "/client/cli/json.md").rdbuf();
    return new std::string(text.str());
  }();
  const size_t start = kPage->find("\n## `" + command + "`");
  if (start == std::string::npos) return "";
  return kPage->substr(start, kPage->find("\n## ", start + 1) - start);
}

const std::string& ChainFlag() {
  static const auto* const kFlag = new std::string(" --profile=" + Data("chain_resnet50.json"));
  return *kFlag;
}

TEST(JsonPage, NamesEveryFieldThatIsPrinted) {
  const std::vector<std::pair<std::string, std::string>> commands = {
      {"frontier", "frontier --points=3" + ChainFlag()},
      {"explain", "explain --budget=60%" + ChainFlag()},
      {"compare", "compare --budget=60%" + ChainFlag()},
      {"checkpoints", "checkpoints" + ChainFlag()},
      {"solvers", "solvers"},
      {"fit", "fit --model=resnet18 --device=v100 --max_batch=4 --slots=50"},
      {"catalogue", "catalogue ls --catalogue=" STOWAGE_SOURCE_DIR "/solvers/catalogue/data"}};
  for (const auto& [name, command] : commands) {
    const std::string section = SectionOf(name);
    ASSERT_FALSE(section.empty()) << name;
    const std::set<std::string> names = NamesOf(JsonOf(command));
    EXPECT_GE(names.size(), 5u) << command;
    for (const std::string& field : names) {
      EXPECT_THAT(section, HasSubstr("`" + field + "`")) << name;
    }
  }
}

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
  for (const char* part : {"\"recomputed_forwards\": 0", "\"sent_bytes\": \"0\"", "\"part\": 0",
                           "\"stage_vertices\": []"}) {
    EXPECT_THAT(plan, HasSubstr(part));
  }
}

}  // namespace
}  // namespace stowage

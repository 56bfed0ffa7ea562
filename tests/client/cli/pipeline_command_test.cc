// stowage pipeline, as a user meets it.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

Result Pipeline(const std::string& flags) {
  return Stowage("pipeline --profile=" + Data("chain_resnet50.json") + " " + flags, true);
}

google::protobuf::Struct PipelineJson(const std::string& flags) {
  return Json(Pipeline(flags + " --format=json").out);
}

int64_t NumberAt(const google::protobuf::Struct& json, const std::string& field) {
  return static_cast<int64_t>(json.fields().at(field).number_value());
}

TEST(PipelineCommand, PlansWhatTheLeastBudgetHolds) {
  const std::string shape = "--devices=4 --microbatches=8 ";
  const google::protobuf::Struct none = PipelineJson(shape + "--budget=1");
  EXPECT_NE(none.fields().at("status").string_value(), "found");
  EXPECT_EQ(Pipeline(shape + "--budget=1").code, kExitInfeasible);
  const int64_t least = NumberAt(none, "least_equal_budget_bytes");
  const google::protobuf::Struct plan = PipelineJson(shape + "--budget=least");
  EXPECT_EQ(plan.fields().at("status").string_value(), "found");
  const auto& stages = plan.fields().at("stages").list_value().values();
  ASSERT_EQ(stages.size(), 4);
  int64_t last = 0;
  for (const auto& stage : stages) {
    EXPECT_EQ(NumberAt(stage.struct_value(), "first_layer"), last + 1);
    last = NumberAt(stage.struct_value(), "last_layer");
    EXPECT_EQ(NumberAt(stage.struct_value(), "device_budget_bytes"), least);
    EXPECT_LE(NumberAt(stage.struct_value(), "device_peak_bytes"), least);
  }
  EXPECT_EQ(last, 20);
  // The same as bytes, for all and for each.
  const int64_t makespan = NumberAt(plan, "makespan_ns");
  EXPECT_EQ(NumberAt(PipelineJson(absl::StrCat(shape, "--budget=", least)), "makespan_ns"),
            makespan);
  const std::string each = absl::StrCat(least, ",", least, ",", least, ",", least);
  EXPECT_EQ(NumberAt(PipelineJson(shape + "--budget=" + each), "makespan_ns"), makespan);
  EXPECT_LE(NumberAt(PipelineJson(shape + "--budget=64GiB"), "makespan_ns"), makespan);
}

TEST(PipelineCommand, TakesStagesThatAreGivenAndShowsThem) {
  const Result result =
      Pipeline("--devices=2 --chunks=2 --microbatches=4 --budget=64GiB --last_layers=5,10,15,20");
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("lower bound"));
  const Result csv = Pipeline(
      "--devices=2 --microbatches=4 --budget=64GiB --last_layers=8,20 --transfer_time=20us "
      "--format=csv");
  EXPECT_EQ(csv.code, kExitOk);
  EXPECT_THAT(csv.out, HasSubstr("\n0,0,1,8,"));
  EXPECT_THAT(csv.out, HasSubstr("\n1,1,9,20,"));
}

TEST(PipelineCommand, NamesWhatIsWrong) {
  const auto refused = [](const std::string& flags, const std::string& why) {
    const Result result = Pipeline(flags);
    EXPECT_EQ(result.code, kExitUsage) << flags;
    EXPECT_THAT(result.out, HasSubstr(why)) << flags;
  };
  refused("--devices=0 --budget=1GiB", "--devices = 0");
  refused("--devices=2 --chunks=2 --microbatches=3 --budget=1GiB", "--microbatches = 3");
  refused("--transfer_time=-1us --budget=1GiB", "--transfer_time = -1us");
  refused("--devices=2", "--budget");
  refused("--devices=2 --budget=60%", "--budget");
  refused("--devices=3 --budget=1GiB,2GiB", "budgets_bytes = 2");
  refused("--devices=2 --budget=1GiB --last_layers=a,20", "--last_layers");
  refused("--devices=2 --budget=1GiB --last_layers=5,19", "last_layers[1] = 19");
  refused("--devices=21 --microbatches=2 --budget=1GiB", "chain.stages");
}

}  // namespace
}  // namespace stowage

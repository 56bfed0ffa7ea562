// The parts of the report. What its rows say of a whole run, tests/gpu/run --selftest checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/bench/gpu/report_device.h"
#include "tests/bench/gpu/report_row.h"
#include "tests/bench/gpu/selective_schedule.h"

namespace stowage {
namespace {

using testing::HasSubstr;

TEST(ReportRowTest, IsOneLineOfJson) {
  ReportRow row("net/\"a\"");
  row.Add("text", "x\ny").Add("count", int64_t{3}).Add("peak", Bytes(512)).Add("step", Nanos(7));
  row.Add("share", 0.5).Add("equal", true).Add("none", std::numeric_limits<double>::infinity());
  EXPECT_EQ(row.Json(),
            "{\"row\": \"net/\\\"a\\\"\", \"text\": \"x y\", \"count\": 3, \"peak_bytes\": 512, "
            "\"step_ns\": 7, \"share\": 0.5, \"equal\": true, \"none\": null}");
}

TEST(ReportFileTest, GoesOnWhereItWasCutOff) {
  const std::string path = testing::TempDir() + "/report_file_test.jsonl";
  std::ofstream(path) << "{\"row\": \"a\", \"x\": 1}\n{\"row\": \"b\", \"error\": \"no\"}\n"
                         "{\"row\": \"c\", \"x\"";
  ReportFile file = ReportFile::Open(path).value();
  EXPECT_TRUE(file.Has("a"));
  EXPECT_FALSE(file.Has("b"));
  EXPECT_FALSE(file.Has("c"));
  ASSERT_TRUE(file.Append(ReportRow("c").Add("x", int64_t{2})).ok());
  EXPECT_TRUE(ReportFile::Open(path)->Has("c"));
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("\"x\"\n{\"row\": \"c\", \"x\": 2}\n"));
  ASSERT_TRUE(file.AppendError("d", absl::InternalError("first\nsecond")).ok());
  EXPECT_EQ(file.errors(), 1);
  EXPECT_FALSE(ReportFile::Open("/nonexistent/rows").ok());
}

TEST(ReportDeviceTest, NamesThatAreNone) {
  EXPECT_TRUE(ReportDeviceNamed("test").ok());
  for (const char* name : {"cpu", "cuda:-1", "cuda:x", "cuda:100"}) {
    EXPECT_EQ(ReportDeviceNamed(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

// What is kept runs once, all else of a block once more, and plain training needs more memory.
TEST(SelectiveScheduleTest, RunsWhatIsCheapAgain) {
  DecoderOptions options;
  options.layers = 3;
  options.width = 32;
  options.heads = 2;
  options.length = 64;
  options.vocabulary = 50;
  options.batch = 2;
  options.fused_attention = true;
  for (const Network& network :
       {MakeNetwork({"resnet50", 64, 2, 10}).value(), MakeDecoder(options).value()}) {
    const Graph graph = GraphOf(network, ModelledV100()).value();
    const Schedule schedule = SelectiveSchedule(network, graph);
    const Evaluator evaluator(graph);
    const auto run = evaluator.Run(schedule);
    ASSERT_TRUE(run.ok()) << network.name << ": " << run.status();
    EXPECT_GT(run->recomputed_forwards, 0) << network.name;
    EXPECT_LT(run->peak, Instance(graph).store_all()->peak) << network.name;
    std::vector<int> forwards(network.ops.size());
    for (const Instruction& i : schedule) {
      if (IsForward(i.op)) ++forwards[static_cast<size_t>(i.stage) - 1];
    }
    for (size_t op = 0; op < network.ops.size(); ++op) {
      const OpKind kind = network.ops[op].kind;
      const bool dear = kind == OpKind::kConv2d || kind == OpKind::kLinear ||
                        kind == OpKind::kAttention || kind == OpKind::kMatmul;
      EXPECT_LE(forwards[op], dear ? 1 : 2) << network.name << " " << NameOf(kind);
    }
  }
}

}  // namespace
}  // namespace stowage

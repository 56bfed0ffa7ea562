// The user's own network at the command line: --script, --input, --loss, --device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "client/cli/exit_code.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

const std::string& Net() {
  static const auto* const kNet =
      new std::string(" --script=" + Data("net.pt") + " --threads=1 --repeats=2 ");
  return *kNet;
}

TEST(CliScript, SaysWhatItIsBeforeItTrains) {
  const Result result = Stowage("profile --input=2x3x16x16" + Net(), true);
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("net.pt: 9 nodes, trains 10 parameters"));
  EXPECT_THAT(result.out, HasSubstr("net.pt: input 0 (x): 2x3x16x16 float32\n"));
  EXPECT_THAT(result.out, HasSubstr("net.pt: output 0: 2x10 float32\n"));
  EXPECT_THAT(result.out, HasSubstr("net.pt: loss: cross_entropy over 10 classes, of output 0\n"));
}

TEST(CliScript, VerifyProvesThatPlansTrainItAsItself) {
  for (const char* loss : {"cross_entropy", "mse", "sum"}) {
    const Result result =
        Stowage("verify --input=4x3x16x16 --steps=2 --budgets=100%,least --format=json --loss=" +
                std::string(loss) + Net());
    EXPECT_EQ(result.code, kExitOk) << result.out;
    const google::protobuf::Struct json = Json(result.out);
    const auto& report = json.fields();
    EXPECT_EQ(report.at("form").string_value(), "graph");
    EXPECT_EQ(report.at("loss").string_value(), loss);
    EXPECT_EQ(report.at("device").string_value(), "cpu");
    EXPECT_EQ(report.at("batch").number_value(), 4);
    EXPECT_EQ(report.at("nodes").number_value(), 9);
    EXPECT_EQ(report.at("inputs").list_value().values(0).string_value(), "4x3x16x16 float32");
    EXPECT_THAT(report.at("model").string_value(), HasSubstr("net.pt"));
    EXPECT_TRUE(report.at("equal").bool_value()) << result.out;
    for (const auto& value : report.at("budgets").list_value().values()) {
      const auto& budget = value.struct_value().fields();
      const auto peak = [&budget](const char* of) {
        return budget.at(of).struct_value().fields().at("peak_bytes").number_value();
      };
      EXPECT_EQ(peak("measured"), peak("predicted")) << result.out;
    }
  }
}

TEST(CliScript, RunTrainsIt) {
  const Result result = Stowage("run --input=2x3x16x16 --steps=1 --budgets=least" + Net(), true);
  EXPECT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr("net.pt as a graph: training 1 step without a budget"));
  EXPECT_FALSE(HasNoCell(result.out)) << result.out;
}

TEST(CliScript, WhatIsWrongIsOneLineAndExitsWithTwo) {
  const std::string text = ::testing::TempDir() + "/no_script.pt";
  std::ofstream(text) << "import torch\n";
  const std::string net = "--script=" + Data("net.pt");
  const std::pair<std::string, const char*> cases[] = {
      {"run --script=/nonexistent/net.pt --input=2x3",
       "script = \"/nonexistent/net.pt\": cannot be"},
      {"verify --input=2x3 --script=" + text, "is no TorchScript"},
      {"profile " + net, "--input = \"\": must be the shape of each input of --script"},
      {"profile --input=2x3xx " + net, "input = \"2x3xx\": must be sizes >= 1"},
      {"profile --input=2x3:int8 " + net, "must be one of float32"},
      {"verify --input=2x3x16x16,4 " + net, "forward takes 1 (x), here are 2"},
      {"verify --input=2x4x16x16 " + net, "the network refuses it: at conv1 (_convolution): Given"},
      {"run --loss=hinge --input=2x3x16x16 " + net, "loss = \"hinge\": must be cross_entropy"},
      {"run --batch=8 --input=2x3x16x16 " + net, "--batch = 8: is for reference networks"},
      {"run --model=vgg11 --input=2x3x16x16 " + net, "--model = vgg11: is for reference networks"},
      {"run --graph --input=2x3x16x16 " + net, "--graph = true: is for reference networks"},
      {"run --model=resnet50 --input=2x3x16x16 " + net, "--model = resnet50: is for reference"},
      {"profile --loss=cross_entropy", "--loss = cross_entropy: is for --script"},
      {"run --classes=5 --input=2x3x16x16 " + net, "--classes = 5: is for"},
      {"verify --input=2x3x16x16", "--input = 2x3x16x16: is for --script"},
      {"profile --loss=mse", "--loss = mse: is for --script"},
      {"profile --device=a100", "--device = a100: must be cpu, cuda or cuda:n"},
      {"profile --device=cuda:-1 --input=2x3x16x16 " + net, "must be cpu, cuda or cuda:n"},
      {"profile --device=cuda:99 --input=2x3x16x16 " + net, "--device = cuda:99: "},
      {"run --device=cuda", "--device = cuda: "},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(arguments, true);
    EXPECT_EQ(result.code, kExitUsage) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << result.out;
  }
}

TEST(CliScript, HelpSaysWhereACommandTrains) {
  const std::string verify = Stowage("help verify").out;
  EXPECT_THAT(verify, HasSubstr("--device=cpu\n      where to train: cpu, or cuda"));
  EXPECT_THAT(verify, HasSubstr("--script="));
  EXPECT_THAT(Stowage("help fit").out, HasSubstr("--device=a100\n      kind of device that costs"));
  EXPECT_THAT(Stowage("help --man").out, HasSubstr("where to train: cpu, or cuda"));
}

}  // namespace
}  // namespace stowage

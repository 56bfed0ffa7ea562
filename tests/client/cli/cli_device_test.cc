// The commands that train, on a device that is not the CPU: the tests' one, which a part of the command for tests knows as
// "test". On a GPU tests/gpu/run has them do the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "client/cli/exit_code.h"
#include "proto/codec/codec.h"
#include "solvers/model/problem.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result OnDevice(const std::string& arguments) {
  return Shell(std::string(STOWAGE_ON_TEST_DEVICE) + " " + arguments, ::testing::TempDir());
}

// Of networks as chains, as graphs and of the user's own; tests/gpu/run --selftest trains on graphs, too.
const std::string kChain = " --model=resnet18 --image_size=32 --batch=2 --classes=10";
const std::string kScript = " --input=4x3x16x16 --script=" + Data("net.pt");

class CliDeviceTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Networks, CliDeviceTest,
                         ::testing::Values(kChain, kChain + " --graph", kScript));

TEST_P(CliDeviceTest, ProfilesThere) {
  const Result result =
      OnDevice("profile --device=test --repeats=1 --calibrate=false" + GetParam() +
               " --out=device.json >/dev/null 2>&1 && cat device.json");
  ASSERT_EQ(result.code, kExitOk) << result.out;
  const auto message = ProfileFromJson(result.out);
  ASSERT_TRUE(message.ok()) << message.status() << result.out;
  const absl::StatusOr<Profile> profile = FromProto(*message);
  ASSERT_TRUE(profile.ok()) << profile.status();
  // Of the device's allocator, not of the CPU's.
  EXPECT_EQ(profile->device.allocation_granularity, Bytes(512));
}

void ExpectTrainingAsPlain(const std::string& command) {
  const Result result = OnDevice(command +
                                 " --device=test --repeats=1 --steps=2 --budgets=100%,least"
                                 " --format=json 2>/dev/null");
  ASSERT_EQ(result.code, kExitOk) << result.out;
  EXPECT_THAT(result.out, HasSubstr(R"("device": "test")"));
  EXPECT_THAT(result.out, HasSubstr(R"("budget": "least")"));
  EXPECT_THAT(result.out, HasSubstr(R"("faults": [])"));
  EXPECT_THAT(result.out, HasSubstr(R"("random_state": true)"));
  EXPECT_THAT(result.out, Not(HasSubstr(R"("gradients": false)")));
  // Its memory has no limit to the byte.
  EXPECT_THAT(result.out, HasSubstr(R"("fails_and_mends_64_bytes_below": null)"));
}

TEST(CliDevice, RunAndVerifyTrainThereByPlansAsPlain) {
  ExpectTrainingAsPlain("run" + kChain);
  ExpectTrainingAsPlain("verify" + kScript);
}

TEST(CliDevice, WhatIsForTheCpuAloneIsRefused) {
  const std::string network = " --model=resnet18 --image_size=32 --batch=2";
  for (const auto& [flag, why] :
       {std::pair("--link=12", "--link = 12: is simulated on a cpu"),
        std::pair("--arena", "--arena = true: serves steps on the cpu")}) {
    const Result result = OnDevice("run --device=test " + std::string(flag) + network);
    EXPECT_EQ(result.code, kExitUsage) << result.out;
    EXPECT_THAT(result.out, HasSubstr(why));
  }
  EXPECT_THAT(OnDevice("run --device=tester" + network).out, HasSubstr("must be cpu, cuda or"));
}

TEST(CliDevice, TheCommandItselfKnowsNoSuchDevice) {
  const Result result = Stowage("run --device=test --model=resnet18", true);
  EXPECT_EQ(result.code, kExitUsage);
  EXPECT_THAT(result.out, HasSubstr("--device = test: must be cpu, cuda or cuda:n"));
}

}  // namespace
}  // namespace stowage

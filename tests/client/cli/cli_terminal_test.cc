// What a terminal is shown and a pipe is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/exit_code.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const char kClear[] = "\r\033[K";

std::string Content(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Takes a second or so: long enough to tell of.
std::string LongPlan() {
  return "plan --format=csv --solver=non_persistent --slots=600 --budget=30% --profile=" +
         Data("chain_rand_L50_s1.json");
}

// A terminal sees that of the command; it is wiped away, and the data are those that a pipe gets.
void ExpectSeenAndLeftClean(const std::string& command, const std::string& seen) {
  const std::string file = ::testing::TempDir() + "/seen.csv";
  const Result shown = StowageOnTerminal(command + " >" + file);
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, ContainsRegex(seen));
  EXPECT_THAT(shown.out, EndsWith(kClear));
  // A line that were longer than the terminal could not be written over.
  EXPECT_THAT(shown.out, Not(HasSubstr("\n")));
  const Result piped = Stowage(command + " 2>&1");
  EXPECT_EQ(Content(file), piped.out) << "the data is the same, and a pipe gets nothing else";
}

TEST(CliTerminal, SeesThePlanComeAndIsLeftClean) {
  ExpectSeenAndLeftClean(LongPlan(), "planning 30% [0-9]+%: .*[0-9]+ s left");
}

TEST(CliTerminal, SeesWhatAServerTellsOfAPlan) {
  StowagedProcess server;
  const Result shown = StowageOnTerminal(LongPlan() + " --no_local --server=" + server.address() +
                                         " >" + ::testing::TempDir() + "/served.csv");
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, ContainsRegex("planning 30% [0-9]+%: .*[0-9]+ s left"));
}

TEST(CliTerminal, SearchesShowBoundAndGap) {
  const Result shown =
      StowageOnTerminal("plan --budget=40% --format=csv --profile=" + Data("graph_resnet50.json") +
                        " >" + ::testing::TempDir() + "/graph.csv");
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, ContainsRegex("ms, bound [0-9.]+ ms, gap [0-9.]+%, [0-9]+ s left"));
}

std::string LongFrontier() {
  return "frontier --format=csv --profile=" + Data("chain_rand_L50_s1.json");
}

TEST(CliTerminal, SeesAFrontierComeAndIsLeftClean) {
  ExpectSeenAndLeftClean(LongFrontier(), "planning all budgets 100%: [0-9]+ s gone, [0-9]+ s left");
}

// Nobody watches a server make one: the time is what is known.
TEST(CliTerminal, SeesHowLongAServerTakesForAFrontier) {
  StowagedProcess server;
  const Result shown =
      StowageOnTerminal(LongFrontier() + " --no_local --server=" + server.address() + " >" +
                        ::testing::TempDir() + "/f.csv");
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, ContainsRegex("planning all budgets: [0-9]+ s gone, [0-9]+ s left"));
  EXPECT_THAT(shown.out, Not(HasSubstr("%")));
  EXPECT_THAT(shown.out, EndsWith(kClear));
}

// What is said meanwhile stands on a line of its own.
TEST(CliTerminal, NoticesDoNotRunIntoProgress) {
  const Result shown = StowageOnTerminal(LongFrontier() + " --server=127.0.0.1:1 >" +
                                         ::testing::TempDir() + "/f.csv");
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, HasSubstr(std::string(kClear) + "stowage: "));
}

TEST(CliTerminal, SeesHowLongFittingTakes) {
  const Result shown = StowageOnTerminal(
      "fit --model=resnet18 --image_size=64 --classes=10 --device=v100 --catalogue=none "
      "--memory=400MiB --reserved=0 --slots=200 --max_batch=16 --format=csv >" +
      ::testing::TempDir() + "/fit.csv");
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, ContainsRegex("fitting resnet18: [0-9]+ s gone, [0-9]+ s left"));
  EXPECT_THAT(shown.out, EndsWith(kClear));
}

TEST(CliTerminal, ExplainingSolvesOnce) {
  const std::string explain = "explain --budget=60% --format=csv --profile=";
  const std::string to = " >" + ::testing::TempDir() + "/explained.csv";
  const Result shown = StowageOnTerminal(explain + Data("chain_rand_L50_s1.json") + to);
  EXPECT_EQ(shown.code, kExitOk) << shown.out;
  EXPECT_THAT(shown.out, HasSubstr("planning all budgets 100%"));
  EXPECT_THAT(shown.out, Not(HasSubstr("planning 60%")));
}

TEST(CliTerminal, SeesACurve) {
  const std::string frontier = "frontier --profile=" + Data("chain_resnet50.json");
  const Result shown = StowageOnTerminal(frontier);
  EXPECT_EQ(shown.code, kExitOk);
  EXPECT_THAT(shown.out, HasSubstr("time over plain training, %\r\n"));
  EXPECT_THAT(shown.out, HasSubstr("|*"));
  EXPECT_THAT(Stowage(frontier).out, Not(HasSubstr("|*")));
}

}  // namespace
}  // namespace stowage

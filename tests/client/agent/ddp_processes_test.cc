// Ranks that exchange gradients by c10d's Reducer over gloo, each a process of its own: steps by plans are plain ones, bit for
// bit, and send the same buckets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/process/child_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  int code = -1;
  std::string said;
};

struct Ranks {
  std::string network = "norm_mlp";
  std::vector<std::string> budgets;  // of each rank
  int steps = 7;
  std::vector<std::string> last_does;  // of the last rank
};

std::vector<Ended> Run(const Ranks& job) {
  const TemporaryFolder place;
  const size_t ranks = job.budgets.size();
  std::vector<std::unique_ptr<testing::ChildProcess>> started;
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> command = {
        DDP_PROCESS, place.path(),      std::to_string(rank),     std::to_string(ranks),
        job.network, job.budgets[rank], std::to_string(job.steps)};
    if (rank + 1 == ranks) {
      command.insert(command.end(), job.last_does.begin(), job.last_does.end());
    }
    started.push_back(std::make_unique<testing::ChildProcess>(command));
  }
  std::vector<Ended> ended;
  for (const auto& rank : started) {
    const int code = rank->Wait(std::chrono::seconds(200));
    ended.push_back({code, code == -1 ? "it hangs" : rank->ReadUntil("nothing says this")});
  }
  return ended;
}

// The plan of a step, as rank 0 says it.
std::string PlanOf(const std::string& said, int step) {
  const std::string begin = "step " + std::to_string(step) + ": plan ";
  const size_t at = said.find(begin);
  if (at == std::string::npos) return "";
  return said.substr(at + begin.size(), said.find(" in buckets", at) - at - begin.size());
}

void ExpectAlike(const std::vector<Ended>& ranks) {
  for (const Ended& rank : ranks) {
    EXPECT_EQ(rank.code, 0) << rank.said;
    EXPECT_EQ(rank.said, ranks[0].said);
  }
}

class DdpProcessesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DdpProcessesTest, GradientsAndBucketsAreThoseWithoutPlans) {
  for (const char* const budget : {"100%", "least"}) {
    const std::vector<Ended> ranks = Run({GetParam(), {budget, budget}});
    ExpectAlike(ranks);
    EXPECT_NE(PlanOf(ranks[0].said, 6), "");
    // More than one in a step.
    EXPECT_THAT(ranks[0].said, HasSubstr(" 1:")) << ranks[0].said;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, DdpProcessesTest,
                         ::testing::Values("norm_mlp", "norm_cnn", "tied", "early_ends"),
                         [](const auto& network) { return network.param; });

TEST(DdpProcesses, RanksOfDifferentBudgets) {
  const std::vector<Ended> ranks = Run({"norm_mlp", {"100%", "70%", "90%", "80%"}});
  ExpectAlike(ranks);
}

// It ends its step with the rest of the gradients, in the same buckets; the next plan of all takes less.
TEST(DdpProcesses, MemoryRunsOutOnOneRank) {
  for (const int step : {1, 2, 4}) {
    SCOPED_TRACE(step);
    const std::vector<Ended> ranks =
        Run({"norm_mlp", {"100%", "100%"}, 7, {"lacks", std::to_string(step)}});
    ExpectAlike(ranks);
    const std::string& said = ranks[0].said;
    EXPECT_EQ(PlanOf(said, 0), PlanOf(said, step)) << said;
    EXPECT_NE(PlanOf(said, step), PlanOf(said, step + 1)) << said;
    EXPECT_EQ(PlanOf(said, step + 1), PlanOf(said, 6)) << said;
  }
}

TEST(DdpProcesses, ARankThatIsKilledEndsAll) {
  const std::vector<Ended> ranks = Run({"norm_mlp", {"100%", "100%", "100%"}, 7, {"dies", "3"}});
  EXPECT_EQ(ranks[2].code, 128 + SIGKILL);
  for (const size_t rank : {0, 1}) {
    EXPECT_EQ(ranks[rank].code, 1) << ranks[rank].said;
    EXPECT_THAT(ranks[rank].said, HasSubstr("step 2: plan"));
    EXPECT_THAT(ranks[rank].said, Not(HasSubstr("step 3: plan")));
  }
}

}  // namespace
}  // namespace stowage

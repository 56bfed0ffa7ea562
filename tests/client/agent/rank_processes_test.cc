// Ranks of a job that plan as one, each a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/process/child_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 3;

struct Ended {
  int code = -1;
  std::string said;
};

// By what the ranks agree over.
class RankProcessesTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Rank 1 has less memory, rank 2 finds its steps too slow.
  std::vector<Ended> Run(bool one_dies) {
    const TemporaryFolder place;
    std::vector<std::unique_ptr<testing::ChildProcess>> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      std::vector<std::string> command = {RANK_PROCESS,
                                          GetParam(),
                                          place.path(),
                                          std::to_string(rank),
                                          std::to_string(kRanks),
                                          rank == 1 ? "0.7" : "0.9",
                                          "8"};
      if (rank == 2) command.push_back("drift");
      if (rank == 2 && one_dies) command.push_back("dies");
      ranks.push_back(std::make_unique<testing::ChildProcess>(command));
    }
    std::vector<Ended> ended;
    for (const auto& rank : ranks) {
      const int code = rank->Wait(std::chrono::seconds(100));
      ended.push_back({code, code == -1 ? "it hangs" : rank->ReadUntil("nothing says this")});
    }
    return ended;
  }
};

TEST_P(RankProcessesTest, AllGoByTheSamePlanAtEveryStep) {
  const std::vector<Ended> ranks = Run(/*one_dies=*/false);
  for (const Ended& rank : ranks) {
    EXPECT_EQ(rank.code, 0) << rank.said;
    EXPECT_EQ(rank.said, ranks[0].said);
  }
  // Ranks agree before every third step, and the drift of rank 2 is known after its third.
  EXPECT_THAT(ranks[0].said, HasSubstr("step 4 of plan 1: "));
  EXPECT_THAT(ranks[0].said, HasSubstr("step 5 of plan 2: "));
  EXPECT_THAT(ranks[0].said, HasSubstr("step 7 of plan 2: "));
}

TEST_P(RankProcessesTest, ARankThatIsKilledLeavesNobodyWaitingForever) {
  const std::vector<Ended> ranks = Run(/*one_dies=*/true);
  EXPECT_EQ(ranks[2].code, 128 + SIGKILL);
  for (int rank = 0; rank < 2; ++rank) {
    const Ended& left = ranks[static_cast<size_t>(rank)];
    EXPECT_EQ(left.code, 1) << left.said;
    EXPECT_THAT(left.said,
                AnyOf(HasSubstr("DEADLINE_EXCEEDED: rank 2 of 3"), HasSubstr("UNAVAILABLE")));
    // Up to where all have to agree again.
    EXPECT_THAT(left.said, HasSubstr("step 4 of plan 1"));
    EXPECT_THAT(left.said, Not(HasSubstr("step 5")));
  }
}

std::vector<std::string> Ways() {
#ifdef STOWAGE_TEST_C10D
  return {"folder", "file", "tcp"};
#else
  return {"folder"};
#endif
}

INSTANTIATE_TEST_SUITE_P(Ways, RankProcessesTest, ::testing::ValuesIn(Ways()),
                         [](const auto& way) { return way.param; });

}  // namespace
}  // namespace stowage

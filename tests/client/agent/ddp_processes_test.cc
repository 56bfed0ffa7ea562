// Ranks that exchange gradients by c10d's Reducer over gloo, each a process of its own: steps by plans are plain ones, bit for
// bit, within the budget, and send the same buckets. ddp_process holds each step to that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tests/client/agent/ddp_job.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

// All ranks went by the same plans, which recompute; one for each budget.
void ExpectAlike(const std::vector<RankOfJob>& ranks, size_t steps, size_t plans) {
  std::set<std::string> found;
  for (const RankOfJob& rank : ranks) {
    ASSERT_EQ(rank.ended, "ended") << rank.all;
    EXPECT_EQ(rank.steps, ranks[0].steps);
    ASSERT_EQ(rank.steps.size(), steps);
    EXPECT_THAT(rank.counts, HasSubstr("0 finished"));
    EXPECT_EQ(rank.counts.find(" 0 recomputed"), std::string::npos) << rank.all;
  }
  for (size_t step = 0; step < steps; ++step) {
    found.insert(ranks[0].PlanOf(step));
    EXPECT_THAT(ranks[0].steps[step], HasSubstr(" 1:"));  // more than one bucket
  }
  EXPECT_EQ(found.size(), plans) << ranks[0].all;
}

TEST(DdpProcesses, GradientsAndBucketsAreThoseWithoutPlans) {
  const auto jobs =
      DdpJobs(2, {"decoder 1,0.7,least 20 60", "norm_mlp 1,0.8,least 9 60", "tied 1,0.8,least 9 60",
                  "early_ends 1,0.8,least 9 60", "transformer 1,0.8,least 9 60"})
          .Wait();
  for (size_t job = 0; job < jobs.size(); ++job) {
    SCOPED_TRACE(job);
    ExpectAlike(jobs[job], job == 0 ? 20 : 9, 3);
  }
}

TEST(DdpProcesses, FourRanksOfDifferentBudgets) {
  const auto jobs = DdpJobs(4, {"norm_mlp 0.9,0.8 8 60"}).Wait();
  ExpectAlike(jobs[0], 8, 2);
}

TEST(DdpProcesses, ResNet50) {
  // Most of its memory is workspace, of which processors without AVX-512 take more: little but the
  // least is a budget everywhere.
  const auto jobs = DdpJobs(2, {"resnet50 1,least 4 60"}).Wait();
  ExpectAlike(jobs[0], 4, 2);
}

}  // namespace
}  // namespace stowage

// What happens to one of several ranks that exchange gradients by c10d's Reducer: either all go on, by the same plan and with the
// gradients of plain training, or all end. Each fault comes three times, on another rank, in another step and stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/agent/ddp_job.h"

namespace stowage {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kSteps = 6;

// Where a fault comes, by seed.
struct Place {
  explicit Place(int seed) : rank(seed % 2), step(1 + seed), stage(5 * seed % 6) {}
  int rank;
  int step;
  int stage;
};

// Starting, connecting and measuring are within it, too.
constexpr int kStopsPatienceS = 25;

// As gloo says it, of a connection that it reads or one that it writes.
auto IsOfAPeerThatIsGone() { return AnyOf(HasSubstr("by peer"), HasSubstr("Broken pipe")); }

std::vector<std::string> JobsOf(const std::string& network, const std::string& fault) {
  std::vector<std::string> jobs;
  for (const int seed : {0, 1, 2}) {
    const Place place(seed);
    const int patience_s = fault == "stops" ? kStopsPatienceS : 60;
    jobs.push_back(absl::StrCat(network, " ", kSteps, " ", patience_s, " ", fault, " ", place.rank,
                                " ", place.step, " ", place.stage));
  }
  return jobs;
}

// It ends its step with the rest of the gradients, in the same buckets; the next plan of all takes less.
TEST(DdpFaults, MemoryRunsOutOnOneRank) {
  std::vector<std::string> all;
  for (const auto& jobs : {JobsOf("faults 1", "forward"), JobsOf("faults 0.7", "recompute"),
                           JobsOf("faults 0.7", "backward"), JobsOf("faults 1", "lacks")}) {
    all.insert(all.end(), jobs.begin(), jobs.end());
  }
  const auto found = DdpJobs(2, all).Wait();
  for (size_t job = 0; job < found.size(); ++job) {
    SCOPED_TRACE(all[job]);
    const Place place(static_cast<int>(job % 3));
    const auto step = static_cast<size_t>(place.step);
    for (const RankOfJob& rank : found[job]) {
      ASSERT_EQ(rank.ended, "ended") << rank.all;
      EXPECT_EQ(rank.steps, found[job][0].steps);
      EXPECT_EQ(rank.PlanOf(0), rank.PlanOf(step));
      EXPECT_NE(rank.PlanOf(step), rank.PlanOf(step + 1));
      EXPECT_EQ(rank.PlanOf(step + 1), rank.PlanOf(kSteps - 1));
    }
    for (const int rank : {0, 1}) {
      EXPECT_THAT(found[job][static_cast<size_t>(rank)].counts,
                  HasSubstr(rank == place.rank ? "1 finished" : "0 finished"));
    }
  }
}

TEST(DdpFaults, WhatIsNoReasonToEnd) {
  std::vector<std::string> all;
  for (const auto& jobs : {JobsOf("faults 0.7", "slow"), JobsOf("faults 0.7", "smaller"),
                           JobsOf("faults 0.7", "server"), JobsOf("faults 1", "larger")}) {
    all.insert(all.end(), jobs.begin(), jobs.end());
  }
  const auto found = DdpJobs(2, all).Wait();
  for (size_t job = 0; job < found.size(); ++job) {
    SCOPED_TRACE(all[job]);
    for (const RankOfJob& rank : found[job]) {
      ASSERT_EQ(rank.ended, "ended") << rank.all;
      EXPECT_EQ(rank.PlanOf(0), found[job][0].PlanOf(0));
      EXPECT_EQ(rank.PlanOf(0), rank.PlanOf(kSteps - 1));
      EXPECT_EQ(rank.steps.size(), static_cast<size_t>(kSteps));
    }
    const Place place(static_cast<int>(job % 3));
    const auto step = static_cast<size_t>(place.step);
    const bool larger = job >= 9;  // by a plan of that rank alone
    const RankOfJob& other = found[job][static_cast<size_t>(1 - place.rank)];
    EXPECT_EQ(other.PlanOf(0), other.PlanOf(step)) << other.all;
    const RankOfJob& rank = found[job][static_cast<size_t>(place.rank)];
    EXPECT_EQ(!rank.PlanOf(step).empty() && rank.PlanOf(0) != rank.PlanOf(step), larger)
        << rank.all;
  }
}

// Its error, and of the others that it is gone.
TEST(DdpFaults, ABatchThatNothingFitsEndsAll) {
  const auto found = DdpJobs(2, JobsOf("faults least", "larger")).Wait();
  for (size_t job = 0; job < found.size(); ++job) {
    const Place place(static_cast<int>(job));
    for (const int rank : {0, 1}) {
      const RankOfJob& of = found[job][static_cast<size_t>(rank)];
      EXPECT_EQ(of.ended, "failed") << of.all;
      EXPECT_EQ(of.steps.size(), static_cast<size_t>(place.step));
      if (rank == place.rank) {
        EXPECT_THAT(of.error, HasSubstr("no plan within"));
      } else {
        EXPECT_THAT(of.error, IsOfAPeerThatIsGone());
      }
    }
  }
}

TEST(DdpFaults, ARankThatIsKilledEndsAll) {
  std::vector<std::string> all = JobsOf("faults 0.7", "kill");
  for (const std::string& job : JobsOf("faults 0.7", "term")) all.push_back(job);
  const auto found = DdpJobs(2, all).Wait();
  for (size_t job = 0; job < found.size(); ++job) {
    SCOPED_TRACE(all[job]);
    const Place place(static_cast<int>(job % 3));
    for (const int rank : {0, 1}) {
      const RankOfJob& of = found[job][static_cast<size_t>(rank)];
      EXPECT_EQ(of.steps.size(), static_cast<size_t>(place.step)) << of.all;
      if (rank == place.rank) {
        EXPECT_EQ(of.ended, absl::StrCat("signal ", job < 3 ? SIGKILL : SIGTERM));
      } else {
        EXPECT_EQ(of.ended, "failed");
        EXPECT_THAT(of.error, AnyOf(HasSubstr("another rank is gone"), IsOfAPeerThatIsGone()));
      }
    }
  }
}

// All three at once: they wait.
TEST(DdpFaults, ARankThatStandsStillIsGivenUp) {
  std::vector<std::unique_ptr<DdpJobs>> started;
  for (const std::string& job : JobsOf("faults 0.7", "stops")) {
    started.push_back(std::make_unique<DdpJobs>(2, std::vector<std::string>{job}));
  }
  for (size_t job = 0; job < started.size(); ++job) {
    const Place place(static_cast<int>(job));
    const auto found = started[job]->Wait();
    const RankOfJob& other = found[0][static_cast<size_t>(1 - place.rank)];
    EXPECT_EQ(other.ended, "failed") << other.all;
    EXPECT_THAT(other.error, HasSubstr(absl::StrCat("imed out waiting ", kStopsPatienceS, "000ms")))
        << other.all;
    EXPECT_EQ(found[0][static_cast<size_t>(place.rank)].ended, "failed");
  }
}

}  // namespace
}  // namespace stowage

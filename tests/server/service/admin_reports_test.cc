// What reports change, and what the audit log has of it and of people's actions.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "server/entries/planning_error.h"
#include "server/service/admin.h"
#include "tests/server/service/admin_fixture.h"

namespace stowage::testing {
namespace {

TEST_F(PlanAdminTest, ReportsAreKeptAndCounted) {
  const PlanKey key = Keep(Of("a"));
  ExecutionReport report = ReportOn(key, "job");
  EXPECT_EQ(*admin_.Report(From("a"), report), ReportOutcome::kAccepted);
  EXPECT_EQ(*admin_.Report(From("a"), report), ReportOutcome::kRepeated);
  EXPECT_EQ(At(key)->reports.size(), 1u);
  EXPECT_EQ(metrics_.measured, 2);
  EXPECT_EQ(metrics_.executions, 2);
  EXPECT_EQ(metrics_.budget_violations, 0);
  // A later report of the job is about the earlier one's steps, too.
  EXPECT_EQ(metrics_.executed_steps, 10);
  for (const int64_t steps : {25, 5, 5}) {
    report.steps = steps;
    EXPECT_EQ(*admin_.Report(From("a"), report), ReportOutcome::kRepeated);
  }
  EXPECT_EQ(metrics_.executed_steps, 25);
  EXPECT_EQ(metrics_.reserved, 0);
  report.reserved_peak = report.peak;
  EXPECT_TRUE(admin_.Report(From("a"), report).ok());
  EXPECT_EQ(metrics_.reserved, 1);
  report.peak = report.budget + Bytes(1);
  EXPECT_TRUE(admin_.Report(From("a"), report).ok());
  EXPECT_EQ(metrics_.budget_violations, 1);

  const int64_t generation = At(key)->generation;
  report.steps = -1;
  EXPECT_EQ(*admin_.Report(From("a"), report), ReportOutcome::kAbsurd);
  report.revision = 9;
  EXPECT_TRUE(absl::IsNotFound(admin_.Report(From("a"), report).status()));
  report.key = PlanKey();
  EXPECT_TRUE(absl::IsNotFound(admin_.Report(From("a"), report).status()));
  EXPECT_EQ(At(key)->generation, generation);
  EXPECT_EQ(metrics_.reports[static_cast<size_t>(ReportOutcome::kUnknownPlan)], 2);
  EXPECT_EQ(metrics_.reports[static_cast<size_t>(ReportOutcome::kAbsurd)], 1);
}

// More jobs of an identity, and of an entry, than it keeps reports of.
TEST_F(PlanAdminTest, StepsCountOnceHoweverManyJobsReport) {
  int64_t executed = 0;
  for (const std::string identity : {"a token", ""}) {
    const PlanKey key = Keep(Of("a", identity.empty() ? 7 : 6));
    const int jobs = identity.empty() ? 40 : 4;
    for (int report_number = 1; report_number <= 3; ++report_number) {
      for (int job = 0; job < jobs; ++job) {
        ExecutionReport report = ReportOn(key, "job " + std::to_string(job));
        report.identity = identity;
        report.steps = 10 * report_number;
        EXPECT_TRUE(admin_.Report(From("a"), report).ok());
      }
    }
    executed += jobs * 30;
    EXPECT_EQ(metrics_.executed_steps, executed) << identity;
  }
}

TEST(CountedSteps, ForgetsTheOldestAndCountsNothingTwiceUntilThen) {
  CountedSteps counted(2);
  const auto count = [&counted](uint64_t job, int64_t steps) {
    return counted.Count({PlanKey(), Bytes(1), 1, job}, steps, steps);
  };
  EXPECT_EQ(count(1, 10), 10);
  EXPECT_EQ(count(1, 25), 15);
  EXPECT_EQ(count(1, 5), 0);
  EXPECT_EQ(count(1, 25), 0);
  EXPECT_EQ(count(2, 10), 10);
  EXPECT_EQ(count(3, 10), 10);
  EXPECT_EQ(count(1, 30), 5) << "of those before the last two";
  for (uint64_t job = 4; job < 10; ++job) EXPECT_EQ(count(job, 1), 1);
  EXPECT_EQ(count(2, 10), 10) << "forgotten";
}

// What servers know together, in this process.
class SharedSteps final : public ReportedSteps {
 public:
  std::optional<int64_t> Raise(const ReportedPlan& plan, int64_t steps) override {
    if (away) return std::nullopt;
    int64_t& most = steps_[{plan.key, plan.budget, plan.revision, plan.job}];
    return std::exchange(most, std::max(most, steps));
  }

  bool away = false;

 private:
  std::map<std::tuple<PlanKey, Bytes, int64_t, uint64_t>, int64_t> steps_;
};

// The entry keeps the reports of few jobs, and each server has seen but a half of each job's.
TEST_F(PlanAdminTest, StepsCountOnceWhicheverServersAJobReportsTo) {
  SharedSteps shared;
  PlanAdmin one(&store_, &metrics_, nullptr, &shared), two(&store_, &metrics_, nullptr, &shared);
  const PlanKey key = Keep(Of("a"));
  constexpr int kJobs = 40;
  for (int report_number = 1; report_number <= 4; ++report_number) {
    for (int job = 0; job < kJobs; ++job) {
      ExecutionReport report = ReportOn(key, "job " + std::to_string(job));
      report.steps = 10 * report_number;
      EXPECT_TRUE((report_number % 2 == 0 ? one : two).Report(From("a"), report).ok());
    }
  }
  EXPECT_EQ(metrics_.executed_steps, kJobs * 40);
  // Where they cannot ask each other, each goes by what it has seen itself.
  shared.away = true;
  ExecutionReport report = ReportOn(key, "job 0");
  report.steps = 50;
  EXPECT_TRUE(one.Report(From("a"), report).ok());
  EXPECT_EQ(metrics_.executed_steps, kJobs * 40 + 10);
}

TEST_F(PlanAdminTest, ExplainsThePlanThatAnswers) {
  const PlanKey key = Keep(Of("a"));
  EXPECT_TRUE(admin_.Report(From("a"), ReportOn(key, "job")).ok());
  const Plan& plan = *At(key)->plans[0].plan;
  const auto text = admin_.Explain(From("a"), key, kJustShort);
  ASSERT_TRUE(text.ok()) << text.status();
  for (const std::string& part :
       {ToString(plan.prediction.makespan), ToString(plan.prediction.peak), plan.provenance.solver,
        ToString(At(key)->store_all.peak), std::string("Revision 1 (serves)"),
        std::string("1 jobs measured 100.0%")}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << " in\n" << *text;
  }
  EXPECT_TRUE(absl::IsNotFound(admin_.Explain(From("a"), key, Bytes(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(admin_.Explain(From("a"), key, LeastBudget{}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(admin_.Explain(From("a"), key, ShareOfStoreAll{-1}).status()));
}

TEST_F(PlanAdminTest, ReportsThatRetireAPlanAreAudited) {
  AuditOptions options;
  options.path = ::testing::TempDir() + "stowage_retire_audit";
  const PlanKey key = Keep(Of("a"));
  {
    const auto log = *AuditLog::Open(options);
    PlanAdmin admin(&store_, &metrics_, log.get());
    for (const std::string job : {"job-1", "job-2", "job-3", "job-4"}) {
      ExecutionReport report = ReportOn(key, job);
      report.peak = report.budget + Bytes(1);
      EXPECT_TRUE(admin.Report(From("a"), report).ok());
    }
  }
  EXPECT_EQ(At(key)->plans[0].state, RevisionState::kRetired);
  std::vector<std::string> lines;
  for (const std::string end : {"", ".changes"}) {
    std::ifstream file(options.path + end);
    for (std::string line; std::getline(file, line);) {
      if (line.find("\"retire\"") != std::string::npos) lines.push_back(line);
    }
    std::remove((options.path + end).c_str());
  }
  ASSERT_EQ(lines.size(), 2u);  // once, in both files
  EXPECT_NE(lines[0].find("\"revision\":1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(key.digest.ToHex()), std::string::npos) << lines[0];
}

TEST_F(PlanAdminTest, TheAuditLogHasItAll) {
  AuditOptions options;
  options.path = ::testing::TempDir() + "stowage_admin_audit";
  std::remove(options.path.c_str());
  const PlanKey key = Keep(Of("a"));
  {
    const auto log = *AuditLog::Open(options);
    PlanAdmin admin(&store_, &metrics_, log.get());
    EXPECT_TRUE(admin.Pin(From("a"), key, {kJustShort, 1}, PinAction::kPin).ok());
    EXPECT_FALSE(admin.Pin(From("b"), key, {kJustShort, 1}, PinAction::kRollBack).ok());
    EXPECT_TRUE(admin.Report(From("a"), ReportOn(key, "job-7")).ok());
    EXPECT_TRUE(*admin.Delete(From("a"), key));
  }
  std::ifstream file(options.path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::remove(options.path.c_str());
  ASSERT_EQ(lines.size(), 4u);
  const std::vector<std::vector<std::string>> parts = {
      {"\"pin\"", "\"request-1\"", "\"somebody\"", key.digest.ToHex(), "\"outcome\":\"ok\""},
      {"\"roll_back\"", "\"tenant\":\"b\"", "NOT_FOUND"},
      {"\"report\"", "\"job-7\"", "\"outcome\":\"accepted\""},
      {"\"delete\"", "\"outcome\":\"ok\""}};
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const std::string& part : parts[i]) {
      EXPECT_NE(lines[i].find(part), std::string::npos) << part << " in " << lines[i];
    }
  }
}

}  // namespace
}  // namespace stowage::testing

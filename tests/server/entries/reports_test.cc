#include "server/entries/reports.h"

#include <gtest/gtest.h>

#include <random>

#include "server/entries/entry_learning.h"
#include "server/entries/plan_lookup.h"
#include "server/entries/reference_costs.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

PlanEntry Entry() { return EntryFor(ProblemOf(ProfileShape()), kJustShort, 1); }

// What a job would report whose steps and peak are as predicted, times the ratios.
ExecutionReport ReportOn(const Plan& plan, const std::string& job, double time = 1,
                         double peak = 1) {
  ExecutionReport report;
  report.plan_digest = ScheduleDigest(plan.schedule);
  report.revision = plan.revision;
  report.budget = plan.budget;
  report.steps = 100;
  report.step_time = Nanos(
      static_cast<int64_t>(time * static_cast<double>(plan.prediction.makespan.value()) + 0.5));
  report.peak =
      Bytes(static_cast<int64_t>(peak * static_cast<double>(plan.prediction.peak.value()) + 0.5));
  report.job = job;
  return report;
}

ReportOutcome Add(const ExecutionReport& report, PlanEntry* entry) {
  ReportJudgement judgement = AddReport(*entry, report);
  EXPECT_EQ(judgement.entry.has_value(), judgement.outcome == ReportOutcome::kAccepted ||
                                             judgement.outcome == ReportOutcome::kRepeated);
  if (judgement.entry) *entry = *std::move(judgement.entry);
  return judgement.outcome;
}

TEST(Reports, AreOfAPlanOfTheEntry) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  ExecutionReport other_revision = ReportOn(plan, "a"), other_plan = other_revision,
                  tight = other_revision;
  other_revision.revision = 2;
  other_plan.plan_digest = Digest();
  tight.budget = plan.prediction.peak - Bytes(1);
  for (const ExecutionReport& report : {other_revision, other_plan, tight}) {
    EXPECT_EQ(Add(report, &entry), ReportOutcome::kUnknownPlan);
  }
  // Handed out for less than it was solved for.
  ExecutionReport smaller = ReportOn(plan, "a");
  ASSERT_LT(plan.prediction.peak, plan.budget);
  smaller.budget = plan.prediction.peak;
  EXPECT_EQ(Add(smaller, &entry), ReportOutcome::kAccepted);
  EXPECT_EQ(entry.reports[0].budget, plan.budget);
}

TEST(Reports, AbsurdOnesSayNothing) {
  PlanEntry entry = Entry();
  const Plan& plan = *entry.plans[0].plan;
  ExecutionReport no_steps = ReportOn(plan, "a"), negative = no_steps;
  no_steps.steps = 0;
  negative.step_time = Nanos(-1);
  for (const ExecutionReport& report :
       {ReportOn(plan, "a", 21), ReportOn(plan, "a", 0.04), ReportOn(plan, "a", 1, 21),
        ReportOn(plan, "a", 1, 0.04), no_steps, negative}) {
    EXPECT_EQ(Add(report, &entry), ReportOutcome::kAbsurd);
  }
  EXPECT_TRUE(entry.reports.empty());
}

TEST(Reports, WhatTheLatestStepReservedAndCopiedIsSaidOrNot) {
  PlanEntry entry = Entry();
  Plan plan = *entry.plans[0].plan;
  plan.prediction.offloaded = plan.prediction.prefetched = Bytes(100);
  entry.plans[0].plan = std::make_shared<Plan>(plan);
  ExecutionReport report = ReportOn(plan, "a");
  EXPECT_EQ(AddReport(entry, report).reserved_ratio, 0);
  EXPECT_EQ(AddReport(entry, report).copied_bytes, 0);
  report.reserved_peak = report.peak + report.peak;
  report.offloaded = Bytes(100);
  report.prefetched = Bytes(50);
  EXPECT_EQ(AddReport(entry, report).reserved_ratio, 2);
  EXPECT_EQ(AddReport(entry, report).copied_bytes, 150);
  report.reserved_peak = Bytes(report.peak.value() * 21);
  report.offloaded = Bytes(INT64_MAX);
  EXPECT_EQ(AddReport(entry, report).outcome, ReportOutcome::kAccepted);
  EXPECT_EQ(AddReport(entry, report).reserved_ratio, 0);
  EXPECT_EQ(AddReport(entry, report).copied_bytes, 0);
}

TEST(Reports, AJobsLaterReportReplacesItsEarlierOne) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  EXPECT_EQ(Add(ReportOn(plan, "a", 1.5), &entry), ReportOutcome::kAccepted);
  EXPECT_EQ(Add(ReportOn(plan, "b"), &entry), ReportOutcome::kAccepted);
  EXPECT_EQ(Add(ReportOn(plan, "a", 1.2), &entry), ReportOutcome::kRepeated);
  ASSERT_EQ(entry.reports.size(), 2u);
  EXPECT_NEAR(entry.reports[1].time_ratio, 1.2, 0.01);
}

TEST(Reports, FarFromAQuorumOfOthersIsAnOutlier) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  for (const char* job : {"a", "b", "c"}) Add(ReportOn(plan, job, 1.1), &entry);
  EXPECT_EQ(Add(ReportOn(plan, "d", 1.5), &entry), ReportOutcome::kOutlier);
  EXPECT_EQ(Add(ReportOn(plan, "d", 1.1, 1.5), &entry), ReportOutcome::kOutlier);
  EXPECT_EQ(Add(ReportOn(plan, "d", 1.12), &entry), ReportOutcome::kAccepted);
  EXPECT_EQ(entry.reports.size(), 4u);
}

TEST(Reports, AreBounded) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  for (int job = 0; job < 40; ++job) Add(ReportOn(plan, std::to_string(job)), &entry);
  EXPECT_EQ(entry.reports.size(), kMostReports);
  EXPECT_EQ(entry.reports.back().job, JobHash("39"));
}

TEST(Reports, AQuorumOfSlowStepsIsDrift) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  Add(ReportOn(plan, "a", 1.3), &entry);
  Add(ReportOn(plan, "b", 1.3), &entry);
  EXPECT_FALSE(ProfileWanted(entry));
  Add(ReportOn(plan, "c", 1.3), &entry);
  EXPECT_TRUE(ProfileWanted(entry));
  const Measurements measured = MeasurementsOf(entry, plan);
  EXPECT_EQ(measured.jobs, 3);
  EXPECT_NEAR(measured.time_ratio, 1.3, 0.01);
  EXPECT_EQ(measured.over_budget, 0);
  EXPECT_EQ(PlansServing(entry, kJustShort).size(), 1u);
  entry.frozen = true;
  EXPECT_FALSE(ProfileWanted(entry));
}

TEST(Reports, ATenthIsNoDrift) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  for (const char* job : {"a", "b", "c", "d"}) Add(ReportOn(plan, job, 1.1), &entry);
  EXPECT_FALSE(ProfileWanted(entry));
}

TEST(Reports, PeaksOverTheBudgetRetireThePlan) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  const PlanEntry pinned = [&entry] {
    PlanEntry copy = entry;
    copy.plans[0].pinned = true;
    return copy;
  }();
  Add(ReportOn(plan, "a", 1, 1.5), &entry);
  EXPECT_FALSE(ProfileWanted(entry));
  Add(ReportOn(plan, "b", 1, 1.5), &entry);
  EXPECT_TRUE(ProfileWanted(entry));
  EXPECT_EQ(PlansServing(entry, kJustShort).size(), 1u);
  EXPECT_TRUE(AddReport(entry, ReportOn(plan, "c", 1, 1.5)).over_budget);
  Add(ReportOn(plan, "c", 1, 1.5), &entry);
  EXPECT_TRUE(PlansServing(entry, kJustShort).empty());

  PlanEntry held = pinned;
  for (const char* job : {"a", "b", "c"}) Add(ReportOn(plan, job, 1, 1.5), &held);
  EXPECT_EQ(PlansServing(held, kJustShort).size(), 1u);
}

// What the allocator adds no profile sees: who profiles again measures what it measured before.
TEST(Reports, AProfileIsWantedOnceHoweverOftenThePlanAnswers) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  const auto same = ProblemOf(ProfileShape());
  entry = *Learn(entry, *same, 2);
  for (const char* job : {"a", "b"}) Add(ReportOn(plan, job, 1, 1.5), &entry);
  ASSERT_TRUE(ProfileWanted(entry));
  int heard = 0;
  for (int hit = 0; hit < 10; ++hit) {
    if (auto learned = Learn(entry, *same, 2)) {
      entry = *std::move(learned);
      ++heard;
    }
  }
  EXPECT_EQ(heard, 1);
  EXPECT_TRUE(MeasurementsOf(entry, plan).drifted);
  EXPECT_FALSE(ProfileWanted(entry));
}

// Names are what jobs call themselves; who calls is what the server knows.
TEST(Reports, OneIdentityWithThreeNamesIsNoQuorumBesideOthers) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  const auto from = [&plan](const char* identity, const char* job, double peak) {
    ExecutionReport report = ReportOn(plan, job, 1, peak);
    report.identity = identity;
    return report;
  };
  Add(from("b", "job", 1), &entry);
  for (const char* name : {"1", "2", "3", "4"}) {
    EXPECT_EQ(Add(from("a", name, 1.5), &entry), ReportOutcome::kAccepted);
    EXPECT_EQ(PlansServing(entry, kJustShort).size(), 1u);
    EXPECT_FALSE(entry.profile_wanted) << "over the budget, but of one identity";
  }
  EXPECT_EQ(entry.reports.size(), kQuorum);
  EXPECT_EQ(entry.reports.back().job, JobHash("4", "a"));
  Add(from("c", "job", 1.5), &entry);
  EXPECT_TRUE(PlansServing(entry, kJustShort).empty());
  // What was heard before another one was, is bounded as well.
  PlanEntry alone = Entry();
  for (const char* name : {"1", "2", "3"}) Add(from("a", name, 1), &alone);
  EXPECT_EQ(alone.reports.size(), kQuorum);
  Add(from("b", "job", 1), &alone);
  EXPECT_EQ(alone.reports.size(), kQuorum);
  EXPECT_EQ(alone.reports.front().job, JobHash("2", "a"));
}

TEST(Reports, OneIdentitysJobsAreNoMoreThanAQuorum) {
  PlanEntry entry = Entry();
  const Plan plan = *entry.plans[0].plan;
  const auto from = [&plan](const std::string& identity, const std::string& job, double peak) {
    ExecutionReport report = ReportOn(plan, job, 1, peak);
    report.identity = identity;
    return report;
  };
  for (const char* team : {"b", "c", "d", "e"}) Add(from(team, "job", 1), &entry);
  for (int i = 0; i < 20; ++i) Add(from("a", "fake " + std::to_string(i), 1), &entry);
  EXPECT_EQ(entry.reports.size(), 4 + kQuorum - 1);
  EXPECT_EQ(entry.reports.back().job, JobHash("fake 19", "a"));
  // Alone it is heard as jobs without an identity are.
  PlanEntry alone = Entry();
  for (const char* job : {"1", "2", "3"}) Add(from("a", job, 1.5), &alone);
  EXPECT_TRUE(PlansServing(alone, kJustShort).empty());
  // And where nobody is known, every name is a job.
  PlanEntry unknown = Entry();
  for (int i = 0; i < 20; ++i) Add(from("", std::to_string(i), 1), &unknown);
  EXPECT_EQ(unknown.reports.size(), 20u);
}

// One job beside honest ones, with any figures and as often as it likes.
TEST(Reports, OneJobChangesNothingThatIsHandedOut) {
  std::mt19937_64 rng(31);
  std::uniform_real_distribution<double> honest(0.9, 1.1), any(0.05, 20);
  for (int round = 0; round < 50; ++round) {
    PlanEntry entry = Entry();
    const Plan plan = *entry.plans[0].plan;
    int jobs = 0;
    for (int i = 0; i < 40; ++i) {
      if (rng() % 4 == 0 && jobs < round % 6) {
        Add(ReportOn(plan, std::to_string(jobs++), honest(rng)), &entry);
      } else {
        Add(ReportOn(plan, "odd", any(rng), any(rng)), &entry);
      }
      EXPECT_FALSE(ProfileWanted(entry));
      ASSERT_EQ(PlansServing(entry, kJustShort).size(), 1u);
      EXPECT_EQ(PlansServing(entry, kJustShort)[0]->schedule, plan.schedule);
    }
  }
}

// Reports say that steps take a third longer; profiles of the same jobs say so, too.
TEST(Reports, FreshProfilesEndTheDrift) {
  PlanEntry entry = Entry();
  ProfileShape slow;
  slow.forward_time = 13;
  for (uint64_t job = 2; job <= 3; ++job) entry = *Learn(entry, *ProblemOf(ProfileShape()), job);
  const Plan plan = *entry.plans[0].plan;
  EXPECT_FALSE(Learn(entry, *ProblemOf(slow), 2).has_value());
  for (const char* job : {"a", "b", "c"}) Add(ReportOn(plan, job, 1.3), &entry);
  ASSERT_TRUE(ProfileWanted(entry));
  entry = *Learn(entry, *ProblemOf(slow), 2);
  EXPECT_FALSE(ProfileWanted(entry));  // until the next report says that it was not enough
  EXPECT_FALSE(Learn(entry, *ProblemOf(slow), 3).has_value());
  Add(ReportOn(plan, "a", 1.3), &entry);
  ASSERT_TRUE(ProfileWanted(entry));
  entry = *Learn(entry, *ProblemOf(slow), 3);
  EXPECT_EQ(entry.samples.size(), 3u);
  EXPECT_FALSE(ProfileWanted(entry));
  EXPECT_FALSE(Learn(entry, *ProblemOf(slow), 2).has_value());
}

}  // namespace
}  // namespace stowage::testing

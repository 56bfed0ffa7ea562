#include "server/planning/admin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "server/cache/faulty_plan_store.h"
#include "server/cache/memory_plan_store.h"
#include "server/cache/tiered_plan_store.h"
#include "server/planning/planning_error.h"
#include "tests/server/planning/asked.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {
namespace {

constexpr Bytes kTight{1599};

Asked Of(const std::string& tenant, int stages = 6) {
  ProfileShape shape;
  shape.stages = stages;
  KeyOptions options;
  options.tenant = tenant;
  return *MakePlanningProblem(ChainProfile(shape), options, Sha256);
}

AdminCaller From(const std::string& tenant) { return {"request-1", "somebody", tenant, false}; }

AdminCaller Everywhere() { return {"request-2", "root", "", true}; }

// Refuses changes as if others had been faster.
class ContestedStore final : public ForwardingStore {
 public:
  explicit ContestedStore(PlanStore* store) : ForwardingStore(Borrowed(store)) {}
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override {
    if (refusals-- > 0) return StaleGenerationError();
    return ForwardingStore::Replace(key, read, std::move(entry), durability);
  }

  int refusals = 0;
};

class PlanAdminTest : public ::testing::Test {
 protected:
  PlanKey Keep(const Asked& asked) {
    PlanEntry entry = EntryFor(asked, kTight, 1);
    entry.generation = 1;
    EXPECT_TRUE(store_.Put(asked->key, std::make_shared<const PlanEntry>(entry)).ok());
    return asked->key;
  }
  std::shared_ptr<const PlanEntry> At(const PlanKey& key) { return store_.Get(key, Access::kPeek); }

  stowage::Report ReportOn(const PlanKey& key, const std::string& job) {
    const Plan& plan = *At(key)->plans[0].plan;
    stowage::Report report;
    report.key = key;
    report.plan_digest = ScheduleDigest(plan.schedule);
    report.revision = plan.revision;
    report.budget = plan.budget;
    report.steps = 10;
    report.step_time = plan.prediction.makespan;
    report.peak = plan.prediction.peak;
    report.job = job;
    return report;
  }

  MemoryPlanStore memory_{Bytes(64 << 20)};
  ContestedStore store_{&memory_};
  CountingMetrics metrics_;
  PlanAdmin admin_{&store_, &metrics_, nullptr};
};

TEST_F(PlanAdminTest, ListsPagesOfTheCallersTenant) {
  std::set<std::string> ours;
  for (int stages = 4; stages < 11; ++stages) {
    ours.insert(Keep(Of("a", stages)).digest.ToHex());
    Keep(Of("b", stages));
  }
  for (const size_t limit : {1, 3, 7, 100}) {
    std::set<std::string> seen;
    std::optional<PlanKey> after;
    int pages = 0;
    do {
      const EntryPage page = admin_.List(From("a"), after, limit);
      EXPECT_LE(page.entries.size(), limit);
      for (const ListedEntry& listed : page.entries) {
        EXPECT_EQ(listed.entry->tenant, "a");
        EXPECT_TRUE(seen.insert(listed.key.digest.ToHex()).second);
      }
      after = page.next_after;
    } while (after && ++pages < 100);
    EXPECT_EQ(seen, ours) << limit;
  }
  EXPECT_EQ(admin_.List(Everywhere(), std::nullopt, 100).entries.size(), 14u);
  EXPECT_TRUE(admin_.List(From("c"), std::nullopt, 100).entries.empty());
  EXPECT_EQ(admin_.ListKey(From("a"), Of("a", 5)->key).entries.size(), 1u);
  EXPECT_TRUE(admin_.ListKey(From("a"), Of("b", 5)->key).entries.empty());
}

// Thousands of keys, evenly spread, of which every 700th is of tenant "a".
class LargeStore final : public ForwardingStore {
 public:
  explicit LargeStore(PlanEntry entry)
      : ForwardingStore(std::make_shared<MemoryPlanStore>(Bytes(1 << 20))) {
    entry.tenant = "a";
    ours_ = std::make_shared<const PlanEntry>(entry);
    entry.tenant = "b";
    theirs_ = std::make_shared<const PlanEntry>(entry);
    for (int i = 0; i < 5000; ++i) {
      keys.push_back({kEncodingVersion, Sha256(std::to_string(i))});
      if (i % 700 == 0) ours.insert(keys.back());
    }
    std::sort(keys.begin(), keys.end());
  }
  PlanAnswer Look(const PlanKey& key, Access access) override {
    EXPECT_EQ(access, Access::kVisit);
    ++looks;
    if (during) during();
    return PlanAnswer{ours.count(key) > 0 ? ours_ : theirs_};
  }
  std::vector<PlanKey> List(const std::optional<PlanKey>& after, size_t limit) override {
    const auto begin = after ? std::upper_bound(keys.begin(), keys.end(), *after) : keys.begin();
    const auto count = std::min(limit, static_cast<size_t>(keys.end() - begin));
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

  std::vector<PlanKey> keys;
  std::set<PlanKey> ours;
  std::function<void()> during;
  int looks = 0;

 private:
  std::shared_ptr<const PlanEntry> ours_, theirs_;
};

TEST_F(PlanAdminTest, WhereThePageAfterStartsSaysNoKeyOfAnotherTenant) {
  LargeStore store(EntryFor(Of("a"), kTight, 1));
  PlanAdmin admin(&store, &metrics_, nullptr);
  for (const size_t limit : {1, 2, 100}) {
    std::set<PlanKey> seen;
    std::optional<PlanKey> after;
    int pages = 0;
    store.looks = 0;
    do {
      const EntryPage page = admin.List(From("a"), after, limit);
      for (const ListedEntry& listed : page.entries) EXPECT_TRUE(seen.insert(listed.key).second);
      after = page.next_after;
      if (!after || store.ours.count(*after) > 0) continue;
      const auto& digest = after->digest.bytes();
      EXPECT_TRUE(std::all_of(digest.begin() + 2, digest.end(), [](uint8_t b) { return b == 0; }));
    } while (after && ++pages < 100);
    EXPECT_EQ(seen, store.ours);
    EXPECT_GE(pages, 4) << "a page looks at a thousand keys";
    EXPECT_LT(store.looks, 5500) << "hardly any key is looked at twice";
  }
}

TEST_F(PlanAdminTest, AListOfACallThatIsOverEnds) {
  LargeStore store(EntryFor(Of("a"), kTight, 1));
  PlanAdmin admin(&store, &metrics_, nullptr);
  StopToken stop;
  store.during = [&] {
    if (store.looks == 10) stop.RequestStop();
  };
  AdminCaller caller = From("a");
  caller.stop = &stop;
  admin.List(caller, std::nullopt, 100);
  EXPECT_EQ(store.looks, 10);
}

TEST_F(PlanAdminTest, WhatATierCannotTakeIsNotSaidToBeDone) {
  const PlanKey key = Keep(Of("a"));
  FaultyPlanStore store(std::make_unique<ForwardingStore>(Borrowed(&store_)), FaultPolicy{});
  TieredPlanStore tiers(std::make_unique<MemoryPlanStore>(Bytes(1 << 20)),
                        std::make_unique<ForwardingStore>(Borrowed(&store)));
  PlanAdmin admin(&tiers, &metrics_, nullptr);
  const AdminCaller caller = From("a");
  for (const bool cached : {false, true}) {
    if (cached) {
      EXPECT_NE(tiers.Get(key, Access::kLookup), nullptr);
    }
    store.SetOut(true);
    const auto refused = [](const absl::Status& status) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_EQ(PlanningReason(status), "STORE_UNAVAILABLE");
    };
    refused(admin.Pin(caller, key, {kTight, 1}, PinAction::kPin));
    refused(admin.Delete(caller, key).status());
    store.SetOut(false);
    EXPECT_FALSE(At(key)->plans[0].pinned);
  }
  EXPECT_TRUE(admin.Pin(caller, key, {kTight, 1}, PinAction::kPin).ok());
  EXPECT_TRUE(*admin.Delete(caller, key));
  EXPECT_EQ(At(key), nullptr);
}

TEST_F(PlanAdminTest, NothingOfAnotherTenantIsThere) {
  const PlanKey theirs = Keep(Of("b"));
  const auto before = At(theirs);
  const AdminCaller caller = From("a");
  for (const PinAction action : {PinAction::kPin, PinAction::kFreeze, PinAction::kRollBack}) {
    EXPECT_EQ(PlanningReason(admin_.Pin(caller, theirs, {kTight, 1}, action)), "PLAN_NOT_CACHED");
  }
  EXPECT_FALSE(*admin_.Delete(caller, theirs));
  EXPECT_EQ(PlanningReason(admin_.Report(caller, ReportOn(theirs, "job")).status()),
            "PLAN_NOT_CACHED");
  EXPECT_EQ(PlanningReason(admin_.Explain(caller, theirs, kTight).status()), "PLAN_NOT_CACHED");
  EXPECT_EQ(At(theirs), before);
  EXPECT_TRUE(admin_.Pin(Everywhere(), theirs, {kTight, 1}, PinAction::kPin).ok());
  EXPECT_TRUE(*admin_.Delete(Everywhere(), theirs));
}

TEST_F(PlanAdminTest, ActionsChangeTheEntry) {
  const PlanKey key = Keep(Of("a"));
  const AdminCaller caller = From("a");
  EXPECT_TRUE(admin_.Pin(caller, key, {kTight, 1}, PinAction::kPin).ok());
  EXPECT_TRUE(At(key)->plans[0].pinned);
  EXPECT_EQ(At(key)->generation, 2);
  EXPECT_TRUE(admin_.Pin(caller, key, {kTight, 1}, PinAction::kUnpin).ok());
  EXPECT_FALSE(At(key)->plans[0].pinned);
  EXPECT_TRUE(admin_.Pin(caller, key, {}, PinAction::kFreeze).ok());
  EXPECT_TRUE(At(key)->frozen);
  EXPECT_TRUE(admin_.Pin(caller, key, {}, PinAction::kUnfreeze).ok());
  for (const PinAction action : {PinAction::kUnpin, PinAction::kRollBack, PinAction::kPromote}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(admin_.Pin(caller, key, {kTight, 1}, action)));
  }
  EXPECT_TRUE(absl::IsNotFound(admin_.Pin(caller, key, {kTight, 9}, PinAction::kPin)));
  EXPECT_EQ(At(key)->generation, 5);
  EXPECT_TRUE(*admin_.Delete(caller, key));
  EXPECT_FALSE(*admin_.Delete(caller, key));
}

TEST_F(PlanAdminTest, TriesAgainWhenOthersAreFaster) {
  const PlanKey key = Keep(Of("a"));
  store_.refusals = 2;
  EXPECT_TRUE(admin_.Pin(From("a"), key, {kTight, 1}, PinAction::kPin).ok());
  store_.refusals = 3;
  EXPECT_TRUE(absl::IsAborted(admin_.Pin(From("a"), key, {kTight, 1}, PinAction::kUnpin)));
  EXPECT_TRUE(At(key)->plans[0].pinned);
}

TEST_F(PlanAdminTest, ReportsAreKeptAndCounted) {
  const PlanKey key = Keep(Of("a"));
  stowage::Report report = ReportOn(key, "job");
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

TEST_F(PlanAdminTest, ExplainsThePlanThatAnswers) {
  const PlanKey key = Keep(Of("a"));
  EXPECT_TRUE(admin_.Report(From("a"), ReportOn(key, "job")).ok());
  const Plan& plan = *At(key)->plans[0].plan;
  const auto text = admin_.Explain(From("a"), key, kTight);
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
      stowage::Report report = ReportOn(key, job);
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
    EXPECT_TRUE(admin.Pin(From("a"), key, {kTight, 1}, PinAction::kPin).ok());
    EXPECT_FALSE(admin.Pin(From("b"), key, {kTight, 1}, PinAction::kRollBack).ok());
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

// Two servers and what they share, which comes back empty between a decision and every kind of call:
// what was deleted does not come back, what is pinned, rolled back or frozen stays so.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/entries/planning_error.h"
#include "server/entries/revisions.h"
#include "tests/server/decisions/questions.h"
#include "tests/server/decisions/shared_tier.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

// A decision, and what holds of a server that knows it.
struct Case {
  std::string name;
  std::function<absl::Status(PlanAdmin*)> decide;
  std::function<void(DecidingServer*, const PlanEntry& before)> expect;
};

std::shared_ptr<const PlanEntry> EntryAt(DecidingServer* server) {
  return server->store->Get(Key(), Access::kPeek);
}

void ExpectServes(DecidingServer* server, const PlanEntry& before, size_t which) {
  const auto plan = server->service->GetPlan({Key()}, kJustShort);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->plan->revision, static_cast<int64_t>(which) + 1);
  EXPECT_EQ(plan->plan->schedule, before.plans[which].plan->schedule);
  const auto computed = server->Compute(Asking(), kJustShort);
  ASSERT_TRUE(computed.ok()) << computed.status();
  EXPECT_EQ(computed->plan.schedule, before.plans[which].plan->schedule);
  EXPECT_EQ(server->admin->List(Administrator(), std::nullopt, 10).value().entries.size(), 1u);
}

void ExpectDeleted(DecidingServer* server, const PlanEntry&) {
  EXPECT_EQ(PlanningReason(server->service->GetPlan({Key()}, kJustShort).status()),
            "PLAN_NOT_CACHED");
  EXPECT_EQ(PlanningReason(server->admin->Explain(Administrator(), Key(), kJustShort).status()),
            "PLAN_NOT_CACHED");
  EXPECT_TRUE(server->admin->List(Administrator(), std::nullopt, 10).value().entries.empty());
  EXPECT_TRUE(server->admin->ListKey(Administrator(), Key()).value().entries.empty());
  for (const Access access : {Access::kLookup, Access::kPeek, Access::kUpdate, Access::kInspect}) {
    const PlanAnswer answer = server->store->Look(Key(), access);
    EXPECT_EQ(answer.entry, nullptr);
    EXPECT_EQ(answer.absence, Absence::kErased);
  }
}

void ExpectPinned(DecidingServer* server, const PlanEntry& before) {
  ExpectServes(server, before, 1);
  const auto entry = EntryAt(server);
  ASSERT_NE(entry, nullptr);
  EXPECT_NE(PinnedRevision(*entry, kJustShort), nullptr);
}

void ExpectRolledBack(DecidingServer* server, const PlanEntry& before) {
  ExpectServes(server, before, 1);
  const auto entry = EntryAt(server);
  ASSERT_NE(entry, nullptr);
  for (const StoredPlan& stored : entry->plans) {
    const bool is_it = stored.plan->schedule == before.plans[0].plan->schedule;
    EXPECT_EQ(stored.state == RevisionState::kRetired, is_it);
  }
}

void ExpectFrozen(DecidingServer* server, const PlanEntry& before) {
  ExpectServes(server, before, 0);
  const auto entry = EntryAt(server);
  ASSERT_NE(entry, nullptr);
  EXPECT_TRUE(entry->frozen);
  ASSERT_EQ(entry->plans.size(), before.plans.size());
  for (size_t i = 0; i < before.plans.size(); ++i) {
    EXPECT_EQ(entry->plans[i].plan->schedule, before.plans[i].plan->schedule);
    EXPECT_EQ(entry->plans[i].plan->revision, before.plans[i].plan->revision);
  }
}

absl::Status PinBy(PlanAdmin* admin, int64_t revision, PinAction action) {
  return admin->Pin(Administrator(), Key(), {kJustShort, revision}, action);
}

const std::vector<Case>& Cases() {
  static const auto* const kCases = new std::vector<Case>{
      {"Delete", [](PlanAdmin* admin) { return admin->Delete(Administrator(), Key()).status(); },
       ExpectDeleted},
      {"Pin", [](PlanAdmin* admin) { return PinBy(admin, 2, PinAction::kPin); }, ExpectPinned},
      {"RollBack", [](PlanAdmin* admin) { return PinBy(admin, 1, PinAction::kRollBack); },
       ExpectRolledBack},
      {"Freeze", [](PlanAdmin* admin) { return PinBy(admin, 0, PinAction::kFreeze); },
       ExpectFrozen},
  };
  return *kCases;
}

// What a server may be asked meanwhile. What it answers is its own business: it may know nothing of the
// decision yet.
struct Call {
  std::string name;
  std::function<void(DecidingServer*, const PlanEntry& before)> make;
};

void Report(DecidingServer* server, const PlanEntry& before) {
  const Plan& plan = *before.plans[0].plan;
  ExecutionReport report;
  report.key = Key();
  report.plan_digest = ScheduleDigest(plan.schedule);
  report.revision = plan.revision;
  report.budget = plan.budget;
  report.steps = 10;
  report.step_time = plan.prediction.makespan;
  report.peak = plan.prediction.peak;
  report.job = "job";
  server->admin->Report(Administrator(), report).status().IgnoreError();
}

const std::vector<Call>& Calls() {
  using Before = const PlanEntry&;
  static const auto* const kCalls = new std::vector<Call>{
      {"None", [](DecidingServer*, Before) {}},
      {"Get", [](DecidingServer* server,
                 Before) { server->service->GetPlan({Key()}, kJustShort).status().IgnoreError(); }},
      {"Compute", [](DecidingServer* server,
                     Before) { EXPECT_TRUE(server->Compute(Asking(), kJustShort).ok()); }},
      {"ComputeAnotherBudget",
       [](DecidingServer* server, Before) { EXPECT_TRUE(server->Compute(Asking(), kOther).ok()); }},
      {"Watch",
       [](DecidingServer* server, Before) {
         server->service->ComputePlan(
             ComputeRequest{Asking(), LeastBudget{}, KeyOptions(), std::nullopt},
             server->answers.Of(1), [] {});
         EXPECT_TRUE(server->answers.WaitFor(1).ok());
       }},
      {"Frontier",
       [](DecidingServer* server, Before) {
         server->service->GetFrontier(
             ComputeRequest{Asking(), kJustShort, KeyOptions(), std::nullopt},
             server->answers.Of(2));
         EXPECT_TRUE(server->answers.WaitFor(2).ok());
       }},
      {"Report", Report},
      {"List", [](DecidingServer* server,
                  Before) { server->admin->List(Administrator(), std::nullopt, 10).value(); }},
      {"Explain",
       [](DecidingServer* server, Before) {
         server->admin->Explain(Administrator(), Key(), kJustShort).status().IgnoreError();
       }},
      // A copy that is given back, as tiers do.
      {"Fill",
       [](DecidingServer* server, Before before) {
         server->store->Put(Key(), std::make_shared<const PlanEntry>(before)).IgnoreError();
       }},
      {"Replace",
       [](DecidingServer* server, Before before) {
         const auto now = server->store->Get(Key(), Access::kUpdate);
         PlanEntry next = now ? *now : before;
         const int64_t read = now ? now->generation : 0;
         next.generation = now ? read + 1 : FirstGeneration();
         server->store
             ->Replace(Key(), read, std::make_shared<const PlanEntry>(next),
                       Durability::kBestEffort)
             .IgnoreError();
       }},
  };
  return *kCalls;
}

// Whether the other server has a copy from before the decision.
enum class Copy { kNone, kInMemory, kInItsFile };

template <class Tier>
void RunCase(const Case& decided, const Call& call, Copy copy) {
  SCOPED_TRACE(decided.name + " " + call.name + " " + std::to_string(static_cast<int>(copy)));
  const TemporaryFolder folder;
  Tier shared;
  ServerOptions options_a, options_b;
  options_a.decisions = folder / "a.decisions";
  options_b.decisions = folder / "b.decisions";
  if (copy == Copy::kInItsFile) options_b.plans = folder / "b.plans";
  auto a = std::make_unique<DecidingServer>(&shared, options_a);
  auto b = std::make_unique<DecidingServer>(&shared, options_b);
  const auto before = TwoRevisions();
  ASSERT_TRUE(a->store->Put(Key(), before).ok());
  if (copy != Copy::kNone) {
    ASSERT_TRUE(b->service->GetPlan({Key()}, kJustShort).ok());
  }
  if (copy == Copy::kInItsFile)
    b = nullptr, b = std::make_unique<DecidingServer>(&shared, options_b);

  const absl::Status status = decided.decide(a->admin.get());
  ASSERT_TRUE(status.ok()) << status;
  decided.expect(a.get(), *before);
  if (call.name == "None") decided.expect(b.get(), *before);  // while the shared tier is there
  shared.Flush();
  call.make(b.get(), *before);
  decided.expect(a.get(), *before);
  // It has told the others by now.
  decided.expect(b.get(), *before);
  call.make(a.get(), *before);
  shared.Flush();
  // And the other one has learned it for good.
  a = nullptr;
  b = nullptr;
  b = std::make_unique<DecidingServer>(&shared, options_b);
  if (decided.name != "Delete") decided.expect(b.get(), *before);
  EXPECT_EQ(b->store->Look(Key(), Access::kUpdate).entry == nullptr, decided.name == "Delete");
  if (decided.name != "Delete") return;
  // A later request is another matter.
  EXPECT_EQ(b->store->Put(Key(), before).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(b->Compute(Asking(), kJustShort).ok());
  EXPECT_TRUE(b->service->GetPlan({Key()}, kJustShort).ok());
  shared.Flush();
  EXPECT_TRUE(b->service->GetPlan({Key()}, kJustShort).ok());
}

class Flushed : public ::testing::TestWithParam<std::tuple<size_t, size_t, Copy>> {
 protected:
  const Case& decided_ = Cases()[std::get<0>(GetParam())];
  const Call& call_ = Calls()[std::get<1>(GetParam())];
  const Copy copy_ = std::get<2>(GetParam());
};

TEST_P(Flushed, InThisProcess) { RunCase<TierInProcess>(decided_, call_, copy_); }

TEST_P(Flushed, InRedis) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RunCase<TierInRedis>(decided_, call_, copy_);
}

// What others have put there instead: it is no decision, and in nobody's way.
TEST(RedisDecisionsTest, StrangeValuesAreNoneAndGiveWay) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RedisServer redis;
  CountingMetrics metrics;
  RedisDecisions decisions("stowage", redis.Pool(), &metrics);
  const std::string name = RedisKeys("stowage").Decisions(Key());
  Decision deletion = DeletionOf(1, 0);
  deletion.stamp = 77;
  const std::string head = "0000000000000000001" + std::string(16, '0');
  const std::string cut = EncodeDecision(Key(), deletion).substr(1);
  const RedisCommand strange[] = {{"SET", name, "text"},
                                  {"RPUSH", name, "list"},
                                  {"HSET", name, "0:0", "short"},
                                  {"HSET", name, "0:0", head},
                                  {"HSET", name, "0:0", head + cut},
                                  {"HSET", name, "x", head + cut},
                                  {"HSET", name, "9:0", head + cut}};
  for (const RedisCommand& command : strange) {
    SCOPED_TRACE(command[0] + " " + command.back().substr(0, 9));
    redis.Ask({"FLUSHALL"});
    redis.Ask(command);
    const auto before = decisions.Heads(Key());
    ASSERT_TRUE(before.ok()) << before.status();
    for (const Decision& named : *before) {
      EXPECT_EQ(named.stamp, 1);
      EXPECT_TRUE(decisions.Read(Key(), {IdOf(named)})->empty());
    }
    ASSERT_TRUE(decisions.Tell(Key(), {deletion}).ok());
    const auto told = decisions.Heads(Key());
    ASSERT_TRUE(told.ok()) << told.status();
    ASSERT_EQ(told->size(), 1u);
    EXPECT_EQ(told->front().generation, deletion.generation);
    EXPECT_EQ(decisions.Read(Key(), {IdOf(deletion)})->size(), 1u);
  }
}

// Who can write to Redis, and has no key, decides nothing.
TEST(RedisDecisionsTest, WithAKeyWhatIsNotSealedUnderItIsNone) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RedisServer redis;
  CountingMetrics metrics;
  const auto keys = std::make_shared<EntryKeys>(EntryKeys::Keys{std::string(32, 'k')});
  RedisDecisions keyed("stowage", redis.Pool(), &metrics, keys);
  RedisDecisions without("stowage", redis.Pool(), &metrics);
  Decision deletion = DeletionOf(1, 0);
  deletion.stamp = 77;
  ASSERT_TRUE(without.Tell(Key(), {deletion}).ok());
  EXPECT_TRUE(keyed.Heads(Key())->empty()) << "they share nothing";
  // Put where servers with the key look.
  const std::string forged = redis.Ask({"HGET", RedisKeys("stowage").Decisions(Key()), "0:0"}).text;
  ASSERT_FALSE(forged.empty());
  const std::string name = RedisKeys("stowage", true).Decisions(Key());
  redis.Ask({"HSET", name, "0:0", forged});
  ASSERT_EQ(keyed.Heads(Key())->size(), 1u);
  EXPECT_TRUE(keyed.Read(Key(), {IdOf(deletion)})->empty());
  EXPECT_EQ(metrics.cache_failures[static_cast<size_t>(CacheFailure::kCorrupt)], 1);
  deletion.stamp = 78;
  ASSERT_TRUE(keyed.Tell(Key(), {deletion}).ok());
  const auto read = keyed.Read(Key(), {IdOf(deletion)});
  ASSERT_TRUE(read.ok() && read->size() == 1) << read.status();
  EXPECT_EQ(read->front().stamp, 78);
  // What is of another field, or key, is not of this one.
  const std::string sealed = redis.Ask({"HGET", name, "0:0"}).text;
  redis.Ask({"HSET", name, "1:0", sealed});
  EXPECT_TRUE(keyed.Read(Key(), {{DecisionKind::kFreeze, 0}})->empty());
}

// What was told under a key that goes would be lost with it.
TEST(RedisDecisionsTest, AKeyThatChangesHasAllBeToldAnew) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RedisServer redis;
  CountingMetrics metrics;
  const std::string first(32, '1'), second(32, '2');
  const auto keys = std::make_shared<EntryKeys>(EntryKeys::Keys{first});
  auto own = DecisionBook::Open(
      std::make_unique<MemoryDecisionStore>(),
      std::make_unique<RedisDecisions>("stowage", redis.Pool(), &metrics, keys), &metrics);
  ASSERT_TRUE(own.ok()) << own.status();
  (*own)->Upkeep();
  ASSERT_TRUE((*own)->Decide(Key(), 0, {DeletionOf(FirstGeneration(0), 0)}).ok());
  const auto read = [&](const std::string& key) {
    RedisDecisions other("stowage", redis.Pool(), &metrics,
                         std::make_shared<EntryKeys>(EntryKeys::Keys{key}));
    return other.Read(Key(), {{DecisionKind::kDeletion, 0}})->size();
  };
  EXPECT_EQ(read(first), 1u);
  EXPECT_EQ(read(second), 0u);
  keys->Set({second, first});
  (*own)->Upkeep();
  EXPECT_EQ(read(second), 1u);
  EXPECT_EQ(read(first), 0u);
}

TEST(RedisDecisionsTest, TheLaterStampCountsAndNothingExpires) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RedisServer redis;
  NoMetrics metrics;
  RedisDecisions decisions("stowage", redis.Pool(), &metrics);
  Decision deletion = DeletionOf(1, 0);
  for (const int64_t stamp : {int64_t{9}, int64_t{1000}, int64_t{100}, int64_t{999}}) {
    deletion.stamp = stamp;
    deletion.generation = stamp;
    ASSERT_TRUE(decisions.Tell(Key(), {deletion}).ok());
  }
  const auto told = decisions.Heads(Key());
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->size(), 1u);
  EXPECT_EQ(told->front().generation, 1000);
  const auto whole = decisions.Read(Key(), {IdOf(deletion)});
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->size(), 1u);
  EXPECT_EQ(whole->front().stamp, 1000);
  EXPECT_EQ(redis.Ask({"PTTL", RedisKeys("stowage").Decisions(Key())}).integer, -1);
  ASSERT_TRUE(decisions.Mark().ok());
  EXPECT_TRUE(*decisions.IsMarked());
  redis.Ask({"FLUSHALL"});
  EXPECT_FALSE(*decisions.IsMarked());
}

std::string NameOfCase(const ::testing::TestParamInfo<Flushed::ParamType>& test) {
  static const char* const kCopies[] = {"NoCopy", "CopyInMemory", "CopyInItsFile"};
  return Cases()[std::get<0>(test.param)].name + Calls()[std::get<1>(test.param)].name +
         kCopies[static_cast<int>(std::get<2>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(All, Flushed,
                         ::testing::Combine(::testing::Range(size_t{0}, Cases().size()),
                                            ::testing::Range(size_t{0}, Calls().size()),
                                            ::testing::Values(Copy::kNone, Copy::kInMemory,
                                                              Copy::kInItsFile)),
                         NameOfCase);

}  // namespace
}  // namespace stowage::testing

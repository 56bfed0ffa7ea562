#include "server/service/admin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "server/entries/planning_error.h"
#include "server/store/faulty_plan_store.h"
#include "server/store/memory_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/service/admin_fixture.h"

namespace stowage::testing {
namespace {

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
      const EntryPage page = admin_.List(From("a"), after, limit).value();
      EXPECT_LE(page.entries.size(), limit);
      for (const ListedEntry& listed : page.entries) {
        EXPECT_EQ(listed.entry->tenant, "a");
        EXPECT_TRUE(seen.insert(listed.key.digest.ToHex()).second);
      }
      after = page.next_after;
    } while (after && ++pages < 100);
    EXPECT_EQ(seen, ours) << limit;
  }
  EXPECT_EQ(admin_.List(Everywhere(), std::nullopt, 100).value().entries.size(), 14u);
  EXPECT_TRUE(admin_.List(From("c"), std::nullopt, 100).value().entries.empty());
  EXPECT_EQ(admin_.ListKey(From("a"), Of("a", 5)->key).value().entries.size(), 1u);
  EXPECT_TRUE(admin_.ListKey(From("a"), Of("b", 5)->key).value().entries.empty());
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
    EXPECT_EQ(access, Access::kInspect);
    ++looks;
    if (during) during();
    return PlanAnswer{ours.count(key) > 0 ? ours_ : theirs_};
  }
  // As a store that knows of no key whose it is.
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string&,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override {
    return List(after, limit);
  }
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override {
    const auto begin = after ? std::upper_bound(keys.begin(), keys.end(), *after) : keys.begin();
    const auto count = std::min(limit, static_cast<size_t>(keys.end() - begin));
    return std::vector<PlanKey>(begin, begin + static_cast<std::ptrdiff_t>(count));
  }

  std::vector<PlanKey> keys;
  std::set<PlanKey> ours;
  std::function<void()> during;
  int looks = 0;

 private:
  std::shared_ptr<const PlanEntry> ours_, theirs_;
};

TEST_F(PlanAdminTest, WhereThePageAfterStartsSaysNoKeyOfAnotherTenant) {
  LargeStore store(EntryFor(Of("a"), kJustShort, 1));
  PlanAdmin admin(&store, &metrics_, nullptr);
  for (const size_t limit : {1, 2, 100}) {
    std::set<PlanKey> seen;
    std::optional<PlanKey> after;
    int pages = 0;
    store.looks = 0;
    do {
      const EntryPage page = admin.List(From("a"), after, limit).value();
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

class StoreThatCannotList final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>&, size_t) override {
    return absl::UnavailableError("away");
  }
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string&, const std::optional<PlanKey>&,
                                              size_t) override {
    return absl::UnavailableError("away");
  }
};

TEST_F(PlanAdminTest, AListThatATierCannotGiveIsAnErrorAndNotAShorterOne) {
  StoreThatCannotList store(Borrowed(&store_));
  PlanAdmin admin(&store, &metrics_, nullptr);
  for (const AdminCaller& caller : {Everywhere(), From("a")}) {
    const absl::Status status = admin.List(caller, std::nullopt, 10).status();
    EXPECT_EQ(status.message(), "the list would lack plans: away");
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(PlanningReason(status), "STORE_UNAVAILABLE");
  }
}

// Its keys are known, and what is under them cannot be read now.
class StoreThatCannotRead final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  PlanAnswer Look(const PlanKey&, Access) override { return PlanAnswer{nullptr, Absence::kFailed}; }
};

TEST_F(PlanAdminTest, WhatCannotBeReadIsNotSaidToBeAbsent) {
  const PlanKey key = Keep(Of("a"));
  StoreThatCannotRead store(Borrowed(&store_));
  PlanAdmin admin(&store, &metrics_, nullptr);
  for (const absl::Status& status :
       {admin.List(From("a"), std::nullopt, 10).status(), admin.ListKey(From("a"), key).status(),
        admin.Explain(From("a"), key, kJustShort).status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(PlanningReason(status), "STORE_UNAVAILABLE");
  }
  std::set<std::string> of_list, of_key;
  EXPECT_TRUE(admin.List(From("a"), std::nullopt, 10, &of_list).value().entries.empty());
  EXPECT_TRUE(admin.ListKey(From("a"), key, &of_key).value().entries.empty());
  EXPECT_EQ(of_list, std::set<std::string>{kUnnamedStore});
  EXPECT_EQ(of_key, of_list);
}

// Counts what a page costs a store.
class CountedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  PlanAnswer Look(const PlanKey& key, Access access) override {
    ++looks;
    return ForwardingStore::Look(key, access);
  }
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override {
    return Count(ForwardingStore::List(after, limit).value());
  }
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override {
    return Count(ForwardingStore::ListOf(tenant, after, limit).value());
  }

  size_t looks = 0, keys = 0;

 private:
  std::vector<PlanKey> Count(std::vector<PlanKey> listed) {
    keys += listed.size();
    return listed;
  }
};

TEST_F(PlanAdminTest, APageCostsItsPageHoweverManyEntriesOthersHave) {
  for (int stages = 4; stages < 9; ++stages) Keep(Of("a", stages));
  for (int stages = 4; stages < 44; ++stages) Keep(Of("b", stages));
  for (const bool everywhere : {false, true}) {
    CountedStore store(Borrowed(&memory_));
    PlanAdmin admin(&store, &metrics_, nullptr);
    const AdminCaller caller = everywhere ? Everywhere() : From("a");
    const EntryPage page = admin.List(caller, std::nullopt, 3).value();
    EXPECT_EQ(page.entries.size(), 3u);
    ASSERT_TRUE(page.next_after.has_value());
    EXPECT_EQ(store.looks, 3u);
    EXPECT_EQ(store.keys, 4u);
    const EntryPage next = admin.List(caller, page.next_after, 3).value();
    EXPECT_EQ(next.entries.size(), everywhere ? 3u : 2u);
    EXPECT_LE(store.looks, 6u);
    EXPECT_LE(store.keys, 8u);
  }
}

TEST_F(PlanAdminTest, AListOfACallThatIsOverEnds) {
  LargeStore store(EntryFor(Of("a"), kJustShort, 1));
  PlanAdmin admin(&store, &metrics_, nullptr);
  StopToken stop;
  store.during = [&] {
    if (store.looks == 10) stop.RequestStop();
  };
  AdminCaller caller = From("a");
  caller.stop = &stop;
  admin.List(caller, std::nullopt, 100).value();
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
    refused(admin.Pin(caller, key, {kJustShort, 1}, PinAction::kPin));
    refused(admin.Delete(caller, key).status());
    store.SetOut(false);
    EXPECT_FALSE(At(key)->plans[0].pinned);
  }
  EXPECT_TRUE(admin.Pin(caller, key, {kJustShort, 1}, PinAction::kPin).ok());
  EXPECT_TRUE(*admin.Delete(caller, key));
  EXPECT_EQ(At(key), nullptr);
}

TEST_F(PlanAdminTest, NothingOfAnotherTenantIsThere) {
  const PlanKey theirs = Keep(Of("b"));
  const auto before = At(theirs);
  const AdminCaller caller = From("a");
  for (const PinAction action : {PinAction::kPin, PinAction::kFreeze, PinAction::kRollBack}) {
    EXPECT_EQ(PlanningReason(admin_.Pin(caller, theirs, {kJustShort, 1}, action)),
              "PLAN_NOT_CACHED");
  }
  EXPECT_FALSE(*admin_.Delete(caller, theirs));
  EXPECT_EQ(PlanningReason(admin_.Report(caller, ReportOn(theirs, "job")).status()),
            "PLAN_NOT_CACHED");
  EXPECT_EQ(PlanningReason(admin_.Explain(caller, theirs, kJustShort).status()), "PLAN_NOT_CACHED");
  EXPECT_EQ(At(theirs), before);
  EXPECT_TRUE(admin_.Pin(Everywhere(), theirs, {kJustShort, 1}, PinAction::kPin).ok());
  EXPECT_TRUE(*admin_.Delete(Everywhere(), theirs));
}

TEST_F(PlanAdminTest, ActionsChangeTheEntry) {
  const PlanKey key = Keep(Of("a"));
  const AdminCaller caller = From("a");
  EXPECT_TRUE(admin_.Pin(caller, key, {kJustShort, 1}, PinAction::kPin).ok());
  EXPECT_TRUE(At(key)->plans[0].pinned);
  EXPECT_EQ(At(key)->generation, 2);
  EXPECT_TRUE(admin_.Pin(caller, key, {kJustShort, 1}, PinAction::kUnpin).ok());
  EXPECT_FALSE(At(key)->plans[0].pinned);
  EXPECT_TRUE(admin_.Pin(caller, key, {}, PinAction::kFreeze).ok());
  EXPECT_TRUE(At(key)->frozen);
  EXPECT_TRUE(admin_.Pin(caller, key, {}, PinAction::kUnfreeze).ok());
  for (const PinAction action : {PinAction::kUnpin, PinAction::kRollBack, PinAction::kPromote}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(admin_.Pin(caller, key, {kJustShort, 1}, action)));
  }
  EXPECT_TRUE(absl::IsNotFound(admin_.Pin(caller, key, {kJustShort, 9}, PinAction::kPin)));
  EXPECT_EQ(At(key)->generation, 5);
  EXPECT_TRUE(*admin_.Delete(caller, key));
  EXPECT_FALSE(*admin_.Delete(caller, key));
}

TEST_F(PlanAdminTest, TriesAgainWhenOthersAreFaster) {
  const PlanKey key = Keep(Of("a"));
  store_.refusals = 2;
  EXPECT_TRUE(admin_.Pin(From("a"), key, {kJustShort, 1}, PinAction::kPin).ok());
  store_.refusals = 3;
  EXPECT_TRUE(absl::IsAborted(admin_.Pin(From("a"), key, {kJustShort, 1}, PinAction::kUnpin)));
  EXPECT_TRUE(At(key)->plans[0].pinned);
}

}  // namespace
}  // namespace stowage::testing

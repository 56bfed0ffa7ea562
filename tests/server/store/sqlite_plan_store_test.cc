// What only the store in a file promises: it outlives the process, evicts by lookups, and has its
// file alone. Damage has sqlite_damage_test.cc.
#include "server/store/sqlite_plan_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/memory_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/entries/full_entries.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

class SqliteStore : public ::testing::Test {
 protected:
  std::unique_ptr<SqlitePlanStore> Opened(Bytes max_bytes = kAmpleFile) {
    return MustOpen(path_, &metrics_, max_bytes);
  }
  static bool Holds(PlanStore* store, const std::string& name) {
    return store->Get(KeyOf(name), Access::kPeek) != nullptr;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "plans";
  CountingMetrics metrics_;
};

TEST_F(SqliteStore, EveryFieldOutlivesTheProcess) {
  for (const PlanEntry& entry : {FullChainEntry(), FullGraphEntry()}) {
    ASSERT_TRUE(
        Opened()->Put(KeyOf(entry.canonical), std::make_shared<const PlanEntry>(entry)).ok());
    const auto kept = Opened()->Get(KeyOf(entry.canonical), Access::kLookup);
    ASSERT_NE(kept, nullptr);
    ExpectEqualEntries(*kept, entry);
  }
}

TEST_F(SqliteStore, TotalsOutliveTheProcess) {
  ASSERT_TRUE(Opened()->Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_TRUE(Opened()->Put(KeyOf("b"), EntryOf("b", 100)).ok());
  const PlanStoreStats stats = Opened()->stats();
  EXPECT_EQ(stats.entries, 2);
  EXPECT_EQ(stats.charged, ChargeOf(*EntryOf("a")) + ChargeOf(*EntryOf("b", 100)));
}

TEST_F(SqliteStore, WhatIsHeldIsGivenBackAndNotReadWhereItIsTheSame) {
  const auto written = EntryOf("a", 100000);
  {
    const auto store = Opened();
    ASSERT_TRUE(store->Put(KeyOf("a"), written).ok());
    EXPECT_EQ(store->LookAgain(KeyOf("a"), Access::kPeek, written).entry, written);
  }
  // By another store, which has never seen it; and with bytes that are no entry any more, but for their ends.
  const auto store = Opened();
  EXPECT_EQ(store->LookAgain(KeyOf("a"), Access::kPeek, written).entry, written);
  SqliteConnection beside = *SqliteConnection::Open(path_, std::chrono::seconds(1));
  ASSERT_TRUE(beside
                  .Execute("UPDATE entries SET entry = CAST(zeroblob(1000) || substr(entry, 1001) "
                           "AS BLOB)")
                  .ok());
  EXPECT_EQ(store->LookAgain(KeyOf("a"), Access::kLookup, written).entry, written);
  EXPECT_EQ(metrics_.cache_failures[static_cast<size_t>(CacheFailure::kCorrupt)], 0);
  // What differs is read: by its generation, or its content alone.
  ASSERT_TRUE(store->Put(KeyOf("a"), EntryOf("a", 5, 2)).ok());
  EXPECT_EQ(store->LookAgain(KeyOf("a"), Access::kPeek, written).entry->generation, 2);
  const auto twin = store->LookAgain(KeyOf("a"), Access::kPeek, EntryOf("a", 6, 2)).entry;
  EXPECT_EQ(twin->plans[0].plan->explanation.size(), 5u);
  ASSERT_TRUE(store->Erase(KeyOf("a")).ok());
  EXPECT_EQ(store->LookAgain(KeyOf("a"), Access::kPeek, twin).entry, nullptr);
}

TEST_F(SqliteStore, OnlyGetCanTell) {
  const auto store = Opened();
  ASSERT_TRUE(store->Put(KeyOf("a"), EntryOf("a")).ok());
  EXPECT_FALSE(store->GetNow(KeyOf("a"), Access::kLookup).has_value());
}

TEST_F(SqliteStore, TheLeastRecentlyLookedUpGoesFirst) {
  const Bytes one = ChargeOf(*EntryOf("a"));
  const auto store = Opened(Bytes(3 * one.value()));
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store->Put(KeyOf(name), EntryOf(name)).ok());
  }
  store->Get(KeyOf("a"), Access::kLookup);
  store->Get(KeyOf("b"), Access::kPeek);  // does not save b
  ASSERT_TRUE(store->Put(KeyOf("d"), EntryOf("d")).ok());
  EXPECT_TRUE(Holds(store.get(), "a"));
  EXPECT_FALSE(Holds(store.get(), "b"));
  EXPECT_TRUE(Holds(store.get(), "c"));
  EXPECT_TRUE(Holds(store.get(), "d"));
  EXPECT_EQ(store->stats().evicted, 1);
  EXPECT_EQ(store->stats().entries, 3);
}

// Before it is a tier that answers, so that the file sees no lookup of what is hot.
TEST_F(SqliteStore, WhatMemoryServesIsNotEvicted) {
  const Bytes one = ChargeOf(*EntryOf("a"));
  for (const bool waits : {false, true}) {
    auto file = Opened(Bytes(3 * one.value()));
    SqlitePlanStore* const store = file.get();
    TieredPlanStore tiers(std::make_unique<MemoryPlanStore>(Bytes(1 << 20)), std::move(file));
    for (const char* name : {"a", "b", "c"}) {
      tiers.Erase(KeyOf(name)).status().IgnoreError();
      ASSERT_TRUE(tiers.Put(KeyOf(name), EntryOf(name)).ok());
    }
    if (waits) {
      EXPECT_NE(tiers.Get(KeyOf("a"), Access::kLookup), nullptr);
    } else {
      EXPECT_TRUE(tiers.GetNow(KeyOf("a"), Access::kLookup).has_value());
    }
    tiers.Get(KeyOf("b"), Access::kInspect);  // does not save b
    ASSERT_TRUE(tiers.Replace(KeyOf("d"), 0, EntryOf("d"), Durability::kBestEffort).ok());
    EXPECT_TRUE(Holds(store, "a"));
    EXPECT_FALSE(Holds(store, "b"));
    ASSERT_TRUE(*tiers.Erase(KeyOf("d")));
  }
}

TEST_F(SqliteStore, LookupsOutliveTheProcess) {
  const Bytes three(3 * ChargeOf(*EntryOf("a")).value());
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(Opened(three)->Put(KeyOf(name), EntryOf(name)).ok());
  }
  Opened(three)->Get(KeyOf("a"), Access::kLookup);
  const auto store = Opened(three);
  ASSERT_TRUE(store->Put(KeyOf("d"), EntryOf("d")).ok());
  EXPECT_TRUE(Holds(store.get(), "a"));
  EXPECT_FALSE(Holds(store.get(), "b"));
}

TEST_F(SqliteStore, NeverChargesMoreThanItsLimit) {
  const Bytes limit(40 * ChargeOf(*EntryOf("a")).value());
  const auto store = Opened(limit);
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(store->Put(KeyOf(name), EntryOf(name, static_cast<size_t>(37 * i) % 1000)).ok());
    ASSERT_LE(store->stats().charged, limit);
    ASSERT_TRUE(Holds(store.get(), name));
  }
  EXPECT_EQ(store->stats().entries + store->stats().evicted, 200);
  EXPECT_GT(store->stats().entries, 10);
}

TEST_F(SqliteStore, AnEntryOverTheLimitIsRefusedAndDropsNothing) {
  const auto store = Opened(ChargeOf(*EntryOf("a")));
  ASSERT_TRUE(store->Put(KeyOf("a"), EntryOf("a")).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store->Put(KeyOf("b"), EntryOf("b", 100))));
  EXPECT_TRUE(absl::IsResourceExhausted(store->Put(KeyOf("a"), EntryOf("a", 100, 2))));
  EXPECT_TRUE(Holds(store.get(), "a"));
}

TEST_F(SqliteStore, ALowerLimitEvictsAtTheStart) {
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(Opened()->Put(KeyOf(name), EntryOf(name, name[0] == 'd' ? 100000 : 0)).ok());
  }
  const Bytes two(2 * ChargeOf(*EntryOf("a")).value());
  const auto store = Opened(two);
  EXPECT_LE(store->stats().charged, two);
  EXPECT_FALSE(Holds(store.get(), "a"));
  EXPECT_TRUE(Holds(store.get(), "b"));
  EXPECT_TRUE(Holds(store.get(), "c"));
  EXPECT_FALSE(Holds(store.get(), "d"));  // alone over the limit
}

TEST_F(SqliteStore, LookupsAreWrittenOnceThereAreMany) {
  constexpr int kEntries = 600;
  const auto store = Opened();
  for (int i = 0; i < kEntries; ++i) {
    ASSERT_TRUE(store->Put(KeyOf(std::to_string(i)), EntryOf(std::to_string(i))).ok());
  }
  SqliteConnection beside = *SqliteConnection::Open(path_, std::chrono::seconds(1));
  const auto last_used = [&beside] { return *beside.Integer("SELECT max(used) FROM entries"); };
  const int64_t before = last_used();
  for (int i = 0; i < 500; ++i) store->Get(KeyOf(std::to_string(i)), Access::kLookup);
  EXPECT_EQ(last_used(), before);
  for (int i = 500; i < kEntries; ++i) store->Get(KeyOf(std::to_string(i)), Access::kLookup);
  EXPECT_GT(last_used(), before);
}

TEST_F(SqliteStore, ASecondOneOnTheSameFileIsRefusedAndNamesTheFirst) {
  const auto store = Opened();
  const std::string other = folder_ / "other";
  std::filesystem::create_symlink(path_, other);
  for (const std::string& path : {path_, other}) {
    const auto second = SqlitePlanStore::Open(OptionsFor(path), &metrics_);
    ASSERT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
    const std::string message(second.status().message());
    EXPECT_NE(message.find(path_), std::string::npos) << message;
    EXPECT_NE(message.find(absl::StrCat("process ", ::getpid())), std::string::npos) << message;
  }
  EXPECT_TRUE(store->Put(KeyOf("a"), EntryOf("a")).ok());
}

TEST_F(SqliteStore, AnotherProgramsDatabaseIsRefusedAndLeftAlone) {
  SqliteConnection other = *SqliteConnection::Open(path_, std::chrono::seconds(1));
  ASSERT_TRUE(other.Execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").ok());
  const auto refused = SqlitePlanStore::Open(OptionsFor(path_), &metrics_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_EQ(*other.Integer("SELECT count(*) FROM theirs"), 1);
}

TEST_F(SqliteStore, ANewerSchemaIsRefusedAndLeftAlone) {
  ASSERT_TRUE(Opened()->Put(KeyOf("a"), EntryOf("a")).ok());
  {
    SqliteConnection newer = *SqliteConnection::Open(path_, std::chrono::seconds(1));
    ASSERT_TRUE(newer.Execute("PRAGMA user_version = 2").ok());
  }
  const auto refused = SqlitePlanStore::Open(OptionsFor(path_), &metrics_);
  ASSERT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("schema version 2"), absl::string_view::npos);
  SqliteConnection same = *SqliteConnection::Open(path_, std::chrono::seconds(1));
  EXPECT_EQ(*same.Integer("SELECT count(*) FROM entries"), 1);
}

// A file as a program made it that kept no tenants.
constexpr char kWithoutTenants[] =
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " generation INTEGER NOT NULL, charge INTEGER NOT NULL, used INTEGER NOT NULL,"
    " entry BLOB NOT NULL);"
    "CREATE INDEX entries_by_use ON entries (used, charge);"
    "PRAGMA application_id = 0x53545747; PRAGMA user_version = 1";
// What one had more that kept tenants and no times.
constexpr char kTenants[] =
    ";ALTER TABLE entries ADD COLUMN tenant BLOB;"
    "CREATE INDEX entries_by_tenant ON entries (tenant, key)";
// What it writes, from the row of another file.
constexpr char kCopyRow[] =
    "ATTACH '%s' AS other;"
    "INSERT INTO main.entries (key, generation, charge, used, entry)"
    " SELECT key, generation, charge, used, entry FROM other.entries WHERE true"
    " ON CONFLICT (key) DO UPDATE SET generation = excluded.generation,"
    " charge = excluded.charge, used = excluded.used, entry = excluded.entry;"
    "DETACH other";

class EarlierProgram : public SqliteStore {
 protected:
  // Has the earlier program write the entry; into a file that it makes where there is a schema.
  void Write(const std::string& name, const std::shared_ptr<const PlanEntry>& entry,
             const std::string& schema = "") {
    const std::string other = folder_ / absl::StrCat(name, ".other", ++others_);
    ASSERT_TRUE(MustOpen(other, &metrics_)->Put(KeyOf(name), entry).ok());
    SqliteConnection earlier = *SqliteConnection::Open(path_, std::chrono::seconds(1));
    ASSERT_TRUE(earlier.Execute(schema).ok());
    std::string copy = kCopyRow;
    copy.replace(copy.find("%s"), 2, other);
    const absl::Status copied = earlier.Execute(copy);
    ASSERT_TRUE(copied.ok()) << copied;
  }

 private:
  int others_ = 0;
};

TEST_F(EarlierProgram, WhatItWroteIsEverybodysUntilItIsRead) {
  const auto write = [this](const std::string& name, const std::string& tenant,
                            const std::string& schema = "") {
    Write(name, EntryOf(name, 0, 1, tenant), schema);
  };
  write("a", "us", kWithoutTenants);
  write("b", "them");
  {
    const auto store = Opened();
    EXPECT_EQ(store->ListOf("us", std::nullopt, 10).value().size(), 2u);
    EXPECT_EQ(store->ListOf("them", std::nullopt, 1).value().size(), 1u);
    EXPECT_TRUE(Holds(store.get(), "a"));
    EXPECT_TRUE(Holds(store.get(), "b"));
    EXPECT_EQ(store->ListOf("us", std::nullopt, 10).value(), std::vector<PlanKey>{KeyOf("a")});
  }
  // The earlier program goes on with the file, and nothing of it is lost for the later one.
  write("c", "us");
  const auto store = Opened();
  EXPECT_EQ(store->ListOf("us", std::nullopt, 10).value().size(), 2u);
  EXPECT_EQ(store->ListOf("them", std::nullopt, 10).value().size(), 2u);
  EXPECT_TRUE(Holds(store.get(), "c"));
  EXPECT_EQ(store->ListOf("them", std::nullopt, 10).value(), std::vector<PlanKey>{KeyOf("b")});
}

// With a program before tenants, and one before times.
TEST_F(EarlierProgram, WhatItWroteHasNoTimeAndLaterChangesHave) {
  for (const char* const more : {"", kTenants}) {
    for (const char* const end : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + end);
    Write("a", EntryChangedAt(500, "a"), absl::StrCat(kWithoutTenants, more));
    const auto read = [this] {
      const auto entry = Opened()->Get(KeyOf("a"), Access::kPeek);
      return std::make_pair(entry ? entry->generation : 0, entry ? entry->updated_s : std::nullopt);
    };
    using Read = std::pair<int64_t, std::optional<int64_t>>;
    EXPECT_EQ(read(), Read(1, std::nullopt));
    ASSERT_TRUE(
        Opened()->Replace(KeyOf("a"), 1, EntryChangedAt(1000, "a", 2), Durability::kRequired).ok());
    EXPECT_EQ(read(), Read(2, 1000));
    // It goes on with the file, and leaves the note beside the entry that it changes.
    Write("a", EntryChangedAt(500, "a", 3));
    EXPECT_EQ(read(), Read(3, std::nullopt));
    ASSERT_TRUE(
        Opened()->Replace(KeyOf("a"), 3, EntryChangedAt(2000, "a", 4), Durability::kRequired).ok());
    EXPECT_EQ(read(), Read(4, 2000));
    SqliteConnection beside = *SqliteConnection::Open(path_, std::chrono::seconds(1));
    for (const char* const note : {"NULL", "7", "'4:x'", "zeroblob(9)"}) {
      ASSERT_TRUE(beside.Execute(absl::StrCat("UPDATE entries SET update_note = ", note)).ok());
      EXPECT_EQ(read(), Read(4, std::nullopt)) << note;
    }
  }
  EXPECT_EQ(metrics_.cache_failures[static_cast<size_t>(CacheFailure::kCorrupt)], 0);
}

TEST_F(SqliteStore, APageOfATenantTouchesItsPartOfAnIndexAlone) {
  ASSERT_TRUE(Opened()->Put(KeyOf("a"), EntryOf("a", 0, 1, "us")).ok());
  SqliteConnection beside = *SqliteConnection::Open(path_, std::chrono::seconds(1));
  SqliteStatement plan = *beside.Prepare(
      "EXPLAIN QUERY PLAN SELECT key FROM entries WHERE tenant = x'00' AND key > x'00'"
      " ORDER BY key LIMIT 10");
  std::string text;
  while (*plan.Step()) text += plan.Blob(3) + "\n";
  EXPECT_NE(text.find("USING COVERING INDEX entries_by_tenant (tenant=? AND key>?)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("TEMP B-TREE"), std::string::npos) << text;
}

TEST_F(SqliteStore, AFolderThatIsNotThereIsAnError) {
  const auto refused = SqlitePlanStore::Open(OptionsFor(folder_ / "no/such/plans"), &metrics_);
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
}

}  // namespace
}  // namespace stowage::testing

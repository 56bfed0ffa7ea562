#include "server/store/redis_plan_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/entries/entry_codec.h"
#include "server/entries/entry_keys.h"
#include "server/store/memory_plan_store.h"
#include "server/store/redis_reported_steps.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/plan_store_conformance.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

const PlanKey kKey = KeyOf("a");

const bool kSkips = (SkipWithoutRedis(), true);

// One for all tests of this binary, which leave it as they found it.
RedisServer* Server() {
  static RedisServer server;  // ends with the process
  return &server;
}

std::unique_ptr<PlanStore> Store(ServerMetrics* metrics, const RedisStoreOptions& options = {}) {
  return std::make_unique<RedisPlanStore>(options, Server()->Pool(), metrics);
}

std::unique_ptr<PlanStore> EmptyRedis() {
  static NoMetrics no_metrics;
  if (!RedisServer::IsInstalled()) return nullptr;
  Server()->Ask({"FLUSHALL"});
  return Store(&no_metrics);
}

std::unique_ptr<PlanStore> MemoryOverRedis() {
  return std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(kAmple), EmptyRedis(),
                                           std::chrono::seconds(10));
}

// Nearly every Get asks Redis.
std::unique_ptr<PlanStore> HardlyFresh() {
  return std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(kAmple), EmptyRedis(),
                                           std::chrono::microseconds(1));
}

std::unique_ptr<PlanStore> MemoryOverFileOverRedis() {
  return std::make_unique<TieredPlanStore>(
      std::make_unique<MemoryPlanStore>(kAmple),
      std::make_unique<TieredPlanStore>(std::make_unique<SqliteInFolder>(false), EmptyRedis(),
                                        std::chrono::seconds(10)),
      std::chrono::milliseconds(1));
}

INSTANTIATE_TEST_SUITE_P(Stores, PlanStoreConformance,
                         ::testing::Values(StoreFactory{"Redis", EmptyRedis, false},
                                           StoreFactory{"MemoryOverRedis", MemoryOverRedis, false},
                                           StoreFactory{"HardlyFresh", HardlyFresh, false},
                                           StoreFactory{"ThreeTiers", MemoryOverFileOverRedis,
                                                        false}),
                         [](const auto& store) { return store.param.name; });

class RedisPlanStoreTest : public ::testing::Test {
 protected:
  RedisPlanStoreTest() { Server()->Ask({"FLUSHALL"}); }

  int64_t Failures(CacheFailure failure) const {
    return metrics_.cache_failures[static_cast<size_t>(failure)];
  }
  int64_t Ask(const RedisCommand& command) { return Server()->Ask(command).integer; }

  const std::string name_ = RedisKeys("stowage").Plan(kKey);
  CountingMetrics metrics_;
  std::unique_ptr<PlanStore> store_ = Store(&metrics_);
};

TEST_F(RedisPlanStoreTest, NamesSayFormatAndEncoding) {
  EXPECT_EQ(name_, "stowage:v" + std::to_string(kEntryVersion) +
                       ":plan:" + std::to_string(kEncodingVersion) + ":" + kKey.digest.ToHex());
  ASSERT_TRUE(store_->Put(kKey, EntryOf("a")).ok());
  EXPECT_EQ(Ask({"EXISTS", name_}), 1);
}

std::shared_ptr<EntryKeys> KeysOf(char digit) {
  return std::make_shared<EntryKeys>(EntryKeys::Keys{std::string(32, digit)});
}

RedisStoreOptions Under(const std::shared_ptr<EntryKeys>& keys) {
  RedisStoreOptions options;
  options.keys = keys;
  return options;
}

// Whoever can write to Redis, and has no key, makes nothing that a server takes for an entry.
TEST_F(RedisPlanStoreTest, WithAKeyWhatIsNotSealedUnderItIsNoEntry) {
  const auto keyed = Store(&metrics_, Under(KeysOf('k'))),
             same = Store(&metrics_, Under(KeysOf('k')));
  ASSERT_TRUE(keyed->Put(kKey, EntryOf("a", 50)).ok());
  const auto found = same->Get(kKey, Access::kLookup);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(EncodeEntry(*found), EncodeEntry(*EntryOf("a", 50)));
  const std::string name = RedisKeys("stowage", true).Plan(kKey);
  const RedisReply sealed = Server()->Ask({"HGET", name, "v"});
  // Sealed by a program of ours without the key; under another key; another entry's own bytes.
  ASSERT_TRUE(Store(&metrics_, Under(KeysOf('x')))->Put(KeyOf("b"), EntryOf("b")).ok());
  const std::string other =
      Server()->Ask({"HGET", RedisKeys("stowage", true).Plan(KeyOf("b")), "v"}).text;
  int64_t refused = 0;
  for (const std::string& forged :
       {EncodeEntry(*EntryOf("a", 60)), EncodeEntry(*EntryOf("a", 60)) + std::string(32, 'm'),
        KeysOf('x')->Seal(name, EncodeEntry(*EntryOf("a", 60))), other, std::string("short")}) {
    Ask({"HSET", name, "g", "1", "v", forged, "t", ""});
    const auto fresh = Store(&metrics_, Under(KeysOf('k')));
    EXPECT_EQ(fresh->Get(kKey, Access::kLookup), nullptr);
    EXPECT_EQ(Failures(CacheFailure::kCorrupt), ++refused);
    EXPECT_EQ(Ask({"EXISTS", name}), 0) << "a new one must not fail on it";
  }
  Ask({"HSET", name, "g", "1", "v", sealed.text, "t", ""});
  EXPECT_NE(Store(&metrics_, Under(KeysOf('k')))->Get(kKey, Access::kLookup), nullptr);
}

// So that neither takes the other's for damage, and deletes it.
TEST_F(RedisPlanStoreTest, ServersWithAKeyAndWithoutShareNothing) {
  const auto keyed = Store(&metrics_, Under(KeysOf('k')));
  ASSERT_TRUE(store_->Put(kKey, EntryOf("a")).ok());
  EXPECT_EQ(keyed->Get(kKey, Access::kLookup), nullptr);
  ASSERT_TRUE(keyed->Put(kKey, EntryOf("a", 9)).ok());
  EXPECT_EQ(Store(&metrics_)->Get(kKey, Access::kLookup)->plans[0].plan->explanation, "");
  EXPECT_EQ(keyed->List(std::nullopt, 10).value().size(), 1u);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt) + Failures(CacheFailure::kForeign), 0);
}

TEST_F(RedisPlanStoreTest, AKeyRotatesWithoutLosingEntries) {
  const std::string old(32, 'o'), young(32, 'y');
  const auto keys = std::make_shared<EntryKeys>(EntryKeys::Keys{old});
  const auto node = Store(&metrics_, Under(keys));
  ASSERT_TRUE(node->Put(kKey, EntryOf("a")).ok());
  keys->Set({young, old});
  EXPECT_NE(node->Get(kKey, Access::kLookup), nullptr);
  ASSERT_TRUE(node->Replace(kKey, 1, EntryOf("a", 0, 2), Durability::kBestEffort).ok());
  keys->Set({young});
  EXPECT_NE(Store(&metrics_, Under(keys))->Get(kKey, Access::kLookup), nullptr);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 0);
}

TEST_F(RedisPlanStoreTest, StepsAreRaisedAcrossServersAndStrangeValuesGiveWay) {
  const RedisKeys keys("stowage");
  RedisReportedSteps one(keys, Server()->Pool()), two(keys, Server()->Pool());
  const ReportedPlan plan{kKey, Bytes(1500), 2, 77};
  EXPECT_EQ(one.Raise(plan, 10), 0);
  EXPECT_EQ(two.Raise(plan, 25), 10);
  EXPECT_EQ(one.Raise(plan, 5), 25);
  EXPECT_EQ(two.Raise(plan, 100'000'000), 25);
  EXPECT_EQ(one.Raise(plan, 1), 100'000'000);
  EXPECT_EQ(one.Raise({kKey, Bytes(1500), 3, 77}, 1), 0);
  const std::string name = keys.Steps(kKey, Bytes(1500), 2, 77);
  EXPECT_GT(Ask({"PTTL", name}), 0);
  Ask({"DEL", name});
  Ask({"RPUSH", name, "list"});
  EXPECT_EQ(one.Raise(plan, 10), 0);
  Ask({"SET", name, "text"});
  EXPECT_EQ(one.Raise(plan, 10), 0);
  EXPECT_EQ(one.Raise(plan, 10), 10);
}

TEST_F(RedisPlanStoreTest, WhatIsNoPlanIsNotListed) {
  ASSERT_TRUE(store_->Put(kKey, EntryOf("a")).ok());
  Ask({"SET", name_ + "0", "longer"});
  Ask({"SET", "stowage:v1:plan:1:nonsense", "x"});
  Ask({"SET", "stowage:v1:plan:x:" + kKey.digest.ToHex(), "x"});
  Ask({"SET", "other", "x"});
  EXPECT_EQ(store_->List(std::nullopt, 10).value(), std::vector<PlanKey>{kKey});
}

TEST_F(RedisPlanStoreTest, ListsManyKeysByPages) {
  std::vector<PlanKey> keys;
  for (int i = 0; i < 2500; ++i) {
    keys.push_back(KeyOf(std::to_string(i)));
    Ask({"HSET", RedisKeys("stowage").Plan(keys.back()), "g", "1"});
  }
  std::sort(keys.begin(), keys.end());
  std::vector<PlanKey> listed = store_->List(std::nullopt, 1200).value();
  while (true) {
    const auto page = store_->List(listed.back(), 1200).value();
    listed.insert(listed.end(), page.begin(), page.end());
    if (page.size() < 1200) break;
  }
  EXPECT_EQ(listed, keys);
}

TEST_F(RedisPlanStoreTest, APageOfATenantIsOneScriptOnceItsIndexIsMade) {
  std::vector<PlanKey> ours;
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i);
    const bool is_ours = i % 4 == 0;
    if (is_ours) ours.push_back(KeyOf(name));
    ASSERT_TRUE(store_->Put(KeyOf(name), EntryOf(name, 0, 1, is_ours ? "us" : "them")).ok());
  }
  std::sort(ours.begin(), ours.end());
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 100).value(), ours);
  EXPECT_EQ(store_->List(std::nullopt, 100).value().size(), 40u);
  Ask({"CONFIG", "RESETSTAT"});
  const std::vector<PlanKey> page = store_->ListOf("us", ours[3], 4).value();
  EXPECT_EQ(page, (std::vector<PlanKey>{ours[4], ours[5], ours[6], ours[7]}));
  EXPECT_EQ(store_->List(std::nullopt, 4).value().size(), 4u);
  const std::string commands = Server()->Ask({"INFO", "commandstats"}).text;
  EXPECT_NE(commands.find("cmdstat_eval:calls=2,"), std::string::npos) << commands;
  EXPECT_NE(commands.find("cmdstat_exists:calls=8,"), std::string::npos) << commands;
  for (const char* walks : {"cmdstat_scan", "cmdstat_hget", "cmdstat_hmget"}) {
    EXPECT_EQ(commands.find(walks), std::string::npos) << commands;
  }
}

TEST_F(RedisPlanStoreTest, AnIndexThatIsLostIsMadeAnew) {
  const std::string index = RedisKeys("stowage").Index("us");
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, 1, "us")).ok());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value().size(),
              1u + static_cast<size_t>(round));
    EXPECT_GT(Ask({"PTTL", index}), 0);
    // Evicted, or of another kind; then written to before it is asked for.
    Ask({"DEL", index});
    if (round == 1) Ask({"SET", index, "text"});
    const std::string name = std::to_string(round);
    ASSERT_TRUE(store_->Put(KeyOf(name), EntryOf(name, 0, 1, "us")).ok());
  }
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value().size(), 4u);
}

TEST_F(RedisPlanStoreTest, WhatHasExpiredLeavesTheIndex) {
  const RedisKeys keys("stowage");
  for (int i = 0; i < 1500; ++i) {
    const PlanKey key = KeyOf(std::to_string(i));
    Ask({"HSET", keys.Plan(key), "g", "1", "t", "us"});
  }
  ASSERT_EQ(store_->ListOf("us", std::nullopt, 2000).value().size(), 1500u);
  for (int i = 1; i < 1500; ++i) Ask({"DEL", keys.Plan(KeyOf(std::to_string(i)))});
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value(), std::vector<PlanKey>{KeyOf("0")});
  EXPECT_EQ(Ask({"ZCARD", keys.Index("us")}), 2) << "the plan, and that none is wanting";
}

// A server before there were indexes writes generation and bytes alone.
TEST_F(RedisPlanStoreTest, WhatAnEarlierServerWroteIsEverybodysUntilItIsRead) {
  const auto by_earlier = [this](const std::string& name, const std::string& tenant) {
    Ask({"HSET", RedisKeys("stowage").Plan(KeyOf(name)), "g", "1", "v",
         EncodeEntry(*EntryOf(name, 0, 1, tenant))});
  };
  by_earlier("a", "us");
  by_earlier("b", "them");
  ASSERT_TRUE(store_->Put(KeyOf("c"), EntryOf("c", 0, 1, "them")).ok());
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value().size(), 2u);
  EXPECT_EQ(store_->ListOf("them", std::nullopt, 10).value().size(), 3u);
  for (const char* name : {"a", "b"})
    ASSERT_NE(store_->Get(KeyOf(name), Access::kInspect), nullptr);
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value(), std::vector<PlanKey>{KeyOf("a")});
  EXPECT_EQ(store_->ListOf("them", std::nullopt, 10).value().size(), 2u);
  // One that comes when the index is made is in it once it is read.
  by_earlier("d", "us");
  ASSERT_NE(store_->Get(KeyOf("d"), Access::kLookup), nullptr);
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value().size(), 2u);
  EXPECT_EQ(store_->List(std::nullopt, 10).value().size(), 4u);
}

TEST_F(RedisPlanStoreTest, ATimeIsOfTheEntryThatItStandsBeside) {
  const auto read = [this] {
    const auto entry = Store(&metrics_)->Get(kKey, Access::kPeek);
    EXPECT_NE(entry, nullptr);
    return entry ? entry->updated_s : std::nullopt;
  };
  ASSERT_TRUE(store_->Put(kKey, EntryChangedAt(1000, "a")).ok());
  EXPECT_EQ(Server()->Ask({"HGET", name_, "u"}).text, "1:1000");
  EXPECT_EQ(read(), 1000);
  // A server that notes no times changes the entry, and leaves the note.
  Ask({"HSET", name_, "g", "2", "v", EncodeEntry(*EntryOf("a", 0, 2)), "t", ""});
  EXPECT_EQ(read(), std::nullopt);
  for (const std::string& note :
       {std::string(), std::string("2"), std::string("2:"), std::string(":1000"),
        std::string("2:1:1"), std::string("2:x"), std::string("2:-1"), std::string("2:8589934593"),
        std::string("2:99999999999999999999"), std::string("\0\xff:\0", 4),
        std::string(100000, '2')}) {
    Ask({"HSET", name_, "u", note});
    EXPECT_EQ(read(), std::nullopt) << note;
  }
  Ask({"HSET", name_, "u", "2:3000"});
  EXPECT_EQ(read(), 3000);
  Ask({"HDEL", name_, "u"});
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 0);
}

// Through a file, and back into a Redis that was emptied.
TEST_F(RedisPlanStoreTest, ACopyHasTheTimeOfTheOriginal) {
  ASSERT_TRUE(store_->Put(kKey, EntryChangedAt(1000, "a")).ok());
  TieredPlanStore tiers(std::make_unique<SqliteInFolder>(true), Store(&metrics_),
                        std::chrono::microseconds(1));
  ASSERT_NE(tiers.Get(kKey, Access::kLookup), nullptr);
  Server()->Ask({"FLUSHALL"});
  EXPECT_EQ(tiers.Get(kKey, Access::kUpdate)->updated_s, 1000);
  const auto back = Store(&metrics_)->Get(kKey, Access::kPeek);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->updated_s, 1000);
}

TEST_F(RedisPlanStoreTest, AnEntryExpiresUnlessItIsLookedUp) {
  RedisStoreOptions options;
  options.time_to_live = std::chrono::seconds(1);
  const auto store = Store(&metrics_, options);
  ASSERT_TRUE(store->Put(kKey, EntryOf("a")).ok());
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_NE(store->Get(kKey, Access::kLookup), nullptr) << i;
  }
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    store->Get(kKey, Access::kPeek);  // does not keep it
  }
  EXPECT_EQ(store->Get(kKey, Access::kPeek), nullptr);
}

TEST_F(RedisPlanStoreTest, ALookupOfAnEntryWithTimeLeftWritesNothing) {
  ASSERT_TRUE(store_->Put(kKey, EntryOf("a")).ok());
  Ask({"CONFIG", "RESETSTAT"});
  for (int i = 0; i < 10; ++i) ASSERT_NE(store_->Get(kKey, Access::kLookup), nullptr);
  const std::string commands = Server()->Ask({"INFO", "commandstats"}).text;
  EXPECT_NE(commands.find("cmdstat_hmget:calls=10,"), std::string::npos) << commands;
  EXPECT_EQ(commands.find("cmdstat_pexpire"), std::string::npos) << commands;
}

TEST_F(RedisPlanStoreTest, AnEraseIsToldFromAnEntryThatNeverWas) {
  EXPECT_EQ(store_->Look(kKey, Access::kLookup).absence, Absence::kUnknown);
  ASSERT_TRUE(store_->Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(*store_->Erase(kKey));
  EXPECT_EQ(store_->Look(kKey, Access::kLookup).absence, Absence::kErased);
  EXPECT_TRUE(absl::IsAborted(store_->Put(kKey, EntryOf("a")))) << "a copy of another server";
  ASSERT_TRUE(store_->Replace(kKey, 0, EntryOf("a"), Durability::kBestEffort).ok());
  Server()->Ask({"DEL", name_});
  EXPECT_EQ(store_->Look(kKey, Access::kLookup).absence, Absence::kUnknown);
}

// What lies under the key instead of an entry, and what it is counted as.
struct Strange {
  const char* name;
  std::function<std::vector<RedisCommand>(const std::string& key)> commands;
  CacheFailure failure;
};

std::string Encoded() { return EncodeEntry(*EntryOf("a")); }

std::string Changed(size_t at) {
  std::string bytes = Encoded();
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  return bytes;
}

class StrangeValues : public RedisPlanStoreTest, public ::testing::WithParamInterface<Strange> {};

TEST_P(StrangeValues, IsAMissCountedAndGivesWay) {
  for (const RedisCommand& command : GetParam().commands(name_)) Server()->Ask(command);
  EXPECT_EQ(store_->Get(kKey, Access::kLookup), nullptr);
  EXPECT_EQ(Failures(GetParam().failure), 1);
  EXPECT_EQ(Ask({"EXISTS", name_}), 0);
  EXPECT_TRUE(store_->Put(kKey, EntryOf("a")).ok());
  EXPECT_NE(store_->Get(kKey, Access::kLookup), nullptr);
}

TEST_P(StrangeValues, IsReplacedByAPut) {
  for (const RedisCommand& command : GetParam().commands(name_)) Server()->Ask(command);
  store_->Put(kKey, EntryOf("a", 0, 9)).IgnoreError();
  EXPECT_NE(store_->Get(kKey, Access::kLookup), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    All, StrangeValues,
    ::testing::Values(
        Strange{"Text",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"SET", key, "hello"}};
                },
                CacheFailure::kCorrupt},
        Strange{"List",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"RPUSH", key, "1"}};
                },
                CacheFailure::kCorrupt},
        Strange{"NoBytes",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"HSET", key, "g", "1"}};
                },
                CacheFailure::kCorrupt},
        Strange{"NoGeneration",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"HSET", key, "v", Encoded()}};
                },
                CacheFailure::kCorrupt},
        Strange{"AnotherGeneration",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"HSET", key, "g", "7", "v", Encoded()}};
                },
                CacheFailure::kCorrupt},
        Strange{"NoNumber",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"HSET", key, "g", "x", "v", Encoded()}};
                },
                CacheFailure::kCorrupt},
        Strange{"Cut",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{
                      {"HSET", key, "g", "1", "v", Encoded().substr(0, 100)}};
                },
                CacheFailure::kCorrupt},
        Strange{"Flipped",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"HSET", key, "g", "1", "v", Changed(60)}};
                },
                CacheFailure::kCorrupt},
        Strange{"AnotherFormat",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{{"HSET", key, "g", "1", "v", Changed(4)}};
                },
                CacheFailure::kForeign},
        Strange{"AnotherKeys",
                [](const std::string& key) {
                  return std::vector<RedisCommand>{
                      {"HSET", key, "g", "1", "v", EncodeEntry(*EntryOf("b"))}};
                },
                CacheFailure::kCorrupt}),
    [](const auto& strange) { return strange.param.name; });

TEST_F(RedisPlanStoreTest, AValueOverTheLimitIsAMissAndNotAnOutage) {
  RedisOptions options = Server()->options();
  options.largest_reply = 100000;
  const auto pool = std::make_shared<RedisPool>(options);
  RedisPlanStore store(RedisStoreOptions{}, pool, &metrics_);
  for (int i = 0; i < 5; ++i) {
    Server()->Ask({"HSET", name_, "g", "1", "v", std::string(10 << 20, 'x')});
    EXPECT_EQ(store.Get(kKey, Access::kLookup), nullptr);
  }
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 5);
  EXPECT_FALSE(pool->resting());
  EXPECT_EQ(Ask({"EXISTS", name_}), 0);
}

TEST_F(RedisPlanStoreTest, AnEntryOverTheLimitIsRefused) {
  RedisStoreOptions options;
  options.largest_entry = ChargeOf(*EntryOf("a", 100));
  const auto store = Store(&metrics_, options);
  EXPECT_TRUE(store->Put(kKey, EntryOf("a", 100)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store->Put(kKey, EntryOf("a", 1000, 2))));
  EXPECT_EQ(store->Get(kKey, Access::kLookup)->generation, 1);
}

TEST_F(RedisPlanStoreTest, StatsAreTheDatabases) {
  RedisStoreOptions options;
  options.stats_age = std::chrono::milliseconds(0);
  const auto store = Store(&metrics_, options);
  EXPECT_EQ(store->stats().entries, 0);
  ASSERT_TRUE(store->Put(kKey, EntryOf("a")).ok());
  EXPECT_EQ(store->stats().entries, 3) << "a plan and two indexes";
  EXPECT_GT(store->stats().charged, Bytes(100000));
}

TEST_F(RedisPlanStoreTest, OfManyServersThatChangeAnEntryEachChangeIsMadeOnce) {
  constexpr int kServers = 4;
  constexpr int64_t kChanges = 50;
  std::vector<std::thread> servers;
  for (int s = 0; s < kServers; ++s) {
    servers.emplace_back([this] {
      const auto store = Store(&metrics_);
      for (int64_t made = 0; made < kChanges;) {
        const auto entry = store->Get(kKey, Access::kUpdate);
        auto next = std::make_shared<PlanEntry>(entry ? *entry : *EntryOf("a", 0, 0));
        ++next->generation;
        const absl::Status put = store->Put(kKey, next);
        ASSERT_TRUE(put.ok() || absl::IsAborted(put)) << put;
        if (put.ok()) ++made;
      }
    });
  }
  for (std::thread& server : servers) server.join();
  EXPECT_EQ(store_->Get(kKey, Access::kPeek)->generation, kServers * kChanges);
}

}  // namespace
}  // namespace stowage::testing

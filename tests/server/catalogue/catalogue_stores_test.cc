// A catalogue in every kind of store that a server may have.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/catalogue/catalogue_import.h"
#include "server/entries/entry_codec.h"
#include "server/entries/reports.h"
#include "server/store/memory_plan_store.h"
#include "server/store/redis_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "solvers/zoo/generate.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/store/sqlite_files.h"

namespace stowage::testing {
namespace {

constexpr Bytes kAmple{64 << 20};
constexpr int kEntries = 4;

// By the name of a store, encoded: equal bytes are equal entries.
using Contents = std::map<PlanKey, std::string>;

// Chains of a network of images and of a decoder, and a graph.
const std::vector<NetworkCatalogue>& Networks() {
  static const auto* const kNetworks = new std::vector<NetworkCatalogue>{
      *Generate({"alexnet", {224}, {8, 16}, {"v100"}}), *Generate({"gpt2", {32}, {1}, {"v100"}}),
      *Generate({"alexnet", {64}, {2}, {"v100"}, 10, /*graph=*/true})};
  return *kNetworks;
}

std::vector<NetworkCatalogue> OfVersion(const std::string& version) {
  std::vector<NetworkCatalogue> networks = Networks();
  for (NetworkCatalogue& network : networks) network.solver_version = version;
  return networks;
}

std::vector<CatalogueEnvironment> Gpu() {
  Device device;
  device.model = "Tesla V100-PCIE-16GB";
  device.framework = "libtorch 2.11.0";
  device.allocation_granularity = Bytes(512);
  return {{"v100", "vision", device}};
}

// One for all tests of this binary.
RedisServer* Redis() {
  static RedisServer server;  // ends with the process
  return &server;
}

std::unique_ptr<PlanStore> Memory() { return std::make_unique<MemoryPlanStore>(kAmple); }

std::unique_ptr<PlanStore> File() { return std::make_unique<SqliteInFolder>(false); }

std::unique_ptr<PlanStore> ReopenedFile() { return std::make_unique<SqliteInFolder>(true); }

// Null where there is none to run.
std::unique_ptr<PlanStore> EmptyRedis() {
  static NoMetrics metrics;
  if (!RedisServer::IsInstalled()) return nullptr;
  Redis()->Ask({"FLUSHALL"});
  return std::make_unique<RedisPlanStore>(RedisStoreOptions(), Redis()->Pool(), &metrics);
}

std::unique_ptr<PlanStore> ThreeTiers() {
  std::unique_ptr<PlanStore> redis = EmptyRedis();
  if (redis == nullptr) return nullptr;
  return std::make_unique<TieredPlanStore>(
      Memory(),
      std::make_unique<TieredPlanStore>(File(), std::move(redis), std::chrono::seconds(10)),
      std::chrono::milliseconds(1));
}

struct Factory {
  std::string name;
  std::function<std::unique_ptr<PlanStore>()> make;
};

class CatalogueInStore : public ::testing::TestWithParam<Factory> {
 protected:
  void SetUp() override {
    store_ = GetParam().make();
    if (store_ == nullptr) GTEST_SKIP() << "redis-server is not installed";
  }

  CatalogueImport Import(const std::string& version) {
    const CatalogueImport import = ImportCatalogue(OfVersion(version), Gpu(), store_.get());
    EXPECT_EQ(import.failed, 0) << import.why;
    return import;
  }

  std::shared_ptr<const PlanEntry> At(const PlanKey& key) {
    return store_->Get(key, Access::kUpdate);
  }

  Contents Held() {
    Contents contents;
    const std::vector<PlanKey> keys = store_->List(std::nullopt, 100).value();
    for (const PlanKey& key : keys) contents[key] = EncodeEntry(*At(key));
    return contents;
  }

  // Changes the entry of `key` as whoever works with it does.
  void Change(const PlanKey& key, const std::function<void(PlanEntry*)>& change) {
    PlanEntry changed = *At(key);
    change(&changed);
    const int64_t read = changed.generation++;
    ASSERT_TRUE(store_
                    ->Replace(key, read, std::make_shared<const PlanEntry>(std::move(changed)),
                              Durability::kRequired)
                    .ok());
  }

  std::unique_ptr<PlanStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Stores, CatalogueInStore,
                         ::testing::Values(Factory{"Memory", Memory}, Factory{"File", File},
                                           Factory{"ReopenedFile", ReopenedFile},
                                           Factory{"Redis", EmptyRedis},
                                           Factory{"ThreeTiers", ThreeTiers}),
                         [](const auto& store) { return store.param.name; });

TEST_P(CatalogueInStore, WhatIsReadBackIsWhatTheEvaluatorAccepts) {
  EXPECT_EQ(Import("1.0").imported, kEntries);
  const std::vector<PlanKey> keys = store_->List(std::nullopt, 100).value();
  ASSERT_EQ(keys.size(), size_t{kEntries});
  for (const PlanKey& key : keys) {
    const std::shared_ptr<const PlanEntry> entry = At(key);
    ASSERT_NE(entry, nullptr);
    SCOPED_TRACE(entry->name);
    EXPECT_EQ(entry->tenant, "vision");
    EXPECT_TRUE(entry->samples.empty());
    EXPECT_TRUE(ProfileWanted(*entry));
    const Problem& problem = entry->reference->problem();
    ASSERT_GT(entry->plans.size(), 1u);
    for (const StoredPlan& stored : entry->plans) {
      const auto replay = Evaluator(problem).Run(stored.plan->schedule);
      ASSERT_TRUE(replay.ok()) << replay.status();
      EXPECT_EQ(replay->peak, stored.plan->prediction.peak);
      EXPECT_EQ(replay->makespan, stored.plan->prediction.makespan);
      EXPECT_LE(replay->peak, stored.plan->budget);
      EXPECT_EQ(stored.plan->provenance.solver_version, "1.0");
    }
    ASSERT_NE(entry->frontier, nullptr);
    for (const Frontier::Point& point : entry->frontier->points()) {
      const auto replay = Evaluator(problem).Run(point.schedule.Unpack());
      ASSERT_TRUE(replay.ok()) << replay.status();
      EXPECT_EQ(replay->peak, point.peak);
      EXPECT_EQ(replay->makespan, point.makespan);
    }
  }
}

TEST_P(CatalogueInStore, TwiceIsOnce) {
  Import("1.0");
  const Contents once = Held();
  EXPECT_EQ(once.size(), size_t{kEntries});
  const CatalogueImport again = Import("1.0");
  EXPECT_EQ(again.imported + again.replaced, 0);
  EXPECT_EQ(again.present, kEntries);
  EXPECT_EQ(Held(), once);
}

TEST_P(CatalogueInStore, AnOlderOneIsReplacedAndANewerOneStays) {
  Import("1.0");
  const Contents older = Held();
  EXPECT_EQ(Import("1.1").replaced, kEntries);
  const Contents newer = Held();
  ASSERT_EQ(newer.size(), size_t{kEntries});
  for (const auto& [key, bytes] : newer) {
    EXPECT_NE(bytes, older.at(key));
    const std::shared_ptr<const PlanEntry> entry = At(key);
    EXPECT_TRUE(entry->updated_s);
    for (const StoredPlan& stored : entry->plans) {
      EXPECT_EQ(stored.plan->provenance.solver_version, "1.1");
    }
  }
  const CatalogueImport back = Import("1.0");
  EXPECT_EQ(back.present, kEntries);
  EXPECT_EQ(Held(), newer);
}

// What people and jobs have made of an entry is theirs, whatever version comes.
TEST_P(CatalogueInStore, WhatHasBecomeOfAnEntryStays) {
  Import("1.0");
  const std::vector<PlanKey> keys = store_->List(std::nullopt, 100).value();
  ASSERT_EQ(keys.size(), size_t{kEntries});
  Change(keys[0], [](PlanEntry* entry) { entry->samples = {{7, entry->reference, 0}}; });
  Change(keys[1], [](PlanEntry* entry) { entry->plans.front().pinned = true; });
  Change(keys[2], [](PlanEntry* entry) {
    // One budget solved anew by a server that is newer than the catalogue.
    Plan solved = *entry->plans.back().plan;
    solved.provenance.solver_version = "2.0";
    entry->plans.back().plan = std::make_shared<const Plan>(std::move(solved));
  });
  Change(keys[3], [](PlanEntry* entry) { entry->frozen = true; });
  const Contents before = Held();
  EXPECT_EQ(Import("1.1").present, kEntries);
  EXPECT_EQ(Held(), before);
  ASSERT_TRUE(*store_->Erase(keys[2]));
  const CatalogueImport after = Import("1.0");
  EXPECT_EQ(after.imported + after.present, kEntries)
      << "at once, or once the erasure is everywhere";
  EXPECT_EQ(after.replaced, 0);
}

}  // namespace
}  // namespace stowage::testing

// Folders with SQLite stores for tests.
#ifndef STOWAGE_TESTS_SERVER_STORE_SQLITE_FILES_H_
#define STOWAGE_TESTS_SERVER_STORE_SQLITE_FILES_H_

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/sqlite_plan_store.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {

constexpr Bytes kAmpleFile{64 << 20};

inline SqlitePlanStore::Options OptionsFor(const std::string& path, Bytes max_bytes = kAmpleFile) {
  SqlitePlanStore::Options options;
  options.file.path = path;
  options.max_bytes = max_bytes;
  return options;
}

inline std::unique_ptr<SqlitePlanStore> MustOpen(const std::string& path, ServerMetrics* metrics,
                                                 Bytes max_bytes = kAmpleFile) {
  auto store = SqlitePlanStore::Open(OptionsFor(path, max_bytes), metrics);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A store in a folder of its own. If it reopens, its calls come one at a time, and the store is closed
// and opened again before each of the first hundred and some of the others.
class SqliteInFolder final : public PlanStore {
  template <class Do>
  auto Call(const Do& call) const {
    if (!reopens_) return call(store_.get());
    std::lock_guard<std::mutex> lock(mutex_);
    if (++calls_ <= 100 || calls_ % 50 == 0) {
      store_.reset();
      store_ = MustOpen(folder_ / "plans", &metrics_);
    }
    return call(store_.get());
  }

 public:
  explicit SqliteInFolder(bool reopens) : reopens_(reopens) {
    store_ = MustOpen(folder_ / "plans", &metrics_);
  }

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override {
    return Call([&](PlanStore* store) { return store->Get(key, access); });
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override {
    return Call([&](PlanStore* store) { return store->GetNow(key, access); });
  }
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override {
    return Call([&](PlanStore* store) { return store->Put(key, std::move(entry)); });
  }
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override {
    return Call(
        [&](PlanStore* store) { return store->Replace(key, read, std::move(entry), durability); });
  }
  absl::StatusOr<bool> Erase(const PlanKey& key) override {
    return Call([&](PlanStore* store) { return store->Erase(key); });
  }
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override {
    return Call([&](PlanStore* store) { return store->List(after, limit); });
  }
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override {
    return Call([&](PlanStore* store) { return store->ListOf(tenant, after, limit); });
  }
  PlanStoreStats stats() const override {
    return Call([](PlanStore* store) { return store->stats(); });
  }

 private:
  const bool reopens_;
  TemporaryFolder folder_;
  mutable NoMetrics metrics_;
  mutable std::mutex mutex_;
  mutable int calls_ = 0;
  mutable std::unique_ptr<SqlitePlanStore> store_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_SQLITE_FILES_H_

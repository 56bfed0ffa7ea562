// Plans in a SQLite file: they outlive the process. Bounded by bytes charged (ChargeOf: what an
// entry takes in memory, which is more than its bytes in the file), the least recently looked-up
// goes first.
//
// Every entry read is decoded and validated before anyone sees it (entry_codec.h); one that is
// damaged or foreign is a miss, counted and dropped. A database that is damaged itself is moved
// aside to PATH.corrupt-N, counted, and a new one begun, at the start or whenever it is found. What
// cannot be written is not: Put says so, and everything else goes on. A change that is required, and an
// Erase, is on the disk once it is done; others may be lost when the power fails.
//
// One process at a time has the file: PATH.lock says which. Several threads read at once, one
// writes; readers do not wait for it. A lookup writes nothing: when entries were looked up is
// written with the next eviction, or once some hundred have been.
#ifndef STOWAGE_SERVER_STORE_SQLITE_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_SQLITE_PLAN_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "server/observe/server_metrics.h"
#include "server/store/file_lock.h"
#include "server/store/known_entries.h"
#include "server/store/plan_store.h"
#include "server/store/sqlite_entries.h"

namespace stowage {

class SqlitePlanStore final : public PlanStore {
 public:
  struct Options {
    SqliteFile file;
    Bytes max_bytes{int64_t{1} << 30};
  };

  // FAILED_PRECONDITION: another process has the file (the message names both), or it is a database
  // of another program or of a newer schema. UNAVAILABLE: it cannot be opened. `metrics` outlives
  // the store; it counts what goes wrong in CacheTier::kSqlite.
  static absl::StatusOr<std::unique_ptr<SqlitePlanStore>> Open(Options options,
                                                               ServerMetrics* metrics);
  ~SqlitePlanStore() override;

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  PlanAnswer Look(const PlanKey& key, Access access) override;
  // What is held is compared with its row by generation and seal; neither is decoded.
  PlanAnswer LookAgain(const PlanKey& key, Access access,
                       const std::shared_ptr<const PlanEntry>& held) override;
  // Nothing: the file may have to be waited for.
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  // Beside what every store says, UNAVAILABLE: it could not be written.
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  absl::StatusOr<bool> Erase(const PlanKey& key) override;
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  void Used(const std::vector<PlanKey>& keys) override;
  PlanStoreStats stats() const override;

 private:
  // What a transaction does to the totals once it is committed.
  struct Change {
    int64_t entries = 0;
    int64_t charged = 0;
    int64_t evicted = 0;
  };

  SqlitePlanStore(Options options, FileLock lock, ServerMetrics* metrics);

  // With write_mutex_ held, as all that changes something:
  absl::Status OpenEntries();
  absl::Status Reopen();
  template <class Work>
  absl::Status InTransaction(const Work& work);
  template <class Work>
  absl::Status InTransaction(const Work& work, Durability durability);
  template <class Work>
  absl::Status Write(const Work& work, Durability durability);
  // Where what is there, of generation 0 when there is nothing, may be replaced.
  template <class MayReplace>
  absl::Status WriteEntry(const PlanKey& key, std::shared_ptr<const PlanEntry> entry,
                          const MayReplace& may_replace, Durability durability);
  template <class MayReplace>
  absl::Status WriteRow(const PlanKey& key, const ChargedEntry& entry, const std::string& bytes,
                        const MayReplace& may_replace, Change* change);
  absl::Status Evict(Change* change);
  absl::Status WriteUses();

  template <class T, class Reading>
  absl::StatusOr<T> Read(const Reading& reading);
  // Whatever is there, or only what is of that generation.
  absl::StatusOr<bool> Remove(const PlanKey& key, std::optional<int64_t> generation,
                              Durability durability);
  void Use(const PlanKey& key);
  // Notes the tenant of an entry that a program before this one has written, unless somebody writes.
  void NoteTenant(const PlanKey& key, const std::string& tenant);
  void Count(CacheFailure failure) { metrics_->CacheFailed(CacheTier::kSqlite, failure); }
  bool is_over(int64_t more) const { return charged_ + more > options_.max_bytes.value(); }

  const Options options_;
  const FileLock lock_;  // outlives entries_
  ServerMetrics* const metrics_;

  std::mutex write_mutex_;
  // Held shared while entries_ is read by others than the writer, alone while it is replaced.
  std::shared_mutex open_mutex_;
  std::unique_ptr<SqliteEntries> entries_;  // null: could not be opened again
  int64_t opened_ = 0;                      // how often

  std::atomic<int64_t> count_{0}, charged_{0}, evicted_{0};
  KnownEntries known_;

  std::atomic<int64_t> clock_{0};
  std::mutex uses_mutex_;
  std::unordered_map<PlanKey, int64_t, absl::Hash<PlanKey>> uses_;  // not yet written
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_SQLITE_PLAN_STORE_H_

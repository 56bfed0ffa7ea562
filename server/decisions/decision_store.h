// Where a server's own copy of all decisions lies.
#ifndef STOWAGE_SERVER_DECISIONS_DECISION_STORE_H_
#define STOWAGE_SERVER_DECISIONS_DECISION_STORE_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/decisions/decision.h"
#include "server/store/file_lock.h"
#include "server/store/sqlite_connection.h"

namespace stowage {

using KeyedDecision = std::pair<PlanKey, Decision>;

// Thread-safe.
class DecisionStore {
 public:
  virtual ~DecisionStore() = default;

  // All of them. DATA_LOSS, or UNIMPLEMENTED for those of another version: it names the store.
  virtual absl::StatusOr<std::vector<KeyedDecision>> Load() = 0;

  // Each in the place of the one for the same, all or none. UNAVAILABLE: none.
  virtual absl::Status Write(const PlanKey& key, const std::vector<Decision>& decisions) = 0;

  // Drops what is about generations up to that one, but for the deletion. UNAVAILABLE: they stay.
  virtual absl::Status DropUpTo(const PlanKey& key, int64_t generation) = 0;
};

// Of this process alone.
class MemoryDecisionStore final : public DecisionStore {
 public:
  absl::StatusOr<std::vector<KeyedDecision>> Load() override;
  absl::Status Write(const PlanKey& key, const std::vector<Decision>& decisions) override;
  absl::Status DropUpTo(const PlanKey& key, int64_t generation) override;

 private:
  std::mutex mutex_;
  std::map<PlanKey, std::map<DecisionId, Decision>> decisions_;
};

// In a SQLite file of its own, so that a file of plans may be thrown away. With synchronous=FULL: what
// was written is there after a power cut. A write costs a sync of the disk, some milliseconds.
//
// Schema version 1 (user_version; application_id "STWD"):
//   decisions(encoding, digest, kind, budget, generation, record)   record: EncodeDecision
// One process at a time has the file: PATH.lock says which. What is damaged is not moved aside:
// nothing else knows what was decided.
class SqliteDecisionStore final : public DecisionStore {
 public:
  // FAILED_PRECONDITION: another process has the file, or it is a database of another program or of a
  // newer schema. DATA_LOSS: it is damaged. UNAVAILABLE: it cannot be opened. All name the file.
  static absl::StatusOr<std::unique_ptr<SqliteDecisionStore>> Open(
      const std::string& path, std::chrono::milliseconds busy_timeout = std::chrono::seconds(1));

  // All that is in the file, whoever has it: for a copy of it while its server runs. NOT_FOUND: there is no file;
  // else the errors of Open and Load. Changes nothing.
  static absl::StatusOr<std::vector<KeyedDecision>> ReadAll(
      const std::string& path, std::chrono::milliseconds busy_timeout = std::chrono::seconds(1));

  absl::StatusOr<std::vector<KeyedDecision>> Load() override;
  absl::Status Write(const PlanKey& key, const std::vector<Decision>& decisions) override;
  absl::Status DropUpTo(const PlanKey& key, int64_t generation) override;

 private:
  SqliteDecisionStore(std::string path, FileLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  absl::Status Connect(std::chrono::milliseconds busy_timeout);
  absl::Status WriteRow(const PlanKey& key, const Decision& decision);
  // Errors with the file's name.
  absl::Status Named(const absl::Status& status) const;

  const std::string path_;
  const FileLock lock_;  // outlives the connection
  std::mutex mutex_;
  SqliteConnection connection_;
  SqliteStatement write_, drop_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_DECISION_STORE_H_

#include "server/decisions/decision_store.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr int64_t kDecisionsApplication = 0x53545744;  // "STWD"
constexpr int64_t kDecisionsSchema = 1;

std::optional<Digest> DigestOfBinary(const std::string& binary) {
  if (binary.size() != Digest::kSize) return std::nullopt;
  std::array<uint8_t, Digest::kSize> bytes;
  std::memcpy(bytes.data(), binary.data(), bytes.size());
  return Digest(bytes);
}

absl::Status CreateDecisions(SqliteConnection* connection) {
  SqliteTransaction transaction(connection);
  absl::Status status = transaction.Begin();
  if (!status.ok()) return status;
  status = connection->Execute(absl::StrCat(
      "CREATE TABLE decisions (encoding INTEGER NOT NULL, digest BLOB NOT NULL,"
      " kind INTEGER NOT NULL, budget INTEGER NOT NULL, generation INTEGER NOT NULL,"
      " record BLOB NOT NULL, PRIMARY KEY (encoding, digest, kind, budget)) WITHOUT ROWID;"
      "PRAGMA application_id = ",
      kDecisionsApplication, "; PRAGMA user_version = ", kDecisionsSchema));
  return status.ok() ? transaction.Commit() : status;
}

absl::Status CheckWhole(SqliteConnection* connection) {
  absl::StatusOr<SqliteStatement> check = connection->Prepare("PRAGMA quick_check(1)");
  if (!check.ok()) return check.status();
  const absl::StatusOr<bool> row = check->Step();
  if (!row.ok()) return row.status();
  if (!*row || check->Blob(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("damaged: ", check->Blob(0)));
}

absl::Status CheckProgram(int64_t application, int64_t version) {
  if (application != kDecisionsApplication) {
    return absl::FailedPreconditionError("is a database of another program");
  }
  if (version != kDecisionsSchema) {
    return absl::FailedPreconditionError(
        absl::StrCat("has schema version ", version, ", this program knows ", kDecisionsSchema));
  }
  return absl::OkStatus();
}

// Creates the schema in an empty database.
absl::Status CheckDecisionsSchema(SqliteConnection* connection) {
  const auto objects = connection->Integer("SELECT count(*) FROM sqlite_master");
  if (!objects.ok()) return objects.status();
  const auto application = connection->Integer("PRAGMA application_id");
  if (!application.ok()) return application.status();
  const auto version = connection->Integer("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*objects == 0 && *application == 0 && *version == 0) return CreateDecisions(connection);
  const absl::Status ours = CheckProgram(*application, *version);
  return ours.ok() ? CheckWhole(connection) : ours;
}

absl::StatusOr<std::vector<KeyedDecision>> AllIn(SqliteConnection* connection) {
  absl::StatusOr<SqliteStatement> rows =
      connection->Prepare("SELECT encoding, digest, record FROM decisions");
  if (!rows.ok()) return rows.status();
  std::vector<KeyedDecision> all;
  for (;;) {
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) return all;
    const std::optional<Digest> digest = DigestOfBinary(rows->Blob(1));
    if (!digest) return absl::DataLossError("a row without a key");
    const PlanKey key{static_cast<int32_t>(rows->Integer(0)), *digest};
    absl::StatusOr<Decision> decision = DecodeDecision(key, rows->Blob(2));
    if (!decision.ok()) {
      return absl::Status(
          decision.status().code(),
          absl::StrCat("the one about ", digest->ToHex(), ": ", decision.status().message()));
    }
    all.emplace_back(key, *std::move(decision));
  }
}

absl::StatusOr<std::vector<KeyedDecision>> ReadThrough(SqliteConnection* connection) {
  const auto application = connection->Integer("PRAGMA application_id");
  if (!application.ok()) return application.status();
  const auto version = connection->Integer("PRAGMA user_version");
  if (!version.ok()) return version.status();
  const absl::Status ours = CheckProgram(*application, *version);
  return ours.ok() ? AllIn(connection) : ours;
}

absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("decisions ", path, ": ", status.message()));
}

bool IsUpTo(const Decision& decision, int64_t generation) {
  return decision.kind != DecisionKind::kDeletion && decision.generation <= generation;
}

}  // namespace

absl::StatusOr<std::vector<KeyedDecision>> MemoryDecisionStore::Load() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<KeyedDecision> all;
  for (const auto& [key, of_key] : decisions_) {
    for (const auto& [id, decision] : of_key) all.emplace_back(key, decision);
  }
  return all;
}

absl::Status MemoryDecisionStore::Write(const PlanKey& key,
                                        const std::vector<Decision>& decisions) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Decision& decision : decisions) decisions_[key][IdOf(decision)] = decision;
  return absl::OkStatus();
}

absl::Status MemoryDecisionStore::DropUpTo(const PlanKey& key, int64_t generation) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto of_key = decisions_.find(key);
  if (of_key == decisions_.end()) return absl::OkStatus();
  for (auto it = of_key->second.begin(); it != of_key->second.end();) {
    it = IsUpTo(it->second, generation) ? of_key->second.erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SqliteDecisionStore>> SqliteDecisionStore::Open(
    const std::string& path, std::chrono::milliseconds busy_timeout) {
  // One file has one lock, whatever it is called by.
  std::error_code ignored;
  const auto canonical = std::filesystem::weakly_canonical(path, ignored);
  const std::string file = canonical.empty() ? path : canonical.string();
  absl::StatusOr<FileLock> lock = FileLock::Take(file + ".lock");
  if (!lock.ok()) {
    return absl::Status(lock.status().code(),
                        absl::StrCat("decisions ", file, ": ", lock.status().message()));
  }
  std::unique_ptr<SqliteDecisionStore> store(new SqliteDecisionStore(file, *std::move(lock)));
  const absl::Status connected = store->Connect(busy_timeout);
  if (!connected.ok()) return store->Named(connected);
  return store;
}

absl::Status SqliteDecisionStore::Connect(std::chrono::milliseconds busy_timeout) {
  absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(path_, busy_timeout);
  if (!connection.ok()) return connection.status();
  connection_ = *std::move(connection);
  // Before the schema: what makes it is to be there after a power cut, too.
  absl::Status status = connection_.Execute("PRAGMA synchronous = FULL");
  if (status.ok()) status = CheckDecisionsSchema(&connection_);
  if (status.ok()) {
    status = connection_.Execute("PRAGMA journal_mode = WAL; PRAGMA cell_size_check = ON");
  }
  if (!status.ok()) return status;
  auto write = connection_.Prepare(
      "INSERT OR REPLACE INTO decisions (encoding, digest, kind, budget, generation, record)"
      " VALUES (?, ?, ?, ?, ?, ?)");
  if (!write.ok()) return write.status();
  write_ = *std::move(write);
  auto drop = connection_.Prepare(
      "DELETE FROM decisions WHERE encoding = ? AND digest = ? AND kind != ? AND generation <= ?");
  if (!drop.ok()) return drop.status();
  drop_ = *std::move(drop);
  return absl::OkStatus();
}

absl::Status SqliteDecisionStore::Named(const absl::Status& status) const {
  return stowage::Named(path_, status);
}

absl::StatusOr<std::vector<KeyedDecision>> SqliteDecisionStore::ReadAll(
    const std::string& path, std::chrono::milliseconds busy_timeout) {
  std::error_code error;
  // To open it would make it.
  if (!std::filesystem::exists(path, error)) {
    return stowage::Named(path, absl::NotFoundError("there is no such file"));
  }
  absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(path, busy_timeout);
  if (!connection.ok()) return stowage::Named(path, connection.status());
  absl::StatusOr<std::vector<KeyedDecision>> all = ReadThrough(&*connection);
  if (!all.ok()) return stowage::Named(path, all.status());
  return all;
}

absl::StatusOr<std::vector<KeyedDecision>> SqliteDecisionStore::Load() {
  std::lock_guard<std::mutex> lock(mutex_);
  absl::StatusOr<std::vector<KeyedDecision>> all = AllIn(&connection_);
  if (!all.ok()) return Named(all.status());
  return all;
}

absl::Status SqliteDecisionStore::WriteRow(const PlanKey& key, const Decision& decision) {
  const std::string digest = key.digest.ToBinary();
  const std::string record = EncodeDecision(key, decision);
  return write_.Bind(key.encoding_version)
      .BindBlob(digest)
      .Bind(static_cast<int64_t>(decision.kind))
      .Bind(decision.budget.value())
      .Bind(decision.generation)
      .BindBlob(record)
      .Run();
}

absl::Status SqliteDecisionStore::Write(const PlanKey& key,
                                        const std::vector<Decision>& decisions) {
  std::lock_guard<std::mutex> lock(mutex_);
  SqliteTransaction transaction(&connection_);
  absl::Status status = transaction.Begin();
  for (const Decision& decision : decisions) {
    if (status.ok()) status = WriteRow(key, decision);
  }
  if (status.ok()) status = transaction.Commit();
  return status.ok() ? status : absl::UnavailableError(Named(status).message());
}

absl::Status SqliteDecisionStore::DropUpTo(const PlanKey& key, int64_t generation) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string digest = key.digest.ToBinary();
  const absl::Status status = drop_.Bind(key.encoding_version)
                                  .BindBlob(digest)
                                  .Bind(static_cast<int64_t>(DecisionKind::kDeletion))
                                  .Bind(generation)
                                  .Run();
  return status.ok() ? status : absl::UnavailableError(Named(status).message());
}

}  // namespace stowage

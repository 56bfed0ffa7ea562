#include "server/store/sqlite_entries.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr int64_t kApplication = 0x53545747;  // "STWG"
constexpr int64_t kSchemaVersion = 1;
constexpr size_t kVersionSize = 4;
constexpr int kMostMovedAside = 4;
constexpr char kTenantIndex[] = "CREATE INDEX entries_by_tenant ON entries (tenant, key)";

// Big-endian with the sign turned, so that memcmp orders as PlanKey does.
std::string KeyBytes(const PlanKey& key) {
  const uint32_t version = static_cast<uint32_t>(key.encoding_version) ^ 0x80000000u;
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(version >> shift));
  return bytes + key.digest.ToBinary();
}

std::optional<PlanKey> KeyOf(const std::string& bytes) {
  if (bytes.size() != kVersionSize + Digest::kSize) return std::nullopt;
  uint32_t version = 0;
  for (size_t i = 0; i < kVersionSize; ++i) version = version << 8 | static_cast<uint8_t>(bytes[i]);
  std::array<uint8_t, Digest::kSize> digest;
  std::memcpy(digest.data(), bytes.data() + kVersionSize, digest.size());
  return PlanKey{static_cast<int32_t>(version ^ 0x80000000u), Digest(digest)};
}

absl::Status CreateSchema(SqliteConnection* connection) {
  SqliteTransaction transaction(connection);
  absl::Status status = transaction.Begin();
  if (!status.ok()) return status;
  status = connection->Execute(
      absl::StrCat("CREATE TABLE entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
                   " generation INTEGER NOT NULL, charge INTEGER NOT NULL, used INTEGER NOT NULL,"
                   " entry BLOB NOT NULL, tenant BLOB, update_note BLOB);"
                   "CREATE INDEX entries_by_use ON entries (used, charge);",
                   kTenantIndex, ";PRAGMA application_id = ", kApplication,
                   "; PRAGMA user_version = ", kSchemaVersion));
  return status.ok() ? transaction.Commit() : status;
}

// Adds the columns and the index that earlier programs did not make.
absl::Status AddMissing(SqliteConnection* connection) {
  const auto table = connection->Integer(
      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'entries'");
  if (!table.ok()) return table.status();
  if (*table == 0) return absl::DataLossError("sqlite: the table of entries is not there");
  constexpr std::pair<const char*, const char*> kAdded[] = {
      {"SELECT count(*) FROM pragma_table_info('entries') WHERE name = 'tenant'",
       "ALTER TABLE entries ADD COLUMN tenant BLOB"},
      {"SELECT count(*) FROM pragma_table_info('entries') WHERE name = 'update_note'",
       "ALTER TABLE entries ADD COLUMN update_note BLOB"},
      {"SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = 'entries_by_tenant'",
       kTenantIndex}};
  std::vector<const char*> missing;
  for (const auto& [count, add] : kAdded) {
    const auto there = connection->Integer(count);
    if (!there.ok()) return there.status();
    if (*there == 0) missing.push_back(add);
  }
  if (missing.empty()) return absl::OkStatus();
  SqliteTransaction transaction(connection);
  absl::Status status = transaction.Begin();
  for (const char* const add : missing) {
    if (status.ok()) status = connection->Execute(add);
  }
  return status.ok() ? transaction.Commit() : status;
}

// Creates the schema in an empty database.
absl::Status CheckSchema(const std::string& path, SqliteConnection* connection) {
  const auto objects = connection->Integer("SELECT count(*) FROM sqlite_master");
  if (!objects.ok()) return objects.status();
  const auto application = connection->Integer("PRAGMA application_id");
  if (!application.ok()) return application.status();
  const auto version = connection->Integer("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*objects == 0 && *application == 0 && *version == 0) return CreateSchema(connection);
  if (*application != kApplication) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a database of another program: name another file"));
  }
  if (*version != kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has schema version ", *version, ", this program knows ",
                     kSchemaVersion, ": name another file, or run a newer program"));
  }
  return AddMissing(connection);
}

absl::Status SetUpWriter(const std::string& path, SqliteConnection* connection) {
  absl::Status status = CheckSchema(path, connection);
  if (!status.ok()) return status;
  return connection->Execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
      "PRAGMA journal_size_limit = 67108864; PRAGMA cell_size_check = ON");
}

absl::Status PrepareAll(
    SqliteConnection* connection,
    std::initializer_list<std::pair<SqliteStatement*, const char*>> statements) {
  for (const auto& [statement, text] : statements) {
    absl::StatusOr<SqliteStatement> prepared = connection->Prepare(text);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

// All rows of a statement whose first column is a key.
absl::StatusOr<std::vector<PlanKey>> ReadKeys(SqliteStatement* statement) {
  std::vector<PlanKey> keys;
  for (;;) {
    const absl::StatusOr<bool> row = statement->Step();
    if (!row.ok()) return row.status();
    if (!*row) return keys;
    if (const std::optional<PlanKey> key = KeyOf(statement->Blob(0))) keys.push_back(*key);
  }
}

}  // namespace

// A reader for the time of one reading.
class SqliteEntries::Borrowed {
 public:
  explicit Borrowed(SqliteEntries* entries) : entries_(entries) {
    std::unique_lock<std::mutex> lock(entries_->readers_mutex_);
    entries_->reader_free_.wait(lock, [this] { return !entries_->free_readers_.empty(); });
    reader_ = std::move(entries_->free_readers_.back());
    entries_->free_readers_.pop_back();
  }
  ~Borrowed() {
    {
      std::lock_guard<std::mutex> lock(entries_->readers_mutex_);
      entries_->free_readers_.push_back(std::move(reader_));
    }
    entries_->reader_free_.notify_one();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Reader* operator->() { return reader_.get(); }

 private:
  SqliteEntries* const entries_;
  std::unique_ptr<Reader> reader_;
};

absl::StatusOr<std::unique_ptr<SqliteEntries>> SqliteEntries::Open(const SqliteFile& file) {
  absl::StatusOr<SqliteConnection> writer = SqliteConnection::Open(file.path, file.busy_timeout);
  if (!writer.ok()) return writer.status();
  absl::Status status = SetUpWriter(file.path, &*writer);
  if (!status.ok()) return status;
  std::unique_ptr<SqliteEntries> entries(new SqliteEntries(*std::move(writer)));
  status = entries->PrepareWriter();
  for (int i = 0; i < file.readers && status.ok(); ++i) status = entries->AddReader(file);
  if (!status.ok()) return status;
  return entries;
}

absl::Status SqliteEntries::PrepareWriter() {
  return PrepareAll(
      &writer_, {{&find_, "SELECT id, generation, charge FROM entries WHERE key = ?"},
                 {&write_,
                  "INSERT INTO entries (key, generation, charge, used, tenant, update_note, entry)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?)"
                  " ON CONFLICT (key) DO UPDATE SET generation = excluded.generation,"
                  " charge = excluded.charge, used = excluded.used, tenant = excluded.tenant,"
                  " update_note = excluded.update_note, entry = excluded.entry"},
                 {&set_tenant_, "UPDATE entries SET tenant = ?1 WHERE key = ?2 AND tenant IS NULL"},
                 {&remove_, "DELETE FROM entries WHERE id = ?"},
                 {&use_, "UPDATE entries SET used = ?1 WHERE key = ?2 AND used < ?1"},
                 {&least_used_, "SELECT id, 0, charge FROM entries ORDER BY used LIMIT 1"}});
}

absl::Status SqliteEntries::SyncCommits(bool sync) {
  return writer_.Execute(sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
}

absl::Status SqliteEntries::AddReader(const SqliteFile& file) {
  absl::StatusOr<SqliteConnection> connection =
      SqliteConnection::Open(file.path, file.busy_timeout);
  if (!connection.ok()) return connection.status();
  auto reader = std::make_unique<Reader>();
  reader->connection = *std::move(connection);
  absl::Status status = PrepareAll(
      &reader->connection,
      {{&reader->read,
        "SELECT generation, tenant IS NOT NULL, update_note, entry FROM entries WHERE key = ?"},
       {&reader->read_stamp, "SELECT generation, substr(entry, -?2) FROM entries WHERE key = ?1"},
       {&reader->keys, "SELECT key FROM entries WHERE key > ? ORDER BY key LIMIT ?"},
       // Each half walks its part of the index, and no further than the page.
       {&reader->keys_of,
        "SELECT key FROM (SELECT key FROM entries WHERE tenant = ?1 AND key > ?2"
        " ORDER BY key LIMIT ?3)"
        " UNION ALL SELECT key FROM (SELECT key FROM entries WHERE tenant IS NULL"
        " AND key > ?2 ORDER BY key LIMIT ?3)"
        " ORDER BY key LIMIT ?3"}});
  if (status.ok()) free_readers_.push_back(std::move(reader));
  return status;
}

absl::StatusOr<std::optional<EntryStamp>> SqliteEntries::ReadStamp(const PlanKey& key) {
  const std::string bytes = KeyBytes(key);
  Borrowed reader(this);
  SqliteStatement& read = reader->read_stamp;
  const absl::StatusOr<bool> found =
      read.BindBlob(bytes).Bind(static_cast<int64_t>(kSealSize)).Step();
  if (!found.ok()) return found.status();
  if (!*found) return std::nullopt;
  EntryStamp stamp{read.Integer(0), read.Blob(1)};
  read.Reset();
  return stamp;
}

absl::StatusOr<std::optional<SqliteEntries::Stored>> SqliteEntries::Read(const PlanKey& key) {
  const std::string bytes = KeyBytes(key);
  Borrowed reader(this);
  SqliteStatement& read = reader->read;
  const absl::StatusOr<bool> found = read.BindBlob(bytes).Step();
  if (!found.ok()) return found.status();
  if (!*found) return std::nullopt;
  Stored stored{read.Integer(0), read.Integer(1) != 0, read.Blob(2), read.Blob(3)};
  read.Reset();
  return stored;
}

absl::StatusOr<std::vector<PlanKey>> SqliteEntries::Keys(const std::optional<PlanKey>& after,
                                                         size_t limit) {
  const std::string start = after ? KeyBytes(*after) : std::string();
  Borrowed reader(this);
  return ReadKeys(&reader->keys.BindBlob(start).Bind(static_cast<int64_t>(limit)));
}

absl::StatusOr<std::vector<PlanKey>> SqliteEntries::KeysOf(const std::string& tenant,
                                                           const std::optional<PlanKey>& after,
                                                           size_t limit) {
  const std::string start = after ? KeyBytes(*after) : std::string();
  Borrowed reader(this);
  return ReadKeys(
      &reader->keys_of.BindBlob(tenant).BindBlob(start).Bind(static_cast<int64_t>(limit)));
}

absl::StatusOr<std::optional<SqliteEntries::Row>> SqliteEntries::Find(const PlanKey& key) {
  const std::string bytes = KeyBytes(key);
  const absl::StatusOr<bool> found = find_.BindBlob(bytes).Step();
  if (!found.ok()) return found.status();
  if (!*found) return std::nullopt;
  const Row row{find_.Integer(0), find_.Integer(1), find_.Integer(2)};
  find_.Reset();
  return row;
}

absl::Status SqliteEntries::Write(const PlanKey& key, const PlanEntry& entry,
                                  const std::string& bytes, Bytes charge, int64_t used) {
  const std::string key_bytes = KeyBytes(key);
  const std::string note = UpdateNoteOf(entry);
  write_.BindBlob(key_bytes).Bind(entry.generation).Bind(charge.value()).Bind(used);
  return write_.BindBlob(entry.tenant).BindBlob(note).BindBlob(bytes).Run();
}

absl::Status SqliteEntries::SetTenant(const PlanKey& key, const std::string& tenant) {
  const std::string bytes = KeyBytes(key);
  return set_tenant_.BindBlob(tenant).BindBlob(bytes).Run();
}

absl::Status SqliteEntries::Remove(int64_t id) { return remove_.Bind(id).Run(); }

absl::Status SqliteEntries::Use(const PlanKey& key, int64_t used) {
  const std::string bytes = KeyBytes(key);
  return use_.Bind(used).BindBlob(bytes).Run();
}

absl::StatusOr<std::optional<SqliteEntries::Row>> SqliteEntries::LeastUsed() {
  const absl::StatusOr<bool> found = least_used_.Step();
  if (!found.ok()) return found.status();
  if (!*found) return std::nullopt;
  const Row row{least_used_.Integer(0), least_used_.Integer(1), least_used_.Integer(2)};
  least_used_.Reset();
  return row;
}

absl::StatusOr<SqliteEntries::Totals> SqliteEntries::ReadTotals() {
  absl::StatusOr<SqliteStatement> totals =
      writer_.Prepare("SELECT count(*), sum(charge), max(used) FROM entries");
  if (!totals.ok()) return totals.status();
  const absl::StatusOr<bool> row = totals->Step();
  if (!row.ok()) return row.status();
  return Totals{totals->Integer(0), totals->Integer(1), totals->Integer(2)};
}

absl::Status SqliteEntries::RemoveOver(int64_t charge) {
  return writer_.Execute(absl::StrCat("DELETE FROM entries WHERE charge < 0 OR charge > ", charge));
}

absl::Status MoveAside(const std::string& path) {
  int number = 1;
  const auto aside = [&path, &number] { return absl::StrCat(path, ".corrupt-", number); };
  while (number < kMostMovedAside && ::access(aside().c_str(), F_OK) == 0) ++number;
  if (std::rename(path.c_str(), aside().c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot move the damaged ", path, " aside: ", std::strerror(errno)));
  }
  for (const char* end : {"-wal", "-shm"}) {
    std::rename((path + end).c_str(), (aside() + end).c_str());
  }
  return absl::OkStatus();
}

}  // namespace stowage

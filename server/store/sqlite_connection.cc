#include "server/store/sqlite_connection.h"

#include "absl/strings/str_cat.h"

namespace stowage {

absl::Status StatusOfSqlite(int code, const std::string& message) {
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return absl::OkStatus();
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat("sqlite: ", message));
    default:
      return absl::UnavailableError(absl::StrCat("sqlite: ", message, " (", code, ")"));
  }
}

SqliteStatement& SqliteStatement::Bind(int64_t value) {
  bind_error_ |= sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

SqliteStatement& SqliteStatement::BindBlob(const std::string& value) {
  bind_error_ |=
      sqlite3_bind_blob64(statement_.get(), ++bound_, value.data(), value.size(), SQLITE_STATIC);
  return *this;
}

absl::StatusOr<bool> SqliteStatement::Step() {
  sqlite3_stmt* const statement = statement_.get();
  if (bind_error_ != SQLITE_OK) {
    Reset();
    return absl::UnavailableError("sqlite: a value is too large");
  }
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return true;
  absl::Status status =
      StatusOfSqlite(code, code == SQLITE_DONE ? "" : sqlite3_errmsg(sqlite3_db_handle(statement)));
  Reset();
  if (!status.ok()) return status;
  return false;
}

absl::Status SqliteStatement::Run() {
  for (;;) {
    const absl::StatusOr<bool> row = Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
  }
}

void SqliteStatement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
  bind_error_ = SQLITE_OK;
}

int64_t SqliteStatement::Integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string SqliteStatement::Blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr) return std::string();
  return std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

absl::StatusOr<SqliteConnection> SqliteConnection::Open(const std::string& path,
                                                        std::chrono::milliseconds busy_timeout) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &database,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
      nullptr);
  SqliteConnection connection;
  connection.database_.reset(database);
  if (code != SQLITE_OK) {
    return StatusOfSqlite(code, database != nullptr ? sqlite3_errmsg(database) : "out of memory");
  }
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, static_cast<int>(busy_timeout.count()));
  // The file may be anyone's: its schema runs nothing.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return connection;
}

absl::Status SqliteConnection::StatusOf(int code) const {
  return StatusOfSqlite(code, sqlite3_errmsg(database_.get()));
}

absl::Status SqliteConnection::Execute(const std::string& statements) {
  return StatusOf(sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr));
}

absl::StatusOr<SqliteStatement> SqliteConnection::Prepare(const std::string& statement) {
  sqlite3_stmt* prepared = nullptr;
  const int code =
      sqlite3_prepare_v3(database_.get(), statement.c_str(), static_cast<int>(statement.size()),
                         SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
  SqliteStatement result;
  result.statement_.reset(prepared);
  // Statements are constants: one that is not understood has met another schema.
  if (code == SQLITE_ERROR) {
    return absl::DataLossError(absl::StrCat("sqlite: ", sqlite3_errmsg(database_.get())));
  }
  if (code != SQLITE_OK) return StatusOf(code);
  return result;
}

absl::StatusOr<int64_t> SqliteConnection::Integer(const std::string& statement) {
  absl::StatusOr<SqliteStatement> prepared = Prepare(statement);
  if (!prepared.ok()) return prepared.status();
  const absl::StatusOr<bool> row = prepared->Step();
  if (!row.ok()) return row.status();
  return *row ? prepared->Integer(0) : 0;
}

SqliteTransaction::~SqliteTransaction() {
  // It may have been rolled back already: some errors do that.
  if (connection_->in_transaction()) connection_->Execute("ROLLBACK").IgnoreError();
}

absl::Status SqliteTransaction::Begin() { return connection_->Execute("BEGIN IMMEDIATE"); }

absl::Status SqliteTransaction::Commit() { return connection_->Execute("COMMIT"); }

}  // namespace stowage

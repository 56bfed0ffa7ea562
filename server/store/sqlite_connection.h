// One connection to a SQLite database and its statements, as objects. Internal to server/store.
//
// Errors are the statuses of StatusOfSqlite. Not thread-safe: one thread at a time per connection.
#ifndef STOWAGE_SERVER_STORE_SQLITE_CONNECTION_H_
#define STOWAGE_SERVER_STORE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

// DATA_LOSS: the file is damaged, or no database at all. UNAVAILABLE: anything else (disk full,
// read-only, I/O error, busy). OK for SQLITE_OK, SQLITE_ROW and SQLITE_DONE.
absl::Status StatusOfSqlite(int code, const std::string& message);

// Strings bound must outlive the step.
class SqliteStatement {
 public:
  SqliteStatement() = default;

  SqliteStatement& Bind(int64_t value);
  SqliteStatement& BindBlob(const std::string& value);

  // Whether there is a row. After false or an error the statement is ready to be bound anew; after a
  // row, Reset makes it so.
  absl::StatusOr<bool> Step();
  // Steps over all rows.
  absl::Status Run();
  void Reset();

  // Of the row.
  int64_t Integer(int column) const;
  std::string Blob(int column) const;

 private:
  friend class SqliteConnection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
  int bind_error_ = SQLITE_OK;
};

class SqliteConnection {
 public:
  // Creates the file where there is none.
  static absl::StatusOr<SqliteConnection> Open(const std::string& path,
                                               std::chrono::milliseconds busy_timeout);

  absl::Status Execute(const std::string& statements);
  absl::StatusOr<SqliteStatement> Prepare(const std::string& statement);
  // The one integer that the statement gives.
  absl::StatusOr<int64_t> Integer(const std::string& statement);
  bool in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };

  absl::Status StatusOf(int code) const;

  std::unique_ptr<sqlite3, Close> database_;
};

// Rolls back unless it was committed.
class SqliteTransaction {
 public:
  // `connection` outlives it.
  explicit SqliteTransaction(SqliteConnection* connection) : connection_(connection) {}
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  absl::Status Begin();
  absl::Status Commit();

 private:
  SqliteConnection* const connection_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_SQLITE_CONNECTION_H_

// The table of entries in a SQLite file, over one connection that writes and some that read.
// Internal to server/store: sqlite_plan_store.h decides what is kept.
//
// Schema version 1 (user_version; application_id "STWG"):
//   entries(id, key, generation, charge, used, entry)   key: encoding version and digest, so that
//     bytes order as keys do; used: rises with every use; entry: entry_codec.h
//   entries_by_use(used, charge)   the least used first, and all charges without touching entries
//   tenant, a column of entries, and entries_by_tenant(tenant, key): a page of one tenant's keys without
//     touching entries
//   update_note, a column of entries: when the entry last changed (UpdateNoteOf)
// Programs before tenants, or before notes, made files without them, and write rows without them: they
// are added when the file is opened, NULL is a tenant or a time that is not known, and a note of another
// generation is none. Such programs go on working with a file that has all, so the schema's version is
// the same.
// The journal is a WAL: readers never wait for the writer. A commit is in the file when the process
// is killed at any moment; synchronous=NORMAL syncs at checkpoints only, so a power cut may take the
// last commits with it. That is the price of a Put in tens of microseconds where a sync takes
// milliseconds: what is lost is computed anew. (SyncCommits is for what is not.) The file never
// shrinks; its pages are used again.
// Without mmap: an I/O error is to be a status, not a signal.
#ifndef STOWAGE_SERVER_STORE_SQLITE_ENTRIES_H_
#define STOWAGE_SERVER_STORE_SQLITE_ENTRIES_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/store/known_entries.h"
#include "server/store/sqlite_connection.h"
#include "solvers/model/canonical.h"

namespace stowage {

struct SqliteFile {
  std::string path;
  std::chrono::milliseconds busy_timeout{1000};
  int readers = 4;
};

class SqliteEntries {
 public:
  struct Row {
    int64_t id = 0;
    int64_t generation = 0;
    int64_t charge = 0;
  };
  struct Stored {
    int64_t generation = 0;
    bool has_tenant = false;
    std::string update_note;
    std::string entry;
  };
  struct Totals {
    int64_t entries = 0;
    int64_t charged = 0;
    int64_t last_used = 0;
  };

  // Creates what is not there. DATA_LOSS: damaged, or no database at all. FAILED_PRECONDITION: of
  // another program, or of a newer schema. UNAVAILABLE: cannot be opened.
  static absl::StatusOr<std::unique_ptr<SqliteEntries>> Open(const SqliteFile& file);

  // Thread-safe, beside all else. Waits for one of the readers.
  absl::StatusOr<std::optional<Stored>> Read(const PlanKey& key);
  absl::StatusOr<std::optional<EntryStamp>> ReadStamp(const PlanKey& key);
  absl::StatusOr<std::vector<PlanKey>> Keys(const std::optional<PlanKey>& after, size_t limit);
  // Of that tenant, or of none that is known.
  absl::StatusOr<std::vector<PlanKey>> KeysOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after, size_t limit);

  // One thread at a time. Several make a change if they are in one transaction.
  SqliteConnection* writer() { return &writer_; }
  // Whether commits from now on, and those before them, are on the disk once they are done: FULL for
  // NORMAL. Not within a transaction.
  absl::Status SyncCommits(bool sync);
  absl::StatusOr<std::optional<Row>> Find(const PlanKey& key);
  // `bytes` are the entry's, `charge` what it counts for.
  absl::Status Write(const PlanKey& key, const PlanEntry& entry, const std::string& bytes,
                     Bytes charge, int64_t used);
  // Where none is known.
  absl::Status SetTenant(const PlanKey& key, const std::string& tenant);
  absl::Status Remove(int64_t id);
  absl::Status Use(const PlanKey& key, int64_t used);
  absl::StatusOr<std::optional<Row>> LeastUsed();
  absl::StatusOr<Totals> ReadTotals();
  // Those whose charge cannot be.
  absl::Status RemoveOver(int64_t charge);

 private:
  struct Reader {
    SqliteConnection connection;
    SqliteStatement read, read_stamp, keys, keys_of;
  };
  class Borrowed;

  explicit SqliteEntries(SqliteConnection writer) : writer_(std::move(writer)) {}
  absl::Status PrepareWriter();
  absl::Status AddReader(const SqliteFile& file);

  SqliteConnection writer_;
  SqliteStatement find_, write_, set_tenant_, remove_, use_, least_used_;

  std::mutex readers_mutex_;
  std::condition_variable reader_free_;
  std::vector<std::unique_ptr<Reader>> free_readers_;
};

// Renames the database and what SQLite keeps beside it to PATH.corrupt-N, N the first free number;
// the last of a few is replaced. UNAVAILABLE when it cannot.
absl::Status MoveAside(const std::string& path);

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_SQLITE_ENTRIES_H_

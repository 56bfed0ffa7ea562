// Plans in a Redis server that several of ours share. It may lose entries, be slow, be away: that
// costs hits, never answers. Meant as the slow tier of a TieredPlanStore.
//
// An entry is a hash with its generation beside its sealed bytes, so that the server can compare
// generations without knowing the encoding: a script does so in one step with the write (Redis runs
// scripts alone), where WATCH and MULTI would take three round trips and a retry. An entry that is
// not looked up expires; a lookup that finds less than half of the time left renews it, in a round
// trip of its own, so that most lookups write nothing.
//
// Beside the bytes, too, and not sealed, are the tenant, and a note of when the entry last changed, by
// the clock of the server that changed it (UpdateNoteOf). What a version before notes has written has
// none, or one of another generation.
//
// An entry that this server still holds is not moved again: whether it is what is there, its generation
// and its seal say, some 50 bytes. Where servers have keys, entries are sealed under them once more
// (entry_keys.h), and what is sealed under none of them is damaged.
//
// Each write puts the key into an index of its tenant and one of all (redis_keys.h), so that a page of
// keys is one round trip and costs its page. An index that Redis has evicted, or that nobody has made
// yet, is made by the next List, which walks all keys once; it is made anew once a day, for what
// servers before this version write is in none. Whoever reads an entry that has no tenant beside it
// notes it there; until then it is in the list of every tenant. Of entries that expired or were
// evicted the index learns when a page comes to them.
//
// What is no entry of ours (another type, cut, changed, of another version, refused by the evaluator)
// is a miss, is counted, and is deleted unless it has changed meanwhile: a Put of a new entry must
// not fail on its generation for ever.
#ifndef STOWAGE_SERVER_STORE_REDIS_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_REDIS_PLAN_STORE_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/entries/entry_keys.h"
#include "server/observe/server_metrics.h"
#include "server/store/known_entries.h"
#include "server/store/plan_store.h"
#include "server/store/redis_client.h"
#include "server/store/redis_keys.h"

namespace stowage {

struct RedisStoreOptions {
  std::string prefix = "stowage";  // see IsRedisPrefix
  std::chrono::milliseconds time_to_live = std::chrono::hours(24 * 14);
  // How long an Erase is remembered. Servers that looked at their own copy within that time notice
  // it; one that did not may bring the entry back. (What is deleted for good: server/decisions.)
  std::chrono::milliseconds remember_erased = std::chrono::hours(24);
  Bytes largest_entry{8 << 20};  // charged, as in memory
  // How long a List may take: beyond it, it failed. Many millions of keys are walked in that time.
  std::chrono::milliseconds list_time = std::chrono::seconds(10);
  // How long an index is believed to lack nothing.
  std::chrono::milliseconds index_age = std::chrono::hours(24);
  // How old what stats() says may be.
  std::chrono::milliseconds stats_age = std::chrono::seconds(1);
  std::shared_ptr<const EntryKeys> keys;  // null: none
};

// Thread-safe. A round trip takes RedisOptions::timeout at most. A Get that finds an entry is one,
// one that finds nothing two (was it erased?), a List one (in a cluster one for each of sixteen
// parts), or one for each thousand keys of the database where the index must be made.
class RedisPlanStore final : public PlanStore {
 public:
  // `metrics` outlives this object.
  RedisPlanStore(const RedisStoreOptions& options, std::shared_ptr<RedisClient> redis,
                 ServerMetrics* metrics);

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  PlanAnswer Look(const PlanKey& key, Access access) override;
  PlanAnswer LookAgain(const PlanKey& key, Access access,
                       const std::shared_ptr<const PlanEntry>& held) override;
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  // UNAVAILABLE or FAILED_PRECONDITION: not written, with the reason.
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  absl::StatusOr<bool> Erase(const PlanKey& key) override;
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  // Of the whole database, everybody's keys and the indexes included; `charged` is the server's memory. Evictions
  // are Redis's own business: always 0.
  PlanStoreStats stats() const override;

 private:
  PlanAnswer Failed(CacheFailure failure);
  // Whether Redis has that very entry, by its generation and its seal alone; else it is read.
  PlanAnswer Compare(const PlanKey& key, Access access, const KnownEntries::Known& known);
  PlanAnswer Read(const PlanKey& key, Access access);
  // What was read: generation, bytes, tenant, note of the time.
  PlanAnswer Decoded(const PlanKey& key, std::vector<RedisReply> fields);
  // Puts the entry's tenant beside it, and its key into the indexes.
  void Adopt(const PlanKey& key, const std::string& generation, const std::string& tenant);
  PlanAnswer Absent(const PlanKey& key);
  // The script's `rule`: see there.
  absl::Status Write(const PlanKey& key, std::shared_ptr<const PlanEntry> entry,
                     const std::string& rule);
  void RenewIfHalfGone(const PlanKey& key, const std::vector<RedisReply>& replies);
  void Discard(const PlanKey& key, const std::string& generation);

  using Keys = std::vector<PlanKey>;
  // Some keys that a walk has found: those that may be the tenant's, and what its index calls those that are.
  struct Walked {
    Keys all;
    std::vector<std::string> members;
    bool all_known = true;
  };
  // `names` are those of a SCAN.
  absl::StatusOr<Walked> KeysAmong(const std::vector<RedisReply>& names,
                                   const std::optional<std::string>& tenant);
  using Deadline = std::chrono::steady_clock::time_point;
  // Of one tenant, or of all.
  absl::StatusOr<Keys> ListIn(const std::optional<std::string>& tenant,
                              const std::optional<PlanKey>& after, size_t limit);
  // The same of one part of the plans (RedisKeys::parts).
  absl::StatusOr<Keys> ListPart(int part, const std::optional<std::string>& tenant,
                                const std::optional<PlanKey>& after, size_t limit,
                                Deadline deadline);
  // A page of the index; nothing where there is none that lacks no key. An error: Redis failed.
  absl::StatusOr<std::optional<Keys>> IndexedPage(int part,
                                                  const std::optional<std::string>& tenant,
                                                  const std::optional<PlanKey>& after, size_t limit,
                                                  Deadline deadline);
  // The same from all keys of the database, of which it makes the index.
  absl::StatusOr<Keys> WalkedPage(int part, const std::optional<std::string>& tenant,
                                  const std::optional<PlanKey>& after, size_t limit,
                                  Deadline deadline);

  const RedisStoreOptions options_;
  const RedisKeys keys_;
  const std::shared_ptr<RedisClient> redis_;
  ServerMetrics* const metrics_;
  KnownEntries known_;
  mutable std::mutex stats_mutex_;
  mutable PlanStoreStats stats_;
  mutable std::optional<std::chrono::steady_clock::time_point> stats_time_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_PLAN_STORE_H_

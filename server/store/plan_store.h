// Where plan entries live. The smallest interface that memory, a file and a remote cache can all
// keep.
#ifndef STOWAGE_SERVER_STORE_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_PLAN_STORE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"

namespace stowage {

struct PlanStoreStats {
  int64_t entries = 0;
  Bytes charged;
  int64_t evicted = 0;  // since the start
};

// Why an entry is read: a lookup serves a request (it is counted, and keeps the entry from being
// evicted), a peek looks again for the same request, what an update reads is going to be replaced:
// where several servers share a tier, it comes from there. An inspection reads entries that nobody
// asked for, to list them, say: no tier keeps more, or less, for it.
enum class Access { kLookup, kPeek, kUpdate, kInspect };

// What it means that a store has no entry.
enum class Absence {
  kUnknown,  // never put, or evicted
  kErased,   // taken out not long ago, by this server or another one
  kFailed,   // the store cannot say
};

struct PlanAnswer {
  std::shared_ptr<const PlanEntry> entry;  // null: absent
  Absence absence = Absence::kUnknown;
};

// Where a change must have arrived to be one.
enum class Durability {
  kBestEffort,  // in any tier: what is lost is solved or measured anew
  kRequired,    // in all of them, or nowhere: somebody is told that it is done
};

// Of a store that does not know which tier it is; what counts for it does (metrics_plan_store.h).
inline constexpr char kUnnamedStore[] = "store";

// Thread-safe.
class PlanStore {
 public:
  virtual ~PlanStore() = default;

  // The entry, or null: unknown key, evicted, or the store failed.
  virtual std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) = 0;

  // The same, and why there is nothing.
  virtual PlanAnswer Look(const PlanKey& key, Access access) {
    return PlanAnswer{Get(key, access), Absence::kUnknown};
  }

  // The same for who holds an entry, or null, that may be the very one: then it is given back, and a store
  // that can tell so reads nothing of it.
  virtual PlanAnswer LookAgain(const PlanKey& key, Access access,
                               const std::shared_ptr<const PlanEntry>& /*held*/) {
    return Look(key, access);
  }

  // The same as Get for a thread that must not wait. Nothing: only Get can tell.
  virtual std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                                 Access access) = 0;

  // Changes what was read: `read` is its generation, 0 for nothing. ABORTED when that is not what is
  // there any more: read it again and change that. So no change undoes another one, or an Erase. An
  // entry that alone is over the store's limit is kept without its oldest plans; RESOURCE_EXHAUSTED
  // when it is too large with its newest one alone: then what was there before stays. Another error:
  // the store failed, and has what it had before.
  virtual absl::Status Replace(const PlanKey& key, int64_t read,
                               std::shared_ptr<const PlanEntry> entry, Durability durability) = 0;

  // The copy of an entry that another store has: fills a gap, or replaces what is older (IsNewer).
  // ABORTED where it does not, or where the store remembers that the key was erased; else as Replace.
  virtual absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) = 0;

  // Whether there was something. An error: it may still be there, or come back.
  virtual absl::StatusOr<bool> Erase(const PlanKey& key) = 0;

  // The same of what was read: ABORTED where a store that can tell has another one by now.
  virtual absl::StatusOr<bool> EraseRead(const PlanKey& key, const PlanEntry& /*read*/) {
    return Erase(key);
  }

  // The last generation that a deletion of the key has ended, as far as is known here; 0: none. What
  // began up to it is over: an entry of it is never given, and one that begins must be later
  // (FirstGeneration). Never waits.
  virtual int64_t DeletedUpTo(const PlanKey& /*key*/) { return 0; }

  // At most `limit` keys in rising order, those after `after`; fewer than that only at the end. What
  // comes and goes meanwhile may be missed. An error: the store cannot say which there are.
  virtual absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                                    size_t limit) = 0;

  // The same of the entries of one tenant, without reading entries: what it takes follows from the
  // page. A key whose tenant the store does not know, for a program before this one wrote it, is there
  // for every tenant until its entry has been read once: whoever asks looks at the entry's own tenant.
  virtual absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                                      const std::optional<PlanKey>& after,
                                                      size_t limit) = 0;

  // As ListOf, or as List without a tenant, of what can be asked now. The stores that could not say are added to
  // `unreachable`, by name ("redis"): keys that only they have are missing.
  virtual std::vector<PlanKey> ListReachable(const std::optional<std::string>& tenant,
                                             const std::optional<PlanKey>& after, size_t limit,
                                             std::set<std::string>* unreachable) {
    const auto keys = tenant ? ListOf(*tenant, after, limit) : List(after, limit);
    if (keys.ok()) return *keys;
    unreachable->insert(kUnnamedStore);
    return {};
  }

  // These were looked up in a store before this one: as good as a lookup against being evicted, but
  // nothing is read. Whoever evicts nothing does nothing.
  virtual void Used(const std::vector<PlanKey>& /*keys*/) {}

  virtual PlanStoreStats stats() const = 0;
};

// Of two rising lists of keys together the first `limit`, each once. Where one is not known, neither
// is what both have.
inline absl::StatusOr<std::vector<PlanKey>> LeastOfBoth(
    const absl::StatusOr<std::vector<PlanKey>>& a, const absl::StatusOr<std::vector<PlanKey>>& b,
    size_t limit) {
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  std::vector<PlanKey> both;
  std::set_union(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(both));
  both.resize(std::min(both.size(), limit));
  return both;
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_PLAN_STORE_H_

// Plans in memory: sharded by key, bounded by bytes charged. Of a full shard goes first the least
// recently looked-up entry of the owners (memory_owner.h) that hold most there, in 64ths of the
// shard (fair_order.h): where owners are many and hold little each, of the whole shard.
//
// So of n owners that hold entries of a shard, one that holds at most capacity / shards *
// (1 / n - 1 / 64) there loses none to the others, and an entry that is larger than capacity /
// shards / n, and all that its owner holds there, may go as soon as it comes: Put and Replace are OK
// all the same. Keys spread evenly over shards.
#ifndef STOWAGE_SERVER_STORE_MEMORY_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_MEMORY_PLAN_STORE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/entries/memory_owner.h"
#include "server/store/fair_order.h"
#include "server/store/plan_store.h"

namespace stowage {

class MemoryPlanStore final : public PlanStore {
 public:
  // Each shard holds capacity / shards. `shards` >= 1.
  explicit MemoryPlanStore(Bytes capacity, size_t shards = 8);

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  absl::StatusOr<bool> Erase(const PlanKey& key) override;
  // Both O(shards * limit + log entries).
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  PlanStoreStats stats() const override;

 private:
  struct KeyHash {
    size_t operator()(const PlanKey& key) const;
  };
  struct Node {
    PlanKey key;
    std::shared_ptr<const PlanEntry> entry;
  };
  using Order = FairOrder<MemoryOwner, Node>;
  struct Shard {
    explicit Shard(Bytes capacity) : order(FairGranule(capacity)) {}

    mutable std::mutex mutex;
    Order order;  // by lookups
    std::unordered_map<PlanKey, Order::Place, KeyHash> index;
    std::set<PlanKey> keys;  // those of the index, in order
    std::map<std::string, std::set<PlanKey>> of_tenants;
    int64_t evicted = 0;

    // All that an entry takes in the tables but its place in the index.
    struct PreparedEntry {
      PreparedEntry(const PlanKey& key, std::shared_ptr<const PlanEntry> entry, Bytes charge);

      std::set<PlanKey> of_shard, of_tenant;
      std::map<std::string, std::set<PlanKey>> tenants;
      Order::PreparedItem ordered;
    };

    // In the place of the key's entry, which is still there where memory runs out.
    void Set(const PlanKey& key, PreparedEntry* made);
    void Remove(Order::Place place);
    // From all but the index.
    void Unlink(Order::Place place);
  };

  Shard& ShardOf(const PlanKey& key);
  // Of the keys that `keys_of` finds in a shard, or null where it finds none.
  template <class KeysOf>
  std::vector<PlanKey> Least(const std::optional<PlanKey>& after, size_t limit,
                             const KeysOf& keys_of);
  // Where what is there, of generation 0 when there is nothing, may be replaced.
  template <class MayReplace>
  absl::Status Write(const PlanKey& key, std::shared_ptr<const PlanEntry> entry,
                     const MayReplace& may_replace);

  const Bytes shard_capacity_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_MEMORY_PLAN_STORE_H_

// Plans in memory: sharded by key, the least recently looked-up entry of a shard goes first,
// bounded by bytes charged.
#ifndef STOWAGE_SERVER_STORE_MEMORY_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_MEMORY_PLAN_STORE_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

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
    Bytes charge;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::list<Node> recent;  // the most recently looked up first
    std::unordered_map<PlanKey, std::list<Node>::iterator, KeyHash> index;
    std::set<PlanKey> keys;  // those of the index, in order
    std::map<std::string, std::set<PlanKey>> of_tenants;
    Bytes charged;
    int64_t evicted = 0;

    void Add(Node node);
    void Remove(std::list<Node>::iterator node);
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

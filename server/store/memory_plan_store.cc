#include "server/store/memory_plan_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stowage {

size_t MemoryPlanStore::KeyHash::operator()(const PlanKey& key) const {
  // Any 8 bytes of a SHA-256 are as good as a hash of all of them.
  size_t hash = 0;
  std::memcpy(&hash, key.digest.bytes().data(), sizeof(hash));
  return hash;
}

MemoryPlanStore::Shard::PreparedEntry::PreparedEntry(const PlanKey& key,
                                                     std::shared_ptr<const PlanEntry> entry,
                                                     Bytes charge)
    : of_shard({key}),
      of_tenant({key}),
      tenants({{entry->tenant, {}}}),
      ordered(MemoryOwnerOf(*entry), charge, Node{key, entry}) {}

void MemoryPlanStore::Shard::Set(const PlanKey& key, PreparedEntry* made) {
  // The only one here that allocates, before the first change.
  const auto [at, is_new] = index.try_emplace(key);
  if (!is_new) Unlink(at->second);
  at->second = order.Add(std::move(made->ordered));
  keys.merge(made->of_shard);
  of_tenants.merge(made->tenants);
  of_tenants.find(at->second->entry->tenant)->second.merge(made->of_tenant);
}

void MemoryPlanStore::Shard::Remove(Order::Place place) {
  index.erase(place->key);
  Unlink(place);
}

void MemoryPlanStore::Shard::Unlink(Order::Place place) {
  keys.erase(place->key);
  const auto of_tenant = of_tenants.find(place->entry->tenant);
  of_tenant->second.erase(place->key);
  if (of_tenant->second.empty()) of_tenants.erase(of_tenant);
  order.Remove(place);
}

MemoryPlanStore::MemoryPlanStore(Bytes capacity, size_t shards)
    : shard_capacity_(capacity.value() / static_cast<int64_t>(shards)) {
  for (size_t i = 0; i < shards; ++i) shards_.push_back(std::make_unique<Shard>(shard_capacity_));
}

MemoryPlanStore::Shard& MemoryPlanStore::ShardOf(const PlanKey& key) {
  // Not the bytes that KeyHash takes: a shard's keys must spread over its buckets.
  return *shards_[key.digest.bytes().back() % shards_.size()];
}

std::shared_ptr<const PlanEntry> MemoryPlanStore::Get(const PlanKey& key, Access access) {
  Shard& shard = ShardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  const auto found = shard.index.find(key);
  if (found == shard.index.end()) return nullptr;
  if (access == Access::kLookup) shard.order.Touch(found->second);
  return found->second->entry;
}

std::optional<std::shared_ptr<const PlanEntry>> MemoryPlanStore::GetNow(const PlanKey& key,
                                                                        Access access) {
  return Get(key, access);
}

template <class MayReplace>
absl::Status MemoryPlanStore::Write(const PlanKey& key, std::shared_ptr<const PlanEntry> entry,
                                    const MayReplace& may_replace) {
  absl::StatusOr<ChargedEntry> fit = FitTo(shard_capacity_, std::move(entry));
  if (!fit.ok()) return fit.status();
  Shard& shard = ShardOf(key);
  // Memory is taken before the lock, and what is left of it given back after it: lookups wait for the lock.
  Shard::PreparedEntry made(key, std::move(fit->entry), fit->charge);
  std::lock_guard<std::mutex> lock(shard.mutex);
  const auto found = shard.index.find(key);
  const bool there = found != shard.index.end();
  if (!may_replace(there ? found->second->entry->generation : 0)) return StaleGenerationError();
  shard.Set(key, &made);
  while (shard.order.held() > shard_capacity_) {
    shard.Remove(shard.order.Next());
    ++shard.evicted;
  }
  return absl::OkStatus();
}

absl::Status MemoryPlanStore::Replace(const PlanKey& key, int64_t read,
                                      std::shared_ptr<const PlanEntry> entry, Durability) {
  return Write(key, std::move(entry), [read](int64_t there) { return there == read; });
}

absl::Status MemoryPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  const int64_t generation = entry->generation;
  return Write(key, std::move(entry),
               [generation](int64_t there) { return there == 0 || IsNewer(generation, there); });
}

absl::StatusOr<bool> MemoryPlanStore::Erase(const PlanKey& key) {
  Shard& shard = ShardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  const auto found = shard.index.find(key);
  if (found == shard.index.end()) return false;
  shard.Remove(found->second);
  return true;
}

template <class KeysOf>
std::vector<PlanKey> MemoryPlanStore::Least(const std::optional<PlanKey>& after, size_t limit,
                                            const KeysOf& keys_of) {
  std::vector<PlanKey> least;
  for (const auto& shard : shards_) {
    std::lock_guard<std::mutex> lock(shard->mutex);
    const std::set<PlanKey>* const keys = keys_of(*shard);
    if (keys == nullptr) continue;
    auto next = after ? keys->upper_bound(*after) : keys->begin();
    for (size_t i = 0; i < limit && next != keys->end(); ++i, ++next) least.push_back(*next);
  }
  std::sort(least.begin(), least.end());
  least.resize(std::min(limit, least.size()));
  return least;
}

absl::StatusOr<std::vector<PlanKey>> MemoryPlanStore::List(const std::optional<PlanKey>& after,
                                                           size_t limit) {
  return Least(after, limit, [](const Shard& shard) { return &shard.keys; });
}

absl::StatusOr<std::vector<PlanKey>> MemoryPlanStore::ListOf(const std::string& tenant,
                                                             const std::optional<PlanKey>& after,
                                                             size_t limit) {
  return Least(after, limit, [&tenant](const Shard& shard) {
    const auto found = shard.of_tenants.find(tenant);
    return found == shard.of_tenants.end() ? nullptr : &found->second;
  });
}

PlanStoreStats MemoryPlanStore::stats() const {
  PlanStoreStats total;
  for (const auto& shard : shards_) {
    std::lock_guard<std::mutex> lock(shard->mutex);
    total.entries += static_cast<int64_t>(shard->index.size());
    total.charged += shard->order.held();
    total.evicted += shard->evicted;
  }
  return total;
}

}  // namespace stowage

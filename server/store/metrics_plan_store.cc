#include "server/store/metrics_plan_store.h"

#include <chrono>
#include <utility>

namespace stowage {

MetricsPlanStore::MetricsPlanStore(std::unique_ptr<PlanStore> store, CacheTier tier,
                                   ServerMetrics* metrics)
    : store_(std::move(store)), tier_(tier), metrics_(metrics) {}

std::shared_ptr<const PlanEntry> MetricsPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer MetricsPlanStore::Look(const PlanKey& key, Access access) {
  return LookAgain(key, access, nullptr);
}

PlanAnswer MetricsPlanStore::LookAgain(const PlanKey& key, Access access,
                                       const std::shared_ptr<const PlanEntry>& held) {
  const auto start = std::chrono::steady_clock::now();
  PlanAnswer answer = held ? store_->LookAgain(key, access, held) : store_->Look(key, access);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  metrics_->CacheLooked(tier_, took.count());
  if (access == Access::kLookup) metrics_->CacheLookup(tier_, answer.entry != nullptr);
  return answer;
}

std::optional<std::shared_ptr<const PlanEntry>> MetricsPlanStore::GetNow(const PlanKey& key,
                                                                         Access access) {
  auto entry = store_->GetNow(key, access);
  // Where only Get can tell, it is Get that counts.
  if (entry && access == Access::kLookup) metrics_->CacheLookup(tier_, *entry != nullptr);
  return entry;
}

absl::Status MetricsPlanStore::Written(absl::Status status) {
  if (absl::IsResourceExhausted(status)) metrics_->CacheRefused(tier_);
  PublishSize();
  return status;
}

absl::Status MetricsPlanStore::Replace(const PlanKey& key, int64_t read,
                                       std::shared_ptr<const PlanEntry> entry,
                                       Durability durability) {
  return Written(store_->Replace(key, read, std::move(entry), durability));
}

absl::Status MetricsPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  return Written(store_->Put(key, std::move(entry)));
}

absl::StatusOr<bool> MetricsPlanStore::Erase(const PlanKey& key) {
  absl::StatusOr<bool> erased = store_->Erase(key);
  PublishSize();
  return erased;
}

absl::StatusOr<std::vector<PlanKey>> MetricsPlanStore::List(const std::optional<PlanKey>& after,
                                                            size_t limit) {
  return store_->List(after, limit);
}

absl::StatusOr<std::vector<PlanKey>> MetricsPlanStore::ListOf(const std::string& tenant,
                                                              const std::optional<PlanKey>& after,
                                                              size_t limit) {
  return store_->ListOf(tenant, after, limit);
}

std::vector<PlanKey> MetricsPlanStore::ListReachable(const std::optional<std::string>& tenant,
                                                     const std::optional<PlanKey>& after,
                                                     size_t limit,
                                                     std::set<std::string>* unreachable) {
  std::set<std::string> names;
  std::vector<PlanKey> keys = store_->ListReachable(tenant, after, limit, &names);
  for (const std::string& name : names) {
    unreachable->insert(name == kUnnamedStore ? ToString(tier_) : name);
  }
  return keys;
}

PlanStoreStats MetricsPlanStore::stats() const { return store_->stats(); }

void MetricsPlanStore::PublishSize() {
  std::lock_guard<std::mutex> lock(publish_mutex_);
  const PlanStoreStats now = store_->stats();
  metrics_->CacheSize(tier_, now.entries, now.charged.value());
  metrics_->CacheEvicted(tier_, now.evicted - published_evictions_);
  published_evictions_ = now.evicted;
}

}  // namespace stowage

#include "server/cache/metrics_plan_store.h"

#include <utility>

namespace stowage {

MetricsPlanStore::MetricsPlanStore(std::unique_ptr<PlanStore> store, ServerMetrics* metrics)
    : store_(std::move(store)), metrics_(metrics) {}

std::shared_ptr<const PlanEntry> MetricsPlanStore::Get(const PlanKey& key, Access access) {
  std::shared_ptr<const PlanEntry> entry = store_->Get(key, access);
  if (access == Access::kLookup) metrics_->CacheLookup(entry != nullptr);
  return entry;
}

absl::Status MetricsPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  absl::Status status = store_->Put(key, std::move(entry));
  if (!status.ok()) metrics_->CacheRefused();
  PublishSize();
  return status;
}

bool MetricsPlanStore::Erase(const PlanKey& key) {
  const bool erased = store_->Erase(key);
  PublishSize();
  return erased;
}

PlanStoreStats MetricsPlanStore::stats() const { return store_->stats(); }

void MetricsPlanStore::PublishSize() {
  std::lock_guard<std::mutex> lock(publish_mutex_);
  const PlanStoreStats now = store_->stats();
  metrics_->CacheSize(now.entries, now.charged.value());
  metrics_->CacheEvicted(now.evicted - published_evictions_);
  published_evictions_ = now.evicted;
}

}  // namespace stowage

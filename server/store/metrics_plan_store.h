// A store that counts what another one does: lookups that hit and miss, refusals, and its
// size.
#ifndef STOWAGE_SERVER_STORE_METRICS_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_METRICS_PLAN_STORE_H_

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/observe/server_metrics.h"
#include "server/store/plan_store.h"

namespace stowage {

class MetricsPlanStore final : public PlanStore {
 public:
  // `metrics` outlives this object.
  MetricsPlanStore(std::unique_ptr<PlanStore> store, CacheTier tier, ServerMetrics* metrics);

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  PlanAnswer Look(const PlanKey& key, Access access) override;
  PlanAnswer LookAgain(const PlanKey& key, Access access,
                       const std::shared_ptr<const PlanEntry>& held) override;
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  absl::StatusOr<bool> Erase(const PlanKey& key) override;
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  std::vector<PlanKey> ListReachable(const std::optional<std::string>& tenant,
                                     const std::optional<PlanKey>& after, size_t limit,
                                     std::set<std::string>* unreachable) override;
  void Used(const std::vector<PlanKey>& keys) override { store_->Used(keys); }
  PlanStoreStats stats() const override;

 private:
  absl::Status Written(absl::Status status);
  void PublishSize();

  const std::unique_ptr<PlanStore> store_;
  const CacheTier tier_;
  ServerMetrics* const metrics_;
  std::mutex publish_mutex_;  // so that the last size published is the last one read
  int64_t published_evictions_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_METRICS_PLAN_STORE_H_

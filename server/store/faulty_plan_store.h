// A store that fails on purpose, for tests: misses, refused writes, delays, answers of the past,
// entries with something changed in them, and outages.
//
// Whoever sits above must go on answering, and never wrongly. Each operation draws its own fate
// from a seeded generator: one thread sees the same faults in every run.
#ifndef STOWAGE_SERVER_STORE_FAULTY_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_FAULTY_PLAN_STORE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "server/store/plan_store.h"

namespace stowage {

// Probabilities, each in [0, 1].
struct FaultPolicy {
  uint64_t seed = 1;
  double miss = 0;        // Get: nothing, as if the store had failed
  double failed_put = 0;  // Put, Replace: UNAVAILABLE, and nothing is written
  double stale = 0;       // Get: what was under the key before the last Put
  double flipped = 0;     // Get: the entry with one thing in it changed
  double slow = 0;        // any: `delay` late
  std::chrono::nanoseconds delay{0};
};

enum class Fault { kMiss, kFailedPut, kStale, kFlipped, kSlow };
inline constexpr size_t kFaultCount = 5;

// Thread-safe.
class FaultyPlanStore final : public PlanStore {
 public:
  FaultyPlanStore(std::unique_ptr<PlanStore> store, const FaultPolicy& policy);

  // While it is out everything fails.
  void SetOut(bool out) { out_ = out; }
  int64_t injected(Fault fault) const { return injected_[static_cast<size_t>(fault)]; }

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  PlanAnswer Look(const PlanKey& key, Access access) override;
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
  void Used(const std::vector<PlanKey>& keys) override { store_->Used(keys); }
  PlanStoreStats stats() const override;

 private:
  bool Strikes(Fault fault, double probability);
  void MaybeWait();
  template <class Do>
  absl::Status Write(const PlanKey& key, const std::shared_ptr<const PlanEntry>& entry,
                     const Do& write);
  // What becomes of an entry on its way out; null stays null.
  std::shared_ptr<const PlanEntry> Spoil(const PlanKey& key,
                                         std::shared_ptr<const PlanEntry> entry);
  std::shared_ptr<const PlanEntry> Flip(const PlanEntry& entry);
  size_t Draw(size_t count);

  const std::unique_ptr<PlanStore> store_;
  const FaultPolicy policy_;
  std::atomic<bool> out_{false};
  std::array<std::atomic<int64_t>, kFaultCount> injected_{};
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::map<PlanKey, std::shared_ptr<const PlanEntry>> before_;  // the last Put
  std::map<PlanKey, std::shared_ptr<const PlanEntry>> last_;    // Put
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_FAULTY_PLAN_STORE_H_

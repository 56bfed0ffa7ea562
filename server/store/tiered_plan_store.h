// A fast store in front of a slow one: memory in front of a file, or of a cache that several
// servers share. Three tiers are two of these, one inside the other.
//
// The slow tier is the one that counts: what is changed is read from it, and it is written first.
// It may fail, and it may lose entries; then the fast one's copy serves on, and goes back into it
// where the slow tier is shared, or the entry is to be changed.
#ifndef STOWAGE_SERVER_STORE_TIERED_PLAN_STORE_H_
#define STOWAGE_SERVER_STORE_TIERED_PLAN_STORE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "server/store/plan_store.h"

namespace stowage {

// Thread-safe. No lock is held while the slow tier works, but by those who erase from it or give
// back to it.
class TieredPlanStore final : public PlanStore {
 public:
  // `freshness` is for a slow tier that other servers change, too: a copy in the fast tier that was
  // not compared with the slow one for that long is compared at the next Get, so changes of others
  // arrive at most that late. With tiers nested, the times add up. Nothing: the slow tier is this
  // server's alone, and a copy is as good as the original.
  TieredPlanStore(std::unique_ptr<PlanStore> fast, std::unique_ptr<PlanStore> slow,
                  std::optional<std::chrono::nanoseconds> freshness = std::nullopt);
  ~TieredPlanStore() override;

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  PlanAnswer Look(const PlanKey& key, Access access) override;
  // Each tier compares what is held with what it has.
  PlanAnswer LookAgain(const PlanKey& key, Access access,
                       const std::shared_ptr<const PlanEntry>& held) override;
  // Nothing, too, when the fast tier's copy must be compared first.
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  // ABORTED from the slow tier drops the fast one's copy. After another failure of the slow tier a
  // change that must not be lost has not happened; any other one is in the fast tier, whose status is
  // returned.
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  // From both; from none if the slow tier fails.
  absl::StatusOr<bool> Erase(const PlanKey& key) override;
  // The keys of both.
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  std::vector<PlanKey> ListReachable(const std::optional<std::string>& tenant,
                                     const std::optional<PlanKey>& after, size_t limit,
                                     std::set<std::string>* unreachable) override;
  void Used(const std::vector<PlanKey>& keys) override;
  // Of the slow tier.
  PlanStoreStats stats() const override;

 private:
  using Clock = std::chrono::steady_clock;

  // What happens to keys of one stripe. Its mutex is held while the fast tier is written.
  struct Stripe {
    std::mutex mutex;
    uint64_t erasures = 0;
    std::map<PlanKey, Clock::time_point> compared;  // within `freshness`
    std::deque<std::pair<Clock::time_point, PlanKey>> by_time;
    // Looked up in the fast tier, not yet told to the slow one; without `freshness`, for comparing is
    // a lookup, too.
    std::unordered_set<PlanKey, absl::Hash<PlanKey>> used;
    // The slow tier failed to take what the fast one has. Where that has evicted it since, its key
    // goes as others come: about as many are here as have copies.
    std::set<PlanKey> ahead;
    PlanKey looked_at;  // of these, the last one whose copy was looked for
    // Held, before the other one, by who erases from the slow tier or gives back to it: what is
    // erased does not come back.
    std::mutex upkeep;
  };

  Stripe& StripeOf(const PlanKey& key);
  bool IsFresh(const PlanKey& key);
  // Whether the copy is no longer fresh. Says so once: others serve it while one compares.
  bool ClaimComparison(const PlanKey& key);
  void MarkFresh(Stripe* stripe, const PlanKey& key);
  uint64_t ErasuresOf(const PlanKey& key);
  void NoteUse(const PlanKey& key);
  // Before what may evict entries there: in between it need not know.
  void TellUses();
  PlanAnswer Inspect(const PlanKey& key, const std::shared_ptr<const PlanEntry>& held);
  // `erasures` is of before the copy was read.
  PlanAnswer LookSlow(const PlanKey& key, Access access, std::shared_ptr<const PlanEntry> copy,
                      const std::shared_ptr<const PlanEntry>& held, uint64_t erasures);
  // The fast tier's copy serves on; what the slow tier has lost is given back to it.
  PlanAnswer KeepCopy(const PlanKey& key, std::shared_ptr<const PlanEntry> copy, bool give_back);
  // ABORTED, too, when the fast tier has not that copy any more.
  absl::Status GiveBack(const PlanKey& key, const PlanEntry& copy);
  // What follows for the fast tier from what a write of the slow one says.
  absl::Status Written(const PlanKey& key, const std::shared_ptr<const PlanEntry>& entry,
                       uint64_t erasures, const absl::Status& slow,
                       const std::function<absl::Status()>& write_fast);
  bool IsAhead(const PlanKey& key);
  void SetAhead(const PlanKey& key, bool ahead);
  // With the stripe's mutex held. Looks for the copies of two others, so that all are seen in time.
  void AddAhead(Stripe* stripe, const PlanKey& key);
  // The fast tier's copy is what the slow one has, unless an Erase came in between: then false.
  bool Confirm(const PlanKey& key, uint64_t erasures);
  // Makes what the slow tier has the fast tier's copy, unless an Erase came in between or a newer
  // one is there. What does not fit leaves no copy.
  void Fill(const PlanKey& key, const std::shared_ptr<const PlanEntry>& entry, uint64_t erasures);
  absl::StatusOr<bool> Drop(const PlanKey& key);

  const std::unique_ptr<PlanStore> fast_;
  const std::unique_ptr<PlanStore> slow_;
  const std::optional<std::chrono::nanoseconds> freshness_;
  std::array<Stripe, 16> stripes_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_TIERED_PLAN_STORE_H_

// Stores that know what was decided.
#ifndef STOWAGE_SERVER_DECISIONS_DECIDED_PLAN_STORE_H_
#define STOWAGE_SERVER_DECISIONS_DECIDED_PLAN_STORE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "server/decisions/decision_book.h"
#include "server/store/plan_store.h"

namespace stowage {

// Over all tiers of a server: the one place where entries come in from them, for lookups, updates,
// solves that end, lists and what is done in the background. What is given is as was decided
// (apply_decisions.h), whatever a tier returns; what a deletion has ended is not given, and not
// taken either.
//
// A change that is required (Durability::kRequired) is a decision, and so is Erase: both are done once
// the book says so, and refused where it does; the tiers follow as far as they can, for what they
// lack is applied. Thread-safe.
class DecidedPlanStore final : public PlanStore {
 public:
  DecidedPlanStore(std::unique_ptr<PlanStore> tiers, std::shared_ptr<DecisionBook> book);

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  // What is kept of an entry that the tiers have lost is put back into them.
  PlanAnswer Look(const PlanKey& key, Access access) override;
  // Nothing, too, where something is to be put back.
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  // ABORTED, too, for an entry that began before the key's plans were deleted.
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  absl::StatusOr<bool> Erase(const PlanKey& key) override;
  absl::StatusOr<bool> EraseRead(const PlanKey& key, const PlanEntry& read) override;
  int64_t DeletedUpTo(const PlanKey& key) override;
  // Those, too, that the tiers have lost and that are put back once they are looked up.
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  std::vector<PlanKey> ListReachable(const std::optional<std::string>& tenant,
                                     const std::optional<PlanKey>& after, size_t limit,
                                     std::set<std::string>* unreachable) override;
  void Used(const std::vector<PlanKey>& keys) override { tiers_->Used(keys); }
  PlanStoreStats stats() const override { return tiers_->stats(); }

 private:
  // What was given last for what the tiers have: of one that stays it need not be made again.
  struct Given {
    std::shared_ptr<const PlanEntry> tiers;  // null: they have none
    uint64_t edition = 0;
    std::shared_ptr<const PlanEntry> entry;
  };

  std::shared_ptr<const PlanEntry> Apply(const PlanKey& key, const KeyDecisions& decisions,
                                         const std::shared_ptr<const PlanEntry>& found);
  absl::StatusOr<bool> EraseUpTo(const PlanKey& key, const PlanEntry& read);
  absl::Status Decide(const PlanKey& key, int64_t read,
                      const std::shared_ptr<const PlanEntry>& entry);
  // In the place of what a deletion has ended, too, where nothing was read.
  absl::Status Write(const PlanKey& key, int64_t read,
                     const std::shared_ptr<const PlanEntry>& entry);

  const std::unique_ptr<PlanStore> tiers_;
  const std::shared_ptr<DecisionBook> book_;
  std::mutex given_mutex_;
  std::unordered_map<PlanKey, Given, absl::Hash<PlanKey>> given_;
};

// Over the tier that servers share: whenever a server asks it about a key, what was decided is
// exchanged, too. So a decision is found by the others when a changed entry would be. Thread-safe.
class ComparingPlanStore final : public PlanStore {
 public:
  ComparingPlanStore(std::unique_ptr<PlanStore> shared, std::shared_ptr<DecisionBook> book);

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override;
  PlanAnswer Look(const PlanKey& key, Access access) override;
  PlanAnswer LookAgain(const PlanKey& key, Access access,
                       const std::shared_ptr<const PlanEntry>& held) override;
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override;
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override;
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override;
  absl::StatusOr<bool> Erase(const PlanKey& key) override { return shared_->Erase(key); }
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override;
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override;
  std::vector<PlanKey> ListReachable(const std::optional<std::string>& tenant,
                                     const std::optional<PlanKey>& after, size_t limit,
                                     std::set<std::string>* unreachable) override;
  void Used(const std::vector<PlanKey>& keys) override { shared_->Used(keys); }
  PlanStoreStats stats() const override { return shared_->stats(); }

 private:
  const std::unique_ptr<PlanStore> shared_;
  const std::shared_ptr<DecisionBook> book_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_DECIDED_PLAN_STORE_H_

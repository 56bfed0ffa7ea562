// Stores in front of another one, for tests.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_FORWARDING_STORE_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_FORWARDING_STORE_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/plan_store.h"

namespace stowage::testing {

// One that lives longer.
inline std::shared_ptr<PlanStore> Borrowed(PlanStore* store) {
  return std::shared_ptr<PlanStore>(std::shared_ptr<void>(), store);
}

// Passes everything on: what is to differ is overridden. Get goes through Look.
class ForwardingStore : public PlanStore {
 public:
  explicit ForwardingStore(std::shared_ptr<PlanStore> store) : store_(std::move(store)) {}

  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override {
    return Look(key, access).entry;
  }
  PlanAnswer Look(const PlanKey& key, Access access) override { return store_->Look(key, access); }
  // Of the other one; a store that differs in Look differs here, too, unless it says otherwise.
  PlanAnswer LookAgainThere(const PlanKey& key, Access access,
                            const std::shared_ptr<const PlanEntry>& held) {
    return store_->LookAgain(key, access, held);
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey& key,
                                                         Access access) override {
    return store_->GetNow(key, access);
  }
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override {
    return store_->Replace(key, read, std::move(entry), durability);
  }
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override {
    return store_->Put(key, std::move(entry));
  }
  absl::StatusOr<bool> Erase(const PlanKey& key) override { return store_->Erase(key); }
  absl::StatusOr<bool> EraseRead(const PlanKey& key, const PlanEntry& read) override {
    return store_->EraseRead(key, read);
  }
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override {
    return store_->List(after, limit);
  }
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override {
    return store_->ListOf(tenant, after, limit);
  }
  void Used(const std::vector<PlanKey>& keys) override { store_->Used(keys); }
  PlanStoreStats stats() const override { return store_->stats(); }

 private:
  const std::shared_ptr<PlanStore> store_;
};

// A store on another machine, as one of the servers that share it sees it.
class RemoteStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  PlanAnswer Look(const PlanKey& key, Access access) override {
    ++looks;
    return ForwardingStore::Look(key, access);
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
    return std::nullopt;
  }

  std::atomic<int> looks{0};
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_FORWARDING_STORE_H_

#include "server/store/faulty_plan_store.h"

#include <string>
#include <thread>
#include <utility>

namespace stowage {
namespace {

void FlipBit(std::string* bytes, size_t at) {
  if (bytes->empty()) return;
  char& byte = (*bytes)[at % bytes->size()];
  byte = static_cast<char>(byte ^ (1 << (at % 8)));
}

absl::Status FailedOnPurpose() { return absl::UnavailableError("the store failed on purpose"); }

}  // namespace

FaultyPlanStore::FaultyPlanStore(std::unique_ptr<PlanStore> store, const FaultPolicy& policy)
    : store_(std::move(store)), policy_(policy), random_(policy.seed) {}

bool FaultyPlanStore::Strikes(Fault fault, double probability) {
  if (probability <= 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  // Not std::bernoulli_distribution: its draws differ between standard libraries.
  const double drawn = static_cast<double>(random_() >> 11) * 0x1p-53;
  if (drawn >= probability) return false;
  ++injected_[static_cast<size_t>(fault)];
  return true;
}

size_t FaultyPlanStore::Draw(size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<size_t>(random_() % count);
}

void FaultyPlanStore::MaybeWait() {
  if (Strikes(Fault::kSlow, policy_.slow)) std::this_thread::sleep_for(policy_.delay);
}

std::shared_ptr<const PlanEntry> FaultyPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer FaultyPlanStore::Look(const PlanKey& key, Access access) {
  MaybeWait();
  if (out_ || Strikes(Fault::kMiss, policy_.miss)) return PlanAnswer{nullptr, Absence::kFailed};
  PlanAnswer answer = store_->Look(key, access);
  answer.entry = Spoil(key, std::move(answer.entry));
  return answer;
}

std::optional<std::shared_ptr<const PlanEntry>> FaultyPlanStore::GetNow(const PlanKey& key,
                                                                        Access access) {
  // A thread that must not wait is not made to.
  if (out_) return std::nullopt;
  auto entry = store_->GetNow(key, access);
  if (entry) *entry = Spoil(key, std::move(*entry));
  return entry;
}

std::shared_ptr<const PlanEntry> FaultyPlanStore::Spoil(const PlanKey& key,
                                                        std::shared_ptr<const PlanEntry> entry) {
  if (!entry) return entry;
  if (Strikes(Fault::kStale, policy_.stale)) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = before_.find(key);
    if (found != before_.end() && found->second) entry = found->second;
  }
  if (Strikes(Fault::kFlipped, policy_.flipped)) entry = Flip(*entry);
  return entry;
}

std::shared_ptr<const PlanEntry> FaultyPlanStore::Flip(const PlanEntry& entry) {
  auto flipped = std::make_shared<PlanEntry>(entry);
  if (flipped->plans.empty() || Draw(3) == 0) {
    FlipBit(&flipped->canonical, Draw(flipped->canonical.size() + 1));
    return flipped;
  }
  std::shared_ptr<const Plan>& slot = flipped->plans[Draw(flipped->plans.size())].plan;
  auto plan = std::make_shared<Plan>(*slot);
  if (plan->schedule.empty() || Draw(2) == 0) {
    plan->prediction.peak = Bytes(plan->prediction.peak.value() ^ (int64_t{1} << Draw(30)));
  } else {
    plan->schedule.erase(plan->schedule.begin() +
                         static_cast<ptrdiff_t>(Draw(plan->schedule.size())));
  }
  slot = std::move(plan);
  return flipped;
}

template <class Do>
absl::Status FaultyPlanStore::Write(const PlanKey& key,
                                    const std::shared_ptr<const PlanEntry>& entry,
                                    const Do& write) {
  MaybeWait();
  if (out_ || Strikes(Fault::kFailedPut, policy_.failed_put)) return FailedOnPurpose();
  absl::Status status = write();
  if (status.ok() && policy_.stale > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    before_[key] = std::exchange(last_[key], entry);
  }
  return status;
}

absl::Status FaultyPlanStore::Replace(const PlanKey& key, int64_t read,
                                      std::shared_ptr<const PlanEntry> entry,
                                      Durability durability) {
  return Write(key, entry, [&] { return store_->Replace(key, read, entry, durability); });
}

absl::Status FaultyPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  return Write(key, entry, [&] { return store_->Put(key, entry); });
}

absl::StatusOr<bool> FaultyPlanStore::Erase(const PlanKey& key) {
  MaybeWait();
  if (out_) return FailedOnPurpose();
  return store_->Erase(key);
}

absl::StatusOr<std::vector<PlanKey>> FaultyPlanStore::List(const std::optional<PlanKey>& after,
                                                           size_t limit) {
  MaybeWait();
  if (out_) return FailedOnPurpose();
  return store_->List(after, limit);
}

absl::StatusOr<std::vector<PlanKey>> FaultyPlanStore::ListOf(const std::string& tenant,
                                                             const std::optional<PlanKey>& after,
                                                             size_t limit) {
  MaybeWait();
  if (out_) return FailedOnPurpose();
  return store_->ListOf(tenant, after, limit);
}

PlanStoreStats FaultyPlanStore::stats() const { return store_->stats(); }

}  // namespace stowage

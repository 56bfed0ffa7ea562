#include "server/store/tiered_plan_store.h"

#include "server/entries/entry_codec.h"

namespace stowage {
namespace {

// Of one stripe. Of a key beyond them the slow tier's entry counts, as if it were newer.
constexpr size_t kMostAhead = 4096;

// Of one stripe: those beyond them are not told to the slow tier.
constexpr size_t kMostUsed = 4096;

// Two servers may have made one generation differently while the slow tier was away.
bool Same(const PlanEntry& a, const PlanEntry& b) {
  if (&a == &b) return true;
  return a.generation == b.generation && EncodeEntry(a) == EncodeEntry(b);
}

}  // namespace

TieredPlanStore::TieredPlanStore(std::unique_ptr<PlanStore> fast, std::unique_ptr<PlanStore> slow,
                                 std::optional<std::chrono::nanoseconds> freshness)
    : fast_(std::move(fast)), slow_(std::move(slow)), freshness_(freshness) {}

TieredPlanStore::~TieredPlanStore() { TellUses(); }

TieredPlanStore::Stripe& TieredPlanStore::StripeOf(const PlanKey& key) {
  return stripes_[key.digest.bytes().front() % stripes_.size()];
}

bool TieredPlanStore::IsFresh(const PlanKey& key) {
  if (!freshness_) return true;
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  const auto found = stripe.compared.find(key);
  return found != stripe.compared.end() && Clock::now() < found->second + *freshness_;
}

bool TieredPlanStore::ClaimComparison(const PlanKey& key) {
  if (!freshness_) return false;
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  const auto found = stripe.compared.find(key);
  if (found != stripe.compared.end() && Clock::now() < found->second + *freshness_) return false;
  MarkFresh(&stripe, key);
  return true;
}

void TieredPlanStore::MarkFresh(Stripe* stripe, const PlanKey& key) {
  if (!freshness_) return;
  const Clock::time_point now = Clock::now();
  stripe->compared[key] = now;
  stripe->by_time.emplace_back(now, key);
  while (stripe->by_time.front().first + *freshness_ <= now) {
    const auto& [time, old] = stripe->by_time.front();
    const auto found = stripe->compared.find(old);
    if (found != stripe->compared.end() && found->second == time) stripe->compared.erase(found);
    stripe->by_time.pop_front();
  }
}

uint64_t TieredPlanStore::ErasuresOf(const PlanKey& key) {
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  return stripe.erasures;
}

std::shared_ptr<const PlanEntry> TieredPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

void TieredPlanStore::NoteUse(const PlanKey& key) {
  if (freshness_) return;
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  if (stripe.used.size() < kMostUsed) stripe.used.insert(key);
}

void TieredPlanStore::TellUses() {
  std::vector<PlanKey> used;
  for (Stripe& stripe : stripes_) {
    std::lock_guard<std::mutex> lock(stripe.mutex);
    used.insert(used.end(), stripe.used.begin(), stripe.used.end());
    stripe.used.clear();
  }
  if (!used.empty()) slow_->Used(used);
}

void TieredPlanStore::Used(const std::vector<PlanKey>& keys) {
  fast_->Used(keys);
  slow_->Used(keys);
}

PlanAnswer TieredPlanStore::Inspect(const PlanKey& key,
                                    const std::shared_ptr<const PlanEntry>& held) {
  std::shared_ptr<const PlanEntry> copy = fast_->LookAgain(key, Access::kInspect, held).entry;
  if (copy && IsFresh(key)) return PlanAnswer{std::move(copy)};
  PlanAnswer slow = slow_->LookAgain(key, Access::kInspect, copy ? copy : held);
  const bool older = slow.entry ? copy && IsNewer(copy->generation, slow.entry->generation)
                                : slow.absence != Absence::kErased;
  return older ? PlanAnswer{std::move(copy), slow.absence} : slow;
}

PlanAnswer TieredPlanStore::Look(const PlanKey& key, Access access) {
  return LookAgain(key, access, nullptr);
}

PlanAnswer TieredPlanStore::LookAgain(const PlanKey& key, Access access,
                                      const std::shared_ptr<const PlanEntry>& held) {
  if (access == Access::kInspect) return Inspect(key, held);
  const uint64_t erasures = ErasuresOf(key);
  const bool update = access == Access::kUpdate;
  std::shared_ptr<const PlanEntry> copy =
      fast_->LookAgain(key, update ? Access::kPeek : access, held).entry;
  if (copy && !update && !ClaimComparison(key)) {
    if (access == Access::kLookup) NoteUse(key);
    return PlanAnswer{std::move(copy)};
  }
  return LookSlow(key, access, std::move(copy), held, erasures);
}

PlanAnswer TieredPlanStore::LookSlow(const PlanKey& key, Access access,
                                     std::shared_ptr<const PlanEntry> copy,
                                     const std::shared_ptr<const PlanEntry>& held,
                                     uint64_t erasures) {
  PlanAnswer slow = slow_->LookAgain(key, access, copy ? copy : held);
  if (slow.entry) {
    if (copy && IsNewer(copy->generation, slow.entry->generation)) {
      return KeepCopy(key, std::move(copy), true);
    }
    SetAhead(key, false);
    if (!copy || !Same(*copy, *slow.entry) || !Confirm(key, erasures)) {
      Fill(key, slow.entry, erasures);
    }
    return slow;
  }
  if (slow.absence == Absence::kErased) Drop(key).status().IgnoreError();
  if (!copy || slow.absence == Absence::kErased) return slow;
  return KeepCopy(key, std::move(copy), slow.absence == Absence::kUnknown);
}

PlanAnswer TieredPlanStore::KeepCopy(const PlanKey& key, std::shared_ptr<const PlanEntry> copy,
                                     bool give_back) {
  if (give_back) {
    const absl::Status given = GiveBack(key, *copy);
    if (absl::IsAborted(given)) {
      // Somebody has changed or erased it meanwhile: the next Get reads that.
      Drop(key).status().IgnoreError();
      return PlanAnswer{std::move(copy)};
    }
    SetAhead(key, !given.ok());
  }
  // Compared or not: a slow tier that is away is not asked again before its time.
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  MarkFresh(&stripe, key);
  return PlanAnswer{std::move(copy)};
}

absl::Status TieredPlanStore::GiveBack(const PlanKey& key, const PlanEntry& copy) {
  std::lock_guard<std::mutex> upkeep(StripeOf(key).upkeep);
  std::shared_ptr<const PlanEntry> now = fast_->Get(key, Access::kPeek);
  if (!now || now->generation != copy.generation) return StaleGenerationError();
  return slow_->Put(key, std::move(now));
}

bool TieredPlanStore::IsAhead(const PlanKey& key) {
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  return stripe.ahead.count(key) > 0;
}

void TieredPlanStore::SetAhead(const PlanKey& key, bool ahead) {
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  if (ahead) {
    AddAhead(&stripe, key);
  } else {
    stripe.ahead.erase(key);
  }
}

void TieredPlanStore::AddAhead(Stripe* stripe, const PlanKey& key) {
  for (int i = 0; i < 2 && !stripe->ahead.empty(); ++i) {
    auto next = stripe->ahead.upper_bound(stripe->looked_at);
    if (next == stripe->ahead.end()) next = stripe->ahead.begin();
    stripe->looked_at = *next;
    if (!fast_->Get(*next, Access::kPeek)) stripe->ahead.erase(next);
  }
  if (stripe->ahead.size() < kMostAhead) stripe->ahead.insert(key);
}

std::optional<std::shared_ptr<const PlanEntry>> TieredPlanStore::GetNow(const PlanKey& key,
                                                                        Access access) {
  // A peek first: what Get must decide is counted by Get alone.
  const auto copy = fast_->GetNow(key, Access::kPeek);
  if (!copy) return std::nullopt;
  if (*copy) {
    if (!IsFresh(key)) return std::nullopt;
    if (access != Access::kLookup) return copy;
    NoteUse(key);
    return fast_->GetNow(key, access);
  }
  return slow_->GetNow(key, access);
}

bool TieredPlanStore::Confirm(const PlanKey& key, uint64_t erasures) {
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  if (stripe.erasures != erasures) return false;
  MarkFresh(&stripe, key);
  return true;
}

void TieredPlanStore::Fill(const PlanKey& key, const std::shared_ptr<const PlanEntry>& entry,
                           uint64_t erasures) {
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  if (stripe.erasures != erasures) {
    // Of this key or of another one: without a copy the next Get asks, so none is never wrong.
    if (stripe.ahead.count(key) == 0) fast_->Erase(key).status().IgnoreError();
    stripe.compared.erase(key);
    return;
  }
  absl::Status status = fast_->Put(key, entry);
  if (absl::IsAborted(status)) {
    const auto copy = fast_->Get(key, Access::kPeek);
    if (copy && IsNewer(copy->generation, entry->generation)) return;
    // Another history, or both servers changed the same generation while the slow tier was away: it
    // is the one that counts.
    fast_->Erase(key).status().IgnoreError();
    status = fast_->Put(key, entry);
  }
  if (!status.ok()) {
    fast_->Erase(key).status().IgnoreError();
    return;
  }
  MarkFresh(&stripe, key);
}

absl::StatusOr<bool> TieredPlanStore::Drop(const PlanKey& key) {
  Stripe& stripe = StripeOf(key);
  std::lock_guard<std::mutex> lock(stripe.mutex);
  ++stripe.erasures;
  stripe.compared.erase(key);
  stripe.ahead.erase(key);
  return fast_->Erase(key);
}

absl::Status TieredPlanStore::Written(const PlanKey& key,
                                      const std::shared_ptr<const PlanEntry>& entry,
                                      uint64_t erasures, const absl::Status& slow,
                                      const std::function<absl::Status()>& write_fast) {
  if (absl::IsAborted(slow)) {
    Drop(key).status().IgnoreError();
    return slow;
  }
  if (!slow.ok()) {
    // Under one lock, or another key's AddAhead might not see the copy yet.
    Stripe& stripe = StripeOf(key);
    std::lock_guard<std::mutex> lock(stripe.mutex);
    absl::Status fast = write_fast();
    if (fast.ok()) AddAhead(&stripe, key);
    return fast;
  }
  SetAhead(key, false);
  Fill(key, entry, erasures);
  return slow;
}

absl::Status TieredPlanStore::Replace(const PlanKey& key, int64_t read,
                                      std::shared_ptr<const PlanEntry> entry,
                                      Durability durability) {
  const uint64_t erasures = ErasuresOf(key);
  TellUses();
  const bool ahead = IsAhead(key);
  if (ahead && durability == Durability::kRequired) {
    return absl::UnavailableError("what is to be changed could not be written itself");
  }
  // Of what it has failed to take the slow tier has an older generation than was read, or none.
  const absl::Status slow =
      ahead ? slow_->Put(key, entry) : slow_->Replace(key, read, entry, durability);
  const bool refused = !slow.ok() && !absl::IsAborted(slow);
  if (refused && durability == Durability::kRequired) return slow;
  return Written(key, entry, erasures, slow,
                 [&] { return fast_->Replace(key, read, entry, durability); });
}

absl::Status TieredPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  TellUses();
  const uint64_t erasures = ErasuresOf(key);
  const absl::Status slow = slow_->Put(key, entry);
  return Written(key, entry, erasures, slow, [&] { return fast_->Put(key, entry); });
}

absl::StatusOr<bool> TieredPlanStore::Erase(const PlanKey& key) {
  std::lock_guard<std::mutex> upkeep(StripeOf(key).upkeep);
  const absl::StatusOr<bool> slow = slow_->Erase(key);
  if (!slow.ok()) return slow;
  const absl::StatusOr<bool> fast = Drop(key);
  if (!fast.ok()) return fast;
  return *slow || *fast;
}

absl::StatusOr<std::vector<PlanKey>> TieredPlanStore::List(const std::optional<PlanKey>& after,
                                                           size_t limit) {
  return LeastOfBoth(fast_->List(after, limit), slow_->List(after, limit), limit);
}

absl::StatusOr<std::vector<PlanKey>> TieredPlanStore::ListOf(const std::string& tenant,
                                                             const std::optional<PlanKey>& after,
                                                             size_t limit) {
  return LeastOfBoth(fast_->ListOf(tenant, after, limit), slow_->ListOf(tenant, after, limit),
                     limit);
}

std::vector<PlanKey> TieredPlanStore::ListReachable(const std::optional<std::string>& tenant,
                                                    const std::optional<PlanKey>& after,
                                                    size_t limit,
                                                    std::set<std::string>* unreachable) {
  return *LeastOfBoth(fast_->ListReachable(tenant, after, limit, unreachable),
                      slow_->ListReachable(tenant, after, limit, unreachable), limit);
}

PlanStoreStats TieredPlanStore::stats() const { return slow_->stats(); }

}  // namespace stowage

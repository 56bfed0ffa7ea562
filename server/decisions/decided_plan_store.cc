#include "server/decisions/decided_plan_store.h"

#include <utility>

#include "server/decisions/apply_decisions.h"

namespace stowage {
namespace {

// Of keys with decisions; made anew where there are more.
constexpr size_t kMostGiven = 256;

std::shared_ptr<const PlanEntry> WithoutEdition(const std::shared_ptr<const PlanEntry>& entry) {
  if (entry->edition == 0) return entry;
  PlanEntry plain = *entry;
  plain.edition = 0;
  return std::make_shared<const PlanEntry>(std::move(plain));
}

}  // namespace

DecidedPlanStore::DecidedPlanStore(std::unique_ptr<PlanStore> tiers,
                                   std::shared_ptr<DecisionBook> book)
    : tiers_(std::move(tiers)), book_(std::move(book)) {}

int64_t DecidedPlanStore::DeletedUpTo(const PlanKey& key) {
  const auto decisions = book_->Find(key);
  return decisions ? decisions->deleted_up_to() : 0;
}

std::shared_ptr<const PlanEntry> DecidedPlanStore::Apply(
    const PlanKey& key, const KeyDecisions& decisions,
    const std::shared_ptr<const PlanEntry>& found) {
  {
    std::lock_guard<std::mutex> lock(given_mutex_);
    const auto given = given_.find(key);
    const bool is_same = given != given_.end() && given->second.tiers == found &&
                         given->second.edition == decisions.edition;
    if (is_same) return given->second.entry;
  }
  std::shared_ptr<const PlanEntry> entry = ApplyDecisions(decisions, found);
  std::lock_guard<std::mutex> lock(given_mutex_);
  if (given_.size() >= kMostGiven) given_.clear();
  given_[key] = {found, decisions.edition, entry};
  return entry;
}

std::shared_ptr<const PlanEntry> DecidedPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer DecidedPlanStore::Look(const PlanKey& key, Access access) {
  PlanAnswer found = tiers_->Look(key, access);
  const auto decisions = book_->Find(key);  // after the tiers: they may have told of some
  if (!decisions) return found;
  PlanAnswer answer{Apply(key, *decisions, found.entry), found.absence};
  const bool over = found.entry && found.entry->generation <= decisions->deleted_up_to();
  if (answer.entry) {
    const bool lost = !found.entry || over;
    // Where it is not taken it is made again.
    if (lost && access != Access::kInspect) Write(key, 0, answer.entry).IgnoreError();
  } else if (over || (found.absence == Absence::kUnknown && decisions->deleted_up_to() > 0)) {
    answer.absence = Absence::kErased;
  }
  return answer;
}

std::optional<std::shared_ptr<const PlanEntry>> DecidedPlanStore::GetNow(const PlanKey& key,
                                                                         Access access) {
  const auto found = tiers_->GetNow(key, access);
  if (!found) return std::nullopt;
  const auto decisions = book_->Find(key);
  if (!decisions) return found;
  std::shared_ptr<const PlanEntry> entry = Apply(key, *decisions, *found);
  const bool there = *found && (*found)->generation > decisions->deleted_up_to();
  if (entry && !there) return std::nullopt;
  return entry;
}

absl::Status DecidedPlanStore::Write(const PlanKey& key, int64_t read,
                                     const std::shared_ptr<const PlanEntry>& decided) {
  const std::shared_ptr<const PlanEntry> entry = WithoutEdition(decided);
  absl::Status written = tiers_->Replace(key, read, entry, Durability::kBestEffort);
  const int64_t deleted_up_to = DeletedUpTo(key);
  if (read != 0 || !absl::IsAborted(written) || deleted_up_to == 0) return written;
  const auto there = tiers_->Get(key, Access::kUpdate);
  if (!there || there->generation > deleted_up_to) return written;
  return tiers_->Replace(key, there->generation, entry, Durability::kBestEffort);
}

absl::Status DecidedPlanStore::Replace(const PlanKey& key, int64_t read,
                                       std::shared_ptr<const PlanEntry> entry,
                                       Durability durability) {
  if (entry->generation <= DeletedUpTo(key)) return StaleGenerationError();
  return durability == Durability::kRequired ? Decide(key, read, entry) : Write(key, read, entry);
}

absl::Status DecidedPlanStore::Decide(const PlanKey& key, int64_t read,
                                      const std::shared_ptr<const PlanEntry>& entry) {
  const std::shared_ptr<const PlanEntry> now = Get(key, Access::kUpdate);
  // What others have decided since changes no generation.
  if ((now ? now->generation : 0) != read || (now ? now->edition : 0) != entry->edition) {
    return StaleGenerationError();
  }
  std::vector<Decision> made;
  if (now) made = DecisionsBetween(*now, *entry);
  if (made.empty()) {
    return tiers_->Replace(key, read, WithoutEdition(entry), Durability::kRequired);
  }
  const absl::Status decided = book_->Decide(key, entry->edition, std::move(made));
  if (!decided.ok()) return decided;
  // Tiers that have it as decided serve servers of versions that know no decisions.
  Write(key, read, entry).IgnoreError();
  return absl::OkStatus();
}

absl::Status DecidedPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  if (entry->generation <= DeletedUpTo(key)) return StaleGenerationError();
  return tiers_->Put(key, std::move(entry));
}

absl::StatusOr<bool> DecidedPlanStore::Erase(const PlanKey& key) {
  constexpr int kAttempts = 3;
  absl::StatusOr<bool> erased = StaleGenerationError();
  for (int attempt = 0; attempt < kAttempts && absl::IsAborted(erased.status()); ++attempt) {
    const PlanAnswer there = Look(key, Access::kUpdate);
    if (!there.entry && there.absence == Absence::kFailed) {
      return absl::UnavailableError("a tier does not say whether there is something");
    }
    if (!there.entry) return false;
    erased = EraseUpTo(key, *there.entry);
  }
  return erased;
}

absl::StatusOr<bool> DecidedPlanStore::EraseRead(const PlanKey& key, const PlanEntry& read) {
  const std::shared_ptr<const PlanEntry> now = Get(key, Access::kUpdate);
  if (!now || now->generation != read.generation) return StaleGenerationError();
  return EraseUpTo(key, read);
}

absl::StatusOr<bool> DecidedPlanStore::EraseUpTo(const PlanKey& key, const PlanEntry& read) {
  const absl::Status decided =
      book_->Decide(key, read.edition, {DeletionOf(read.generation, DeletedUpTo(key))});
  if (!decided.ok()) return decided;
  // Where it stays it is over.
  tiers_->Erase(key).status().IgnoreError();
  return true;
}

absl::StatusOr<std::vector<PlanKey>> DecidedPlanStore::List(const std::optional<PlanKey>& after,
                                                            size_t limit) {
  return LeastOfBoth(tiers_->List(after, limit), book_->Held(std::nullopt, after, limit), limit);
}

absl::StatusOr<std::vector<PlanKey>> DecidedPlanStore::ListOf(const std::string& tenant,
                                                              const std::optional<PlanKey>& after,
                                                              size_t limit) {
  return LeastOfBoth(tiers_->ListOf(tenant, after, limit), book_->Held(tenant, after, limit),
                     limit);
}

std::vector<PlanKey> DecidedPlanStore::ListReachable(const std::optional<std::string>& tenant,
                                                     const std::optional<PlanKey>& after,
                                                     size_t limit,
                                                     std::set<std::string>* unreachable) {
  return *LeastOfBoth(tiers_->ListReachable(tenant, after, limit, unreachable),
                      book_->Held(tenant, after, limit), limit);
}

ComparingPlanStore::ComparingPlanStore(std::unique_ptr<PlanStore> shared,
                                       std::shared_ptr<DecisionBook> book)
    : shared_(std::move(shared)), book_(std::move(book)) {}

std::shared_ptr<const PlanEntry> ComparingPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer ComparingPlanStore::Look(const PlanKey& key, Access access) {
  book_->Compare(key);
  return shared_->Look(key, access);
}

PlanAnswer ComparingPlanStore::LookAgain(const PlanKey& key, Access access,
                                         const std::shared_ptr<const PlanEntry>& held) {
  book_->Compare(key);
  return shared_->LookAgain(key, access, held);
}

std::optional<std::shared_ptr<const PlanEntry>> ComparingPlanStore::GetNow(const PlanKey&, Access) {
  return std::nullopt;  // Look compares
}

absl::Status ComparingPlanStore::Replace(const PlanKey& key, int64_t read,
                                         std::shared_ptr<const PlanEntry> entry,
                                         Durability durability) {
  return shared_->Replace(key, read, std::move(entry), durability);
}

absl::Status ComparingPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  return shared_->Put(key, std::move(entry));
}

absl::StatusOr<std::vector<PlanKey>> ComparingPlanStore::List(const std::optional<PlanKey>& after,
                                                              size_t limit) {
  return shared_->List(after, limit);
}

absl::StatusOr<std::vector<PlanKey>> ComparingPlanStore::ListOf(const std::string& tenant,
                                                                const std::optional<PlanKey>& after,
                                                                size_t limit) {
  return shared_->ListOf(tenant, after, limit);
}

std::vector<PlanKey> ComparingPlanStore::ListReachable(const std::optional<std::string>& tenant,
                                                       const std::optional<PlanKey>& after,
                                                       size_t limit,
                                                       std::set<std::string>* unreachable) {
  return shared_->ListReachable(tenant, after, limit, unreachable);
}

}  // namespace stowage

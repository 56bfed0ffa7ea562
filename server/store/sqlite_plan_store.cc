#include "server/store/sqlite_plan_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/entries/entry_codec.h"

namespace stowage {
namespace {

// Lookups of this many entries are written at once.
constexpr size_t kMostUses = 512;
constexpr int64_t kMaxClock = int64_t{1} << 62;

struct Opened {
  std::unique_ptr<SqliteEntries> entries;
  SqliteEntries::Totals totals;
};

absl::StatusOr<Opened> OpenWithTotals(const SqlitePlanStore::Options& options) {
  auto entries = SqliteEntries::Open(options.file);
  if (!entries.ok()) return entries.status();
  // Where the file is read-only, what is over a limit stays.
  (*entries)->RemoveOver(options.max_bytes.value()).IgnoreError();
  const auto totals = (*entries)->ReadTotals();
  if (!totals.ok()) return totals.status();
  return Opened{*std::move(entries), *totals};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqlitePlanStore>> SqlitePlanStore::Open(Options options,
                                                                       ServerMetrics* metrics) {
  // One file has one lock, whatever it is called by.
  std::error_code ignored;
  const auto canonical = std::filesystem::weakly_canonical(options.file.path, ignored);
  if (!canonical.empty()) options.file.path = canonical.string();
  absl::StatusOr<FileLock> lock = FileLock::Take(options.file.path + ".lock");
  if (!lock.ok()) {
    return absl::Status(lock.status().code(), absl::StrCat("plan store ", options.file.path, ": ",
                                                           lock.status().message()));
  }
  std::unique_ptr<SqlitePlanStore> store(
      new SqlitePlanStore(std::move(options), *std::move(lock), metrics));
  std::lock_guard<std::mutex> writing(store->write_mutex_);
  const absl::Status status = store->OpenEntries();
  if (!status.ok()) return status;
  return store;
}

SqlitePlanStore::SqlitePlanStore(Options options, FileLock lock, ServerMetrics* metrics)
    : options_(std::move(options)), lock_(std::move(lock)), metrics_(metrics) {}

SqlitePlanStore::~SqlitePlanStore() {
  std::lock_guard<std::mutex> writing(write_mutex_);
  if (entries_ && !uses_.empty())
    InTransaction([this](Change*) { return WriteUses(); }).IgnoreError();
}

absl::Status SqlitePlanStore::OpenEntries() {
  absl::StatusOr<Opened> opened = OpenWithTotals(options_);
  if (absl::IsDataLoss(opened.status())) {
    Count(CacheFailure::kCorrupt);
    absl::Status moved = MoveAside(options_.file.path);
    if (!moved.ok()) return moved;
    opened = OpenWithTotals(options_);
  }
  if (!opened.ok()) return opened.status();
  entries_ = std::move(opened->entries);
  ++opened_;
  count_ = opened->totals.entries;
  charged_ = opened->totals.charged;
  clock_ = std::clamp<int64_t>(opened->totals.last_used, 0, kMaxClock);
  if (is_over(0)) InTransaction([this](Change* change) { return Evict(change); }).IgnoreError();
  return absl::OkStatus();
}

// Once damage was found. Nobody reads meanwhile.
absl::Status SqlitePlanStore::Reopen() {
  std::unique_lock<std::shared_mutex> alone(open_mutex_);
  if (entries_) {
    entries_.reset();
    Count(CacheFailure::kCorrupt);
    absl::Status moved = MoveAside(options_.file.path);
    if (!moved.ok()) return moved;
  }
  count_ = charged_ = 0;
  return OpenEntries();
}

template <class Work>
absl::Status SqlitePlanStore::InTransaction(const Work& work) {
  Change change;
  SqliteTransaction transaction(entries_->writer());
  absl::Status status = transaction.Begin();
  if (status.ok()) status = work(&change);
  if (status.ok()) status = transaction.Commit();
  if (!status.ok()) return status;
  count_ += change.entries;
  charged_ += change.charged;
  evicted_ += change.evicted;
  return absl::OkStatus();
}

template <class Work>
absl::Status SqlitePlanStore::InTransaction(const Work& work, Durability durability) {
  if (durability == Durability::kBestEffort) return InTransaction(work);
  absl::Status status = entries_->SyncCommits(true);
  if (status.ok()) status = InTransaction(work);
  entries_->SyncCommits(false).IgnoreError();
  return status;
}

// What meets damage is done in the database that is begun then.
template <class Work>
absl::Status SqlitePlanStore::Write(const Work& work, Durability durability) {
  absl::Status status = absl::DataLossError("");
  if (entries_) status = InTransaction(work, durability);
  if (absl::IsDataLoss(status)) {
    status = Reopen();
    if (status.ok()) status = InTransaction(work, durability);
  }
  if (absl::IsDataLoss(status)) status = absl::UnavailableError(status.message());
  if (absl::IsUnavailable(status)) Count(CacheFailure::kNotWritten);
  return status;
}

template <class T, class Reading>
absl::StatusOr<T> SqlitePlanStore::Read(const Reading& reading) {
  std::shared_lock<std::shared_mutex> open(open_mutex_);
  const int64_t opened = opened_;
  absl::StatusOr<T> result = absl::UnavailableError("the database is not open");
  if (entries_) result = reading(entries_.get());
  open.unlock();
  if (absl::IsDataLoss(result.status())) {
    std::lock_guard<std::mutex> writing(write_mutex_);
    // Unless another thread has seen the damage, too.
    if (opened == opened_) Reopen().IgnoreError();
  } else if (!result.ok()) {
    Count(CacheFailure::kUnavailable);
  }
  return result;
}

std::shared_ptr<const PlanEntry> SqlitePlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer SqlitePlanStore::Look(const PlanKey& key, Access access) {
  using Found = std::optional<SqliteEntries::Stored>;
  absl::StatusOr<Found> found =
      Read<Found>([&key](SqliteEntries* entries) { return entries->Read(key); });
  if (absl::IsUnavailable(found.status())) return PlanAnswer{nullptr, Absence::kFailed};
  if (!found.ok() || !*found) return PlanAnswer();
  const int64_t generation = (*found)->generation;
  const bool has_tenant = (*found)->has_tenant;
  const std::string seal = SealOf((*found)->entry);
  auto entry = DecodeEntry(key, std::move((*found)->entry), (*found)->update_note);
  // The generation beside the entry decides what replaces it.
  if (entry.ok() && (*entry)->generation != generation) {
    entry = absl::DataLossError("two generations");
  }
  if (!entry.ok()) {
    Count(FailureOf(entry.status()));
    Remove(key, generation, Durability::kBestEffort).status().IgnoreError();
    return PlanAnswer();
  }
  if (!has_tenant) NoteTenant(key, (*entry)->tenant);
  if (access == Access::kLookup) Use(key);
  known_.Remember(key, {generation, seal}, *entry);
  return PlanAnswer{*std::move(entry)};
}

PlanAnswer SqlitePlanStore::LookAgain(const PlanKey& key, Access access,
                                      const std::shared_ptr<const PlanEntry>& held) {
  if (!held) return Look(key, access);
  using Found = std::optional<EntryStamp>;
  const absl::StatusOr<Found> there =
      Read<Found>([&key](SqliteEntries* entries) { return entries->ReadStamp(key); });
  if (absl::IsUnavailable(there.status())) return PlanAnswer{nullptr, Absence::kFailed};
  if (!there.ok() || !*there) return PlanAnswer();
  if ((*there)->generation != held->generation) return Look(key, access);
  const auto known = known_.Find(key);
  const bool is_known = known && known->entry == held;
  const EntryStamp stamp = is_known ? known->stamp : StampOf(*held);
  if (!(**there == stamp)) return Look(key, access);
  if (!is_known) known_.Remember(key, stamp, held);
  if (access == Access::kLookup) Use(key);
  return PlanAnswer{held};
}

std::optional<std::shared_ptr<const PlanEntry>> SqlitePlanStore::GetNow(const PlanKey&, Access) {
  return std::nullopt;
}

absl::Status SqlitePlanStore::Replace(const PlanKey& key, int64_t read,
                                      std::shared_ptr<const PlanEntry> entry,
                                      Durability durability) {
  return WriteEntry(
      key, std::move(entry), [read](int64_t there) { return there == read; }, durability);
}

absl::Status SqlitePlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  const int64_t generation = entry->generation;
  return WriteEntry(
      key, std::move(entry),
      [generation](int64_t there) { return there == 0 || IsNewer(generation, there); },
      Durability::kBestEffort);
}

template <class MayReplace>
absl::Status SqlitePlanStore::WriteEntry(const PlanKey& key, std::shared_ptr<const PlanEntry> entry,
                                         const MayReplace& may_replace, Durability durability) {
  const absl::StatusOr<ChargedEntry> fit = FitTo(options_.max_bytes, std::move(entry));
  if (!fit.ok()) return fit.status();
  const std::string bytes = EncodeEntry(*fit->entry);
  std::lock_guard<std::mutex> writing(write_mutex_);
  const absl::Status written = Write(
      [&](Change* change) { return WriteRow(key, *fit, bytes, may_replace, change); }, durability);
  if (written.ok()) known_.Remember(key, {fit->entry->generation, SealOf(bytes)}, fit->entry);
  return written;
}

template <class MayReplace>
absl::Status SqlitePlanStore::WriteRow(const PlanKey& key, const ChargedEntry& entry,
                                       const std::string& bytes, const MayReplace& may_replace,
                                       Change* change) {
  const auto there = entries_->Find(key);
  if (!there.ok()) return there.status();
  const std::optional<SqliteEntries::Row>& row = *there;
  if (!may_replace(row ? row->generation : 0)) return StaleGenerationError();
  change->entries = row ? 0 : 1;
  change->charged = entry.charge.value() - (row ? row->charge : 0);
  // Before the entry is used itself: then it is not what goes.
  absl::Status status = is_over(change->charged) ? WriteUses() : absl::OkStatus();
  if (!status.ok()) return status;
  status = entries_->Write(key, *entry.entry, bytes, entry.charge, ++clock_);
  return status.ok() ? Evict(change) : status;
}

absl::Status SqlitePlanStore::Evict(Change* change) {
  while (is_over(change->charged)) {
    const auto least = entries_->LeastUsed();
    if (!least.ok()) return least.status();
    if (!*least) break;
    const absl::Status status = entries_->Remove((*least)->id);
    if (!status.ok()) return status;
    change->entries -= 1;
    change->charged -= (*least)->charge;
    change->evicted += 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SqlitePlanStore::Erase(const PlanKey& key) {
  return Remove(key, std::nullopt, Durability::kRequired);
}

absl::StatusOr<bool> SqlitePlanStore::Remove(const PlanKey& key, std::optional<int64_t> generation,
                                             Durability durability) {
  bool removed = false;
  std::lock_guard<std::mutex> writing(write_mutex_);
  const absl::Status status = Write(
      [&](Change* change) {
        removed = false;
        const auto there = entries_->Find(key);
        if (!there.ok()) return there.status();
        const std::optional<SqliteEntries::Row>& row = *there;
        if (!row || (generation && row->generation != *generation)) return absl::OkStatus();
        *change = {-1, -row->charge, 0};
        removed = true;
        return entries_->Remove(row->id);
      },
      durability);
  if (!status.ok()) return status;
  return removed;
}

void SqlitePlanStore::Use(const PlanKey& key) {
  {
    std::lock_guard<std::mutex> lock(uses_mutex_);
    uses_[key] = ++clock_;
    if (uses_.size() < kMostUses) return;
  }
  // Who writes now writes the next time, too.
  std::unique_lock<std::mutex> writing(write_mutex_, std::try_to_lock);
  if (writing)
    Write([this](Change*) { return WriteUses(); }, Durability::kBestEffort).IgnoreError();
}

void SqlitePlanStore::NoteTenant(const PlanKey& key, const std::string& tenant) {
  std::unique_lock<std::mutex> writing(write_mutex_, std::try_to_lock);
  if (!writing) return;
  Write([&](Change*) { return entries_->SetTenant(key, tenant); }, Durability::kBestEffort)
      .IgnoreError();
}

void SqlitePlanStore::Used(const std::vector<PlanKey>& keys) {
  for (const PlanKey& key : keys) Use(key);
}

absl::Status SqlitePlanStore::WriteUses() {
  std::unordered_map<PlanKey, int64_t, absl::Hash<PlanKey>> uses;
  {
    std::lock_guard<std::mutex> lock(uses_mutex_);
    uses.swap(uses_);
  }
  for (const auto& [key, used] : uses) {
    const absl::Status status = entries_->Use(key, used);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlanKey>> SqlitePlanStore::List(const std::optional<PlanKey>& after,
                                                           size_t limit) {
  return Read<std::vector<PlanKey>>(
      [&](SqliteEntries* entries) { return entries->Keys(after, limit); });
}

absl::StatusOr<std::vector<PlanKey>> SqlitePlanStore::ListOf(const std::string& tenant,
                                                             const std::optional<PlanKey>& after,
                                                             size_t limit) {
  return Read<std::vector<PlanKey>>(
      [&](SqliteEntries* entries) { return entries->KeysOf(tenant, after, limit); });
}

PlanStoreStats SqlitePlanStore::stats() const {
  PlanStoreStats stats;
  stats.entries = count_;
  stats.charged = Bytes(charged_);
  stats.evicted = evicted_;
  return stats;
}

}  // namespace stowage

#include "server/decisions/decision_book.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decisions/apply_decisions.h"
#include "server/entries/plan_entry.h"

namespace stowage {
namespace {

// Later than `known`. The low bits are drawn: two servers hardly ever make one stamp.
int64_t StampAfter(int64_t known) {
  thread_local std::random_device random;
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  const int64_t drawn = int64_t{random()} % kStampsPerMicrosecond;
  return std::max(micros * kStampsPerMicrosecond + drawn, known + 1);
}

const Decision* OneFor(const DecisionId& id, const std::vector<Decision>& decisions) {
  const auto found = std::find_if(decisions.begin(), decisions.end(),
                                  [&id](const Decision& other) { return IdOf(other) == id; });
  return found == decisions.end() ? nullptr : &*found;
}

std::vector<DecisionId> NewsIn(const std::vector<Decision>& shared, const KeyDecisions& known) {
  std::vector<DecisionId> news;
  for (const Decision& decision : shared) {
    if (known.IsNews(decision)) news.push_back(IdOf(decision));
  }
  return news;
}

std::vector<Decision> LackingIn(const std::vector<Decision>& shared, const KeyDecisions& known) {
  std::vector<Decision> lacking;
  for (const auto& [id, decision] : known.all) {
    const Decision* const there = OneFor(id, shared);
    if (there == nullptr || there->stamp < decision.stamp) lacking.push_back(decision);
  }
  return lacking;
}

absl::Status UnreadableError(const PlanKey& key) {
  return absl::UnavailableError(absl::StrCat("what was decided about ", key.digest.ToHex(),
                                             " is shared, but the latest of it cannot be read"));
}

std::vector<Decision> AllOf(const KeyDecisions& known) { return LackingIn({}, known); }

}  // namespace

absl::StatusOr<std::unique_ptr<DecisionBook>> DecisionBook::Open(
    std::unique_ptr<DecisionStore> own, std::unique_ptr<SharedDecisions> shared,
    ServerMetrics* metrics, std::optional<std::chrono::nanoseconds> upkeep) {
  const absl::StatusOr<std::vector<KeyedDecision>> all = own->Load();
  if (!all.ok()) return all.status();
  constexpr int kUpkeepsUntilSettled = 3;
  std::unique_ptr<DecisionBook> book(
      new DecisionBook(std::move(own), std::move(shared), metrics,
                       kUpkeepsUntilSettled * upkeep.value_or(std::chrono::nanoseconds(0))));
  {
    Writing writing(book->write_mutex_);
    for (const auto& [key, decision] : *all) book->Install(key, {decision});
  }
  if (upkeep && book->shared_) {
    book->thread_ = std::thread([b = book.get(), pause = *upkeep] { b->Run(pause); });
  }
  return book;
}

DecisionBook::~DecisionBook() {
  {
    std::lock_guard<std::mutex> lock(stop_mutex_);
    stopped_ = true;
  }
  stop_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DecisionBook::Run(std::chrono::nanoseconds pause) {
  std::unique_lock<std::mutex> lock(stop_mutex_);
  while (!stopped_) {
    lock.unlock();
    Upkeep();
    lock.lock();
    stop_changed_.wait_for(lock, pause, [this] { return stopped_; });
  }
}

std::shared_ptr<const KeyDecisions> DecisionBook::Find(const PlanKey& key) const {
  if (!any_) return nullptr;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second;
}

KeyDecisions DecisionBook::Known(const PlanKey& key) const {
  const auto found = Find(key);
  return found ? *found : KeyDecisions();
}

void DecisionBook::Install(const PlanKey& key, const std::vector<Decision>& decisions) {
  auto next = std::make_shared<KeyDecisions>(Known(key));
  for (const Decision& decision : decisions) next->Add(decision);
  const std::shared_ptr<const PlanEntry> held = HeldEntry(*next);
  std::unique_lock<std::shared_mutex> lock(mutex_);
  next->edition = ++editions_;
  known_[key] = std::move(next);
  if (held) {
    held_.insert(key);
    held_of_tenants_[held->tenant].insert(key);
  } else if (held_.erase(key) > 0) {
    for (auto of = held_of_tenants_.begin(); of != held_of_tenants_.end(); ++of) {
      if (of->second.erase(key) == 0) continue;
      if (of->second.empty()) held_of_tenants_.erase(of);
      break;
    }
  }
  any_ = true;
}

absl::Status DecisionBook::Write(const PlanKey& key, const std::vector<Decision>& decisions) {
  absl::Status written = own_->Write(key, decisions);
  if (!written.ok()) metrics_->CacheFailed(CacheTier::kSqlite, CacheFailure::kNotWritten);
  return written;
}

absl::Status DecisionBook::Decide(const PlanKey& key, uint64_t edition,
                                  std::vector<Decision> decisions) {
  Writing writing(write_mutex_);
  int64_t latest = 0;
  if (shared_) {
    const absl::StatusOr<std::vector<Decision>> heads = shared_->Heads(key);
    if (!heads.ok()) return heads.status();
    Exchange(key, *heads);
    for (const Decision& head : *heads) latest = std::max(latest, head.stamp);
  }
  const KeyDecisions known = Known(key);
  if (known.edition != edition) return StaleGenerationError();
  const int64_t stamp = StampAfter(std::max(latest, known.latest_stamp()));
  if (stamp >= kLatestStamp)
    return absl::UnavailableError("a decision has the last stamp there is");
  for (Decision& decision : decisions) decision.stamp = stamp;
  absl::Status status = Write(key, decisions);
  if (!status.ok()) return status;
  if (shared_) status = shared_->Tell(key, decisions);
  if (!status.ok()) {
    Withdraw(key, decisions);
    return status;
  }
  Install(key, decisions);
  DropWhatIsOver(key, decisions);
  return absl::OkStatus();
}

// What cannot be dropped is over all the same.
void DecisionBook::DropWhatIsOver(const PlanKey& key, const std::vector<Decision>& decisions) {
  const Decision* const deletion = OneFor({DecisionKind::kDeletion, 0}, decisions);
  if (deletion != nullptr) own_->DropUpTo(key, deletion->generation).IgnoreError();
}

// The decisions before them, as later ones: an answer that was lost may have been told all the same.
void DecisionBook::Withdraw(const PlanKey& key, const std::vector<Decision>& decisions) {
  const KeyDecisions known = Known(key);
  std::vector<Decision> former;
  for (const Decision& decision : decisions) {
    const auto found = known.all.find(IdOf(decision));
    Decision before = decision;
    before.kept = nullptr;
    if (decision.kind == DecisionKind::kDeletion) before.generation = 0;
    if (found != known.all.end()) before = found->second;
    before.stamp = decision.stamp + 1;
    former.push_back(std::move(before));
  }
  if (!Write(key, former).ok()) unwritten_.insert(key);
  Install(key, former);
}

void DecisionBook::Compare(const PlanKey& key) {
  if (!shared_) return;
  const absl::StatusOr<std::vector<Decision>> heads = shared_->Heads(key);
  if (!heads.ok()) return;
  const KeyDecisions known = Known(key);
  if (NewsIn(*heads, known).empty() && LackingIn(*heads, known).empty()) return;
  Writing writing(write_mutex_);
  Exchange(key, *heads);
}

void DecisionBook::Exchange(const PlanKey& key, const std::vector<Decision>& heads) {
  LearnNews(key, heads);
  const std::vector<Decision> lacking = LackingIn(heads, Known(key));
  if (!lacking.empty()) shared_->Tell(key, lacking).IgnoreError();
}

void DecisionBook::LearnNews(const PlanKey& key, const std::vector<Decision>& heads) {
  const std::vector<DecisionId> news = NewsIn(heads, Known(key));
  if (!news.empty()) Learn(key, shared_->Read(key, news).value_or(std::vector<Decision>()));
}

absl::StatusOr<std::vector<Decision>> DecisionBook::Gathered(const PlanKey& key) const {
  KeyDecisions known = Known(key);
  if (shared_) {
    const absl::StatusOr<SharedDecisions::AllOfKey> shared = shared_->ReadAll(key);
    if (!shared.ok()) return shared.status();
    for (const Decision& decision : shared->read) known.Add(decision);
    // What this server has as well is no loss.
    if (!NewsIn(shared->unreadable, known).empty()) return UnreadableError(key);
  }
  return AllOf(known);
}

absl::Status DecisionBook::CatchUp(const PlanKey& key) {
  const auto behind = unwritten_.find(key);
  if (behind == unwritten_.end()) return absl::OkStatus();
  absl::Status written = Write(key, AllOf(Known(key)));
  if (written.ok()) unwritten_.erase(behind);
  return written;
}

absl::StatusOr<std::vector<Decision>> DecisionBook::Take(const PlanKey& key,
                                                         const std::vector<Decision>& decisions) {
  std::vector<Decision> heads;
  if (shared_) {
    absl::StatusOr<std::vector<Decision>> told = shared_->Heads(key);
    if (!told.ok()) return told.status();
    heads = *std::move(told);
  }
  Writing writing(write_mutex_);
  if (shared_) LearnNews(key, heads);
  if (absl::Status caught_up = CatchUp(key); !caught_up.ok()) return caught_up;
  KeyDecisions after = Known(key);
  for (const Decision& decision : decisions) after.Add(decision);
  const std::vector<Decision> taken = LackingIn(AllOf(Known(key)), after);
  if (!taken.empty()) {
    if (absl::Status written = Write(key, taken); !written.ok()) return written;
    Install(key, taken);
    DropWhatIsOver(key, taken);
  }
  if (!shared_) return taken;
  // All that counts: a record there that cannot be read gives way to one that is no older.
  if (absl::Status told = shared_->Tell(key, AllOf(after)); !told.ok()) return told;
  if (NewsIn(heads, Known(key)).empty()) return taken;
  return UnreadableError(key);
}

void DecisionBook::Learn(const PlanKey& key, const std::vector<Decision>& decisions) {
  if (decisions.empty()) return;
  if (!Write(key, decisions).ok()) unwritten_.insert(key);
  Install(key, decisions);
  DropWhatIsOver(key, decisions);
}

void DecisionBook::WriteUnwritten() {
  Writing writing(write_mutex_);
  for (auto it = unwritten_.begin(); it != unwritten_.end();) {
    if (!Write(*it, AllOf(Known(*it))).ok()) return;
    it = unwritten_.erase(it);
  }
}

std::vector<PlanKey> DecisionBook::KnownKeys() const {
  std::vector<PlanKey> keys;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  for (const auto& [key, known] : known_) keys.push_back(key);
  return keys;
}

absl::StatusOr<std::vector<PlanKey>> DecisionBook::Keys(const std::optional<PlanKey>& after,
                                                        size_t limit, const StopToken& stop) const {
  std::vector<PlanKey> keys = KnownKeys();
  if (shared_) {
    if (absl::Status complete = CheckComplete(); !complete.ok()) return complete;
    const absl::StatusOr<std::vector<PlanKey>> shared = shared_->Keys(after, limit, stop);
    if (!shared.ok()) return shared.status();
    if (absl::Status complete = CheckComplete(); !complete.ok()) return complete;
    keys.insert(keys.end(), shared->begin(), shared->end());
  }
  const auto is_before = [&after](const PlanKey& key) { return after && !(*after < key); };
  keys.erase(std::remove_if(keys.begin(), keys.end(), is_before), keys.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  keys.resize(std::min(keys.size(), limit));
  return keys;
}

bool DecisionBook::stopped() {
  std::lock_guard<std::mutex> lock(stop_mutex_);
  return stopped_;
}

bool DecisionBook::TellAll() {
  // The mark first: what is lost after it takes it along.
  if (!shared_->Mark().ok()) return false;
  const std::vector<PlanKey> keys = KnownKeys();
  return std::all_of(keys.begin(), keys.end(), [this](const PlanKey& key) {
    return !stopped() && shared_->Tell(key, AllOf(Known(key))).ok();
  });
}

absl::Status DecisionBook::CheckComplete() const {
  if (!shared_) return absl::OkStatus();
  const std::chrono::nanoseconds told_at(told_all_at_ns_);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (told_at.count() > 0 && now - told_at >= settles_) return shared_->CheckHasAll();
  return absl::UnavailableError(
      "servers tell each other what was decided, since this one has begun or what they share was "
      "lost: ask again in some seconds");
}

void DecisionBook::Upkeep() {
  WriteUnwritten();
  if (!shared_) return;
  std::lock_guard<std::mutex> upkeep(upkeep_mutex_);
  if (told_all_at_ns_ > 0) {
    const absl::StatusOr<bool> marked = shared_->IsMarked();
    if (!marked.ok()) return;
    if (*marked) {
      if (++upkeeps_ < kUpkeepsPerLook) return;
      upkeeps_ = 0;
      for (const PlanKey& key : KnownKeys()) {
        if (stopped()) return;
        Compare(key);
      }
      return;
    }
  }
  // Nobody takes it for settled while it is told again: the mark is there before all else is.
  told_all_at_ns_ = 0;
  if (!TellAll()) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  told_all_at_ns_ = std::chrono::nanoseconds(now).count();
}

std::vector<PlanKey> DecisionBook::Held(const std::optional<std::string>& tenant,
                                        const std::optional<PlanKey>& after, size_t limit) const {
  static const auto* const kNone = new std::set<PlanKey>;
  std::vector<PlanKey> keys;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  const std::set<PlanKey>* held = &held_;
  if (tenant) {
    const auto found = held_of_tenants_.find(*tenant);
    held = found == held_of_tenants_.end() ? kNone : &found->second;
  }
  auto next = after ? held->upper_bound(*after) : held->begin();
  for (; next != held->end() && keys.size() < limit; ++next) keys.push_back(*next);
  return keys;
}

}  // namespace stowage

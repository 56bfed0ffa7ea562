#include "server/service/admin.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/hash/hash.h"
#include "server/entries/explain.h"
#include "server/entries/planning_error.h"
#include "server/entries/reference_costs.h"

namespace stowage {
namespace {

constexpr size_t kMostKeysPerPage = 1000;
constexpr size_t kMostCountedReports = 32768;

bool MaySee(const AdminCaller& caller, const PlanEntry& entry) {
  return caller.all_tenants || entry.tenant == caller.tenant;
}

absl::StatusOr<PlanEntry> Changed(const PlanEntry& entry, const RevisionId& id, PinAction action) {
  switch (action) {
    case PinAction::kPin:
      return Pin(entry, id);
    case PinAction::kUnpin:
      return Unpin(entry, id);
    case PinAction::kRollBack:
      return RollBack(entry, id);
    case PinAction::kPromote:
      return Promote(entry, id);
    case PinAction::kFreeze:
      return Freeze(entry);
    case PinAction::kUnfreeze:
      return Unfreeze(entry);
  }
  return absl::InvalidArgumentError("no such action");
}

const char* NameOf(PinAction action) {
  switch (action) {
    case PinAction::kPin:
      return "pin";
    case PinAction::kUnpin:
      return "unpin";
    case PinAction::kRollBack:
      return "roll_back";
    case PinAction::kPromote:
      return "promote";
    case PinAction::kFreeze:
      return "freeze";
    case PinAction::kUnfreeze:
      return "unfreeze";
  }
  return "";
}

absl::Status CheckEtag(const PlanEntry& entry, const std::string& etag) {
  if (etag.empty()) return absl::OkStatus();
  const std::string now = EtagOf(entry);
  return now == etag ? absl::OkStatus() : EtagMismatchError(now);
}

// The key with the first bytes of its digest alone.
PlanKey Coarsened(const PlanKey& key, size_t bytes) {
  std::array<uint8_t, Digest::kSize> digest{};
  std::copy_n(key.digest.bytes().begin(), bytes, digest.begin());
  return PlanKey{key.encoding_version, Digest(digest)};
}

// After which key the next page starts when all from `first` to `last` were looked at. It is the
// caller's to see, so it is one of theirs, or two bytes of a digest and zeros (more where thousands
// of keys begin alike): digests are spread evenly, so that says nothing of another tenant's keys. The
// few between there and `last` are looked at again.
PlanKey NextStart(const std::vector<ListedEntry>& theirs, const PlanKey& first,
                  const PlanKey& last) {
  for (size_t bytes = 2;; ++bytes) {
    const PlanKey start = Coarsened(last, bytes);
    if (!theirs.empty() && !(theirs.back().key < start)) return theirs.back().key;
    if (!(start < first)) return start;
  }
}

double Seconds(Nanos nanos) { return static_cast<double>(nanos.value()) / 1e9; }

}  // namespace

PlanAdmin::PlanAdmin(PlanStore* store, ServerMetrics* metrics, AuditLog* audit,
                     ReportedSteps* reported_steps)
    : store_(store),
      metrics_(metrics),
      audit_(audit),
      counted_(kMostCountedReports, reported_steps) {}

PlanAnswer PlanAdmin::Find(const AdminCaller& caller, const PlanKey& key) {
  PlanAnswer found = store_->Look(key, Access::kInspect);
  if (found.entry && !MaySee(caller, *found.entry)) return PlanAnswer();
  return found;
}

absl::Status PlanAdmin::AddTo(EntryPage* page, const AdminCaller& caller, const PlanKey& key,
                              std::set<std::string>* unreachable) {
  PlanAnswer found = Find(caller, key);
  if (found.entry) {
    page->entries.push_back({key, std::move(found.entry)});
  } else if (found.absence == Absence::kFailed) {
    if (unreachable == nullptr) return ListUnavailableError("a tier does not answer");
    unreachable->insert(kUnnamedStore);
  }
  return absl::OkStatus();
}

absl::Status PlanAdmin::Update(const AdminCaller& caller, const PlanKey& key, Durability durability,
                               const EntryChange& change) {
  return UpdateEntry(
      key, durability,
      [&](const PlanEntry& entry) -> absl::StatusOr<std::optional<PlanEntry>> {
        if (!MaySee(caller, entry)) return PlanNotCachedError();
        return change(entry);
      },
      store_);
}

void PlanAdmin::Audit(const AdminCaller& caller, AuditEvent event) {
  if (audit_ == nullptr) return;
  event.request_id = caller.request_id;
  event.identity = caller.identity;
  event.tenant = caller.tenant;
  audit_->Add(event);
}

absl::StatusOr<std::vector<PlanKey>> PlanAdmin::KeysOf(const AdminCaller& caller,
                                                       const std::optional<PlanKey>& after,
                                                       size_t limit,
                                                       std::set<std::string>* unreachable) {
  const auto tenant = caller.all_tenants ? std::nullopt : std::make_optional(caller.tenant);
  if (unreachable != nullptr) return store_->ListReachable(tenant, after, limit, unreachable);
  return tenant ? store_->ListOf(*tenant, after, limit) : store_->List(after, limit);
}

absl::StatusOr<EntryPage> PlanAdmin::List(const AdminCaller& caller,
                                          const std::optional<PlanKey>& after, size_t limit,
                                          std::set<std::string>* unreachable) {
  EntryPage page;
  std::optional<PlanKey> first, last;  // that were looked at
  for (size_t seen = 0; seen < kMostKeysPerPage;) {
    // One more than the page takes says whether there is another page. What that piece does not fill
    // comes in one more, however short the page is: a store may walk all of its keys for each.
    const size_t wanted =
        std::min(seen == 0 ? limit + 1 : kMostKeysPerPage, kMostKeysPerPage - seen);
    const std::optional<PlanKey>& from = last ? last : after;
    const absl::StatusOr<std::vector<PlanKey>> keys = KeysOf(caller, from, wanted, unreachable);
    if (!keys.ok()) return ListUnavailableError(std::string(keys.status().message()));
    for (const PlanKey& key : *keys) {
      if (page.entries.size() == limit) {
        page.next_after = page.entries.back().key;
        return page;
      }
      if (caller.stop != nullptr && !caller.stop->Check().ok()) return page;
      if (!first) first = key;
      last = key;
      ++page.looked_at;
      if (absl::Status added = AddTo(&page, caller, key, unreachable); !added.ok()) return added;
    }
    seen += keys->size();
    if (keys->size() < wanted) return page;
  }
  page.next_after = NextStart(page.entries, *first, *last);
  return page;
}

absl::StatusOr<EntryPage> PlanAdmin::ListKey(const AdminCaller& caller, const PlanKey& key,
                                             std::set<std::string>* unreachable) {
  EntryPage page;
  if (absl::Status added = AddTo(&page, caller, key, unreachable); !added.ok()) return added;
  return page;
}

absl::Status PlanAdmin::Pin(const AdminCaller& caller, const PlanKey& key, const RevisionId& id,
                            PinAction action, const std::string& etag) {
  std::lock_guard<std::mutex> lock(deciding_);
  const absl::Status status =
      Update(caller, key, Durability::kRequired,
             [&](const PlanEntry& entry) -> absl::StatusOr<std::optional<PlanEntry>> {
               if (absl::Status same = CheckEtag(entry, etag); !same.ok()) return same;
               absl::StatusOr<PlanEntry> changed = Changed(entry, id, action);
               if (!changed.ok()) return changed.status();
               return *std::move(changed);
             });
  AuditEvent event;
  event.action = NameOf(action);
  event.change = true;
  event.key = key;
  event.budget = id.budget;
  event.revision = id.revision;
  event.outcome = LoggedOutcome(status);
  Audit(caller, std::move(event));
  return status;
}

absl::StatusOr<bool> PlanAdmin::EraseSeen(const AdminCaller& caller, const PlanKey& key,
                                          const std::string& etag) {
  absl::StatusOr<bool> erased = StaleGenerationError();
  for (int attempt = 0; attempt < kUpdateAttempts && absl::IsAborted(erased.status()); ++attempt) {
    const PlanAnswer found = store_->Look(key, Access::kUpdate);
    if (!found.entry && found.absence == Absence::kFailed) return AbsentError(found.absence);
    if (!found.entry || !MaySee(caller, *found.entry)) return false;
    if (absl::Status same = CheckEtag(*found.entry, etag); !same.ok()) return same;
    erased = etag.empty() ? store_->Erase(key) : store_->EraseRead(key, *found.entry);
  }
  if (erased.ok() || absl::IsAborted(erased.status())) return erased;
  return StoreUnavailableError(std::string(erased.status().message()));
}

absl::StatusOr<bool> PlanAdmin::Delete(const AdminCaller& caller, const PlanKey& key,
                                       const std::string& etag) {
  std::lock_guard<std::mutex> lock(deciding_);
  absl::StatusOr<bool> deleted = EraseSeen(caller, key, etag);
  AuditEvent event;
  event.action = "delete";
  event.change = true;
  event.key = key;
  event.outcome = deleted.ok() && !*deleted ? "nothing there" : LoggedOutcome(deleted.status());
  Audit(caller, std::move(event));
  return deleted;
}

absl::StatusOr<ReportOutcome> PlanAdmin::Report(const AdminCaller& caller,
                                                const ExecutionReport& report) {
  ReportJudgement judgement;
  std::optional<PlanEntry> judged;
  // Ranks of many jobs report on one plan at once.
  const std::lock_guard<std::mutex> one(reporting_[absl::HashOf(report.key) % reporting_.size()]);
  const absl::Status status =
      Update(caller, report.key, Durability::kBestEffort,
             [&](const PlanEntry& entry) -> absl::StatusOr<std::optional<PlanEntry>> {
               judgement = AddReport(entry, report);
               judged = entry;
               return std::move(judgement.entry);
             });
  AuditEvent event;
  event.action = "report";
  event.job = report.job;
  event.key = report.key;
  event.budget = report.budget;
  event.revision = report.revision;
  event.plan_digest = report.plan_digest;
  event.outcome = status.ok() ? ToString(judgement.outcome) : LoggedOutcome(status);
  Audit(caller, event);
  if (status.ok() && judgement.retired) {
    event.action = "retire";
    event.change = true;
    event.budget = judgement.plan->budget;
    event.outcome = "over its budget in a quorum of jobs";
    Audit(caller, std::move(event));
  }
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  CountReport(caller, report, judgement, judged.value_or(PlanEntry()));
  if (judgement.outcome == ReportOutcome::kUnknownPlan) return PlanNotCachedError();
  return judgement.outcome;
}

void PlanAdmin::CountReport(const AdminCaller& caller, const ExecutionReport& report,
                            const ReportJudgement& judgement, const PlanEntry& entry) {
  metrics_->Reported(judgement.outcome);
  if (judgement.outcome != ReportOutcome::kAccepted &&
      judgement.outcome != ReportOutcome::kRepeated) {
    return;
  }
  // Costs that were only modelled say nothing of how good profiles are.
  if (!entry.samples.empty()) metrics_->Measured(judgement.time_ratio, judgement.peak_ratio);
  if (judgement.over_budget) metrics_->BudgetViolated();
  if (judgement.reserved_ratio > 0) metrics_->Reserved(judgement.reserved_ratio);
  const Simulation& predicted = judgement.plan->prediction;
  ExecutionCost cost;
  cost.steps = static_cast<double>(
      counted_.Count({report.key, judgement.plan->budget, judgement.plan->revision,
                      JobHash(report.job, report.identity)},
                     report.steps, judgement.new_steps));
  cost.recompute_seconds = cost.steps * Seconds(predicted.recompute_time + predicted.idle_time);
  cost.bytes_freed = std::max(0.0, static_cast<double>(entry.store_all.peak.value()) -
                                       static_cast<double>(report.peak.value()));
  cost.bytes_copied = judgement.copied_bytes;
  metrics_->Executed(caller.tenant, cost);
}

absl::StatusOr<std::string> PlanAdmin::Explain(const AdminCaller& caller, const PlanKey& key,
                                               const Budget& budget) {
  if (absl::Status valid = ValidateBudget(budget); !valid.ok()) return valid;
  const PlanAnswer found = Find(caller, key);
  if (!found.entry) return AbsentError(found.absence);
  return ExplainEntry(*found.entry, budget);
}

}  // namespace stowage

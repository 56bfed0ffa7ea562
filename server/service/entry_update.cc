#include "server/service/entry_update.h"

#include <memory>
#include <string>
#include <utility>

#include "server/entries/planning_error.h"

namespace stowage {

absl::Status AbsentError(Absence absence) {
  return absence == Absence::kFailed ? StoreUnavailableError("a tier does not answer")
                                     : PlanNotCachedError();
}

absl::Status UpdateEntry(const PlanKey& key, Durability durability, const EntryChange& change,
                         PlanStore* store) {
  constexpr int kAttempts = 3;
  absl::Status put = StaleGenerationError();
  for (int attempt = 0; attempt < kAttempts && absl::IsAborted(put); ++attempt) {
    const PlanAnswer found = store->Look(key, Access::kUpdate);
    if (!found.entry) return AbsentError(found.absence);
    const std::shared_ptr<const PlanEntry>& old = found.entry;
    absl::StatusOr<std::optional<PlanEntry>> changed = change(*old);
    if (!changed.ok()) return changed.status();
    if (!changed->has_value()) return absl::OkStatus();
    PlanEntry entry = **std::move(changed);
    entry.generation = old->generation + 1;
    put = store->Replace(key, old->generation, std::make_shared<const PlanEntry>(std::move(entry)),
                         durability);
  }
  if (put.ok() || absl::IsAborted(put) || absl::IsResourceExhausted(put)) return put;
  return StoreUnavailableError(std::string(put.message()));
}

}  // namespace stowage

#include "server/service/entry_update.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/entries/planning_error.h"

namespace stowage {

absl::Status AbsentError(Absence absence) {
  return absence == Absence::kFailed ? StoreUnavailableError("a tier does not answer")
                                     : PlanNotCachedError();
}

absl::Status UpdateEntry(const PlanKey& key, Durability durability, const EntryChange& change,
                         PlanStore* store) {
  // Servers that change one entry at once: each time one of them gets on.
  const int attempts =
      durability == Durability::kBestEffort ? 4 * kUpdateAttempts : kUpdateAttempts;
  absl::Status put = StaleGenerationError();
  for (int attempt = 0; attempt < attempts && absl::IsAborted(put); ++attempt) {
    if (attempt >= kUpdateAttempts) std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
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

#include "server/planning/entry_update.h"

#include <memory>
#include <utility>

#include "server/planning/planning_error.h"

namespace stowage {

absl::Status UpdateEntry(const PlanKey& key, const EntryChange& change, PlanStore* store) {
  constexpr int kAttempts = 3;
  absl::Status put = StaleGenerationError();
  for (int attempt = 0; attempt < kAttempts && absl::IsAborted(put); ++attempt) {
    const std::shared_ptr<const PlanEntry> old = store->Get(key, Access::kUpdate);
    if (!old) return PlanNotCachedError();
    absl::StatusOr<std::optional<PlanEntry>> changed = change(*old);
    if (!changed.ok()) return changed.status();
    if (!changed->has_value()) return absl::OkStatus();
    PlanEntry entry = **std::move(changed);
    entry.generation = old->generation + 1;
    put = store->Put(key, std::make_shared<const PlanEntry>(std::move(entry)));
  }
  return put;
}

}  // namespace stowage

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

absl::Status UpdateOrBegin(const PlanKey& key, int64_t begun, Durability durability,
                           const AnswerChange& change, PlanStore* store) {
  // Servers that change one entry at once: each time one of them gets on.
  const int attempts =
      durability == Durability::kBestEffort ? 4 * kUpdateAttempts : kUpdateAttempts;
  absl::Status put = StaleGenerationError();
  for (int attempt = 0; attempt < attempts && absl::IsAborted(put); ++attempt) {
    if (attempt >= kUpdateAttempts) std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
    const PlanAnswer found = store->Look(key, Access::kUpdate);
    absl::StatusOr<std::optional<PlanEntry>> changed = change(found);
    if (!changed.ok()) return changed.status();
    if (!changed->has_value()) return absl::OkStatus();
    PlanEntry entry = **std::move(changed);
    const int64_t read = found.entry ? found.entry->generation : 0;
    BecomeGeneration(found.entry ? read + 1 : begun, &entry);
    put =
        store->Replace(key, read, std::make_shared<const PlanEntry>(std::move(entry)), durability);
  }
  if (put.ok() || absl::IsAborted(put) || absl::IsResourceExhausted(put)) return put;
  return StoreUnavailableError(std::string(put.message()));
}

absl::Status UpdateEntry(const PlanKey& key, Durability durability, const EntryChange& change,
                         PlanStore* store) {
  constexpr int64_t kNeverBegun = 0;
  return UpdateOrBegin(
      key, kNeverBegun, durability,
      [&change](const PlanAnswer& found) -> absl::StatusOr<std::optional<PlanEntry>> {
        if (!found.entry) return AbsentError(found.absence);
        return change(*found.entry);
      },
      store);
}

}  // namespace stowage

// Changes one entry of a store that others change, too.
#ifndef STOWAGE_SERVER_SERVICE_ENTRY_UPDATE_H_
#define STOWAGE_SERVER_SERVICE_ENTRY_UPDATE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "server/store/plan_store.h"

namespace stowage {

// What an entry becomes; nothing when there is nothing to change. May be called several times.
using EntryChange = std::function<absl::StatusOr<std::optional<PlanEntry>>(const PlanEntry& entry)>;
// The same, also where there is none.
using AnswerChange =
    std::function<absl::StatusOr<std::optional<PlanEntry>>(const PlanAnswer& found)>;

// What it means for who needs an entry that there is none: NOT_FOUND (reason PLAN_NOT_CACHED), or
// UNAVAILABLE (reason STORE_UNAVAILABLE) when the store cannot say.
absl::Status AbsentError(Absence absence);

// How often what somebody else was faster with is read again, and changed.
inline constexpr int kUpdateAttempts = 3;

// Reads, changes and replaces, again if somebody else was faster: ABORTED after kUpdateAttempts times, or where nobody is told that the
// change is made (kBestEffort) after many more, some milliseconds apart.
// Else the change's error, RESOURCE_EXHAUSTED for an entry that is too large, or UNAVAILABLE (reason
// STORE_UNAVAILABLE) when the store failed. What is written is a change of now (PlanEntry::updated_s).
// An entry where there was none has the generation `begun`. Thread-safe.
absl::Status UpdateOrBegin(const PlanKey& key, int64_t begun, Durability durability,
                           const AnswerChange& change, PlanStore* store);

// The same of an entry that is there; AbsentError without one.
absl::Status UpdateEntry(const PlanKey& key, Durability durability, const EntryChange& change,
                         PlanStore* store);

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_ENTRY_UPDATE_H_

// Changes one entry of a store that others change, too.
#ifndef STOWAGE_SERVER_PLANNING_ENTRY_UPDATE_H_
#define STOWAGE_SERVER_PLANNING_ENTRY_UPDATE_H_

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "server/cache/plan_store.h"

namespace stowage {

// The changed entry; nothing when there is nothing to change. May be called several times.
using EntryChange = std::function<absl::StatusOr<std::optional<PlanEntry>>(const PlanEntry& entry)>;

// Reads, changes and replaces, again if somebody else was faster: ABORTED after three times. NOT_FOUND
// (reason PLAN_NOT_CACHED) without an entry; else the change's error, or the store's. Thread-safe.
absl::Status UpdateEntry(const PlanKey& key, const EntryChange& change, PlanStore* store);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_ENTRY_UPDATE_H_

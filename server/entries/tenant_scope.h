// Whose entries a caller may see.
#ifndef STOWAGE_SERVER_ENTRIES_TENANT_SCOPE_H_
#define STOWAGE_SERVER_ENTRIES_TENANT_SCOPE_H_

#include <optional>
#include <string>

#include "server/entries/plan_entry.h"

namespace stowage {

// Those of this tenant alone; nothing: those of every tenant. What a scope does not see answers
// exactly as what is not there.
using TenantScope = std::optional<std::string>;

inline bool Sees(const TenantScope& scope, const PlanEntry& entry) {
  return !scope || *scope == entry.tenant;
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_TENANT_SCOPE_H_

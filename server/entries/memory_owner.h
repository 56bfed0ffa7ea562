// Whose share of memory an entry, or what was found for a problem, takes.
//
// The rule of server/runtime/account.h, for what is kept: that of its tenant. Where it has none, that of the identity whose
// profile is the oldest that the entry keeps: at first who asked for it first. Others to whom the same plans are given are
// charged nothing. What no identity has asked for (the catalogue's, or where callers have none) is one owner's.
//
// A tenant is part of a key, an identity is not: all who ask for a key without a tenant share its entry. So what others add to it
// (plans for more budgets) counts for who asked first; and once that one has sent a newer profile, as after drift, the entry may be
// another identity's. That an owner within its share loses nothing to others (server/store/fair_order.h) is promised to tenants, and
// to identities for keys that nobody else asks for.
#ifndef STOWAGE_SERVER_ENTRIES_MEMORY_OWNER_H_
#define STOWAGE_SERVER_ENTRIES_MEMORY_OWNER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_problem.h"

namespace stowage {

// A tenant and 0, or "" and the hash of an identity, 0 for none: no identity is taken for a tenant of the same name.
using MemoryOwner = std::pair<std::string, uint64_t>;

inline MemoryOwner MemoryOwnerOf(const std::string& tenant, uint64_t identity) {
  return {tenant, tenant.empty() ? identity : 0};
}

inline MemoryOwner MemoryOwnerOf(const PlanEntry& entry) {
  return MemoryOwnerOf(entry.tenant, entry.samples.empty() ? 0 : entry.samples.front().identity);
}

inline MemoryOwner MemoryOwnerOf(const PlanningProblem& problem) {
  return MemoryOwnerOf(problem.options.tenant, problem.identity);
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_MEMORY_OWNER_H_

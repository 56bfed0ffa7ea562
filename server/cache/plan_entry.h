// What a store keeps under one key: the costs of reference, and the plans that were solved.
//
// Entries are immutable once they are in a store: a change is a new entry that replaces the old
// one, so readers share them without locks.
#ifndef STOWAGE_SERVER_CACHE_PLAN_ENTRY_H_
#define STOWAGE_SERVER_CACHE_PLAN_ENTRY_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "solvers/model/canonical.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/plan/plan.h"

namespace stowage {

struct PlanEntry {
  // Equal digests do not prove equal problems; equal canonical bytes do.
  std::string canonical;
  // The problem that was solved: every plan below was refereed under its costs and with its link.
  std::shared_ptr<const LinkedProblem> reference;
  // What store-all takes under them.
  Simulation store_all;
  // What "least" resolves to under the reference costs, once it was asked for.
  std::optional<Bytes> least_budget;
  // In the order they were solved, at most one per budget. Without stage_vertices: each caller
  // numbers its own.
  std::vector<std::shared_ptr<const Plan>> plans;
};

// Bytes of memory that the entry holds, near enough to bound a cache by.
Bytes ChargeOf(const PlanEntry& entry);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CACHE_PLAN_ENTRY_H_

// Entries that use every field, and their comparison field by field.
#ifndef STOWAGE_TESTS_SERVER_ENTRIES_FULL_ENTRIES_H_
#define STOWAGE_TESTS_SERVER_ENTRIES_FULL_ENTRIES_H_

#include <string>

#include "server/entries/plan_entry.h"

namespace stowage::testing {

// Of a chain with a link, of which a stage lists its saved tensors, with plans of every status and
// state, samples, reports and a frontier.
PlanEntry FullChainEntry();

// Of a graph with aliases and the sender's own numbers.
PlanEntry FullGraphEntry();

// Of a compute DAG.
PlanEntry FullDagEntry();

// Records a failure for every field in which they differ.
void ExpectEqualEntries(const PlanEntry& a, const PlanEntry& b);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_ENTRIES_FULL_ENTRIES_H_

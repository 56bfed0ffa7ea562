// Keys and entries for the tests of stores.
#ifndef STOWAGE_TESTS_SERVER_STORE_ENTRIES_H_
#define STOWAGE_TESTS_SERVER_STORE_ENTRIES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"
#include "solvers/schedule/instance.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {

// Of a store that drops nothing.
inline constexpr Bytes kAmple{64 << 20};

// Of the entry with these canonical bytes.
inline PlanKey KeyOf(const std::string& canonical) {
  return PlanKey{kEncodingVersion, Sha256(canonical)};
}

// Of a list that a store gives.
inline std::vector<PlanKey> Keys(const absl::StatusOr<std::vector<PlanKey>>& listed) {
  return listed.value();
}

// An entry that every store serves, of about `bytes` more than the least one.
inline std::shared_ptr<const PlanEntry> EntryOf(const std::string& canonical, size_t bytes = 0,
                                                int64_t generation = 1,
                                                const std::string& tenant = "") {
  auto entry = std::make_shared<PlanEntry>();
  entry->canonical = canonical;
  entry->generation = generation;
  entry->tenant = tenant;
  entry->reference = std::make_shared<const Instance>(ChainProfile(ProfileShape{}).problem);
  entry->store_all = *entry->reference->store_all();
  entry->least_budget = Bytes(42);
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = entry->store_all.peak + Bytes(1000);
  plan.revision = 7;
  plan.schedule = entry->reference->store_all_schedule();
  plan.prediction = entry->store_all;
  plan.bounds.store_all_makespan = entry->store_all.makespan;
  plan.bounds.store_all_peak = entry->store_all.peak;
  plan.explanation = std::string(bytes, 'x');
  entry->plans.push_back({std::make_shared<const Plan>(plan)});
  return entry;
}

// The same entry, last changed at `updated_s`.
inline std::shared_ptr<const PlanEntry> EntryChangedAt(int64_t updated_s,
                                                       const std::string& canonical,
                                                       int64_t generation = 1) {
  auto entry = std::make_shared<PlanEntry>(*EntryOf(canonical, 0, generation));
  entry->updated_s = updated_s;
  return entry;
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_ENTRIES_H_

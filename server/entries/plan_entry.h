// What a store keeps under one key: the costs of reference, and the plans that were solved.
//
// Entries are immutable once they are in a store: a change is a new entry that replaces the old
// one, so readers share them without locks.
#ifndef STOWAGE_SERVER_ENTRIES_PLAN_ENTRY_H_
#define STOWAGE_SERVER_ENTRIES_PLAN_ENTRY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/canonical.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// What becomes of a revision.
enum class RevisionState {
  kServing,  // may be handed out
  kShadow,   // kept and judged beside the one that serves, handed out to nobody yet
  kRetired,  // rolled back: kept for the record, never handed out again
};

// A plan with its standing. Plan::revision tells the revisions of one budget apart; without
// stage_vertices: each caller numbers its own.
struct StoredPlan {
  std::shared_ptr<const Plan> plan;
  RevisionState state = RevisionState::kServing;
  bool pinned = false;  // serves its budget whatever later revisions say, as long as it holds
};

// Of one caller's profile, what is noisy. One per job.
struct CostSample {
  uint64_t job = 0;  // JobHash of who measured it
  std::shared_ptr<const Instance> costs;
  uint64_t identity = 0;  // IdentityHash of its caller
};

// Of one job's report on one revision.
struct ReportSample {
  uint64_t job = 0;
  Bytes budget;
  int64_t revision = 0;
  double time_ratio = 0;  // measured over predicted
  double peak_ratio = 0;
  int64_t steps = 0;      // that it is about
  uint64_t identity = 0;  // IdentityHash of its caller
};

struct PlanEntry {
  // Equal digests do not prove equal problems; equal canonical bytes do.
  std::string canonical;
  // The problem that was solved: every plan below was validated under its costs and with its link.
  std::shared_ptr<const Instance> reference;
  // What store-all takes under them.
  Simulation store_all;
  // What "least" resolves to under the reference costs, once it was asked for.
  std::optional<Bytes> least_budget;
  // In the order they were solved; of one budget, at most one per revision. Which of several serves:
  // server/entries/revisions.h.
  std::vector<StoredPlan> plans;
  // What the reference is made of, the newest last; at most one per job. None: the reference is modelled, no job
  // has measured it yet.
  std::vector<CostSample> samples;
  // What was measured under the plans, the newest last; at most one per job and revision.
  std::vector<ReportSample> reports;
  // Reports say that costs have moved, and no profile has come since.
  bool profile_wanted = false;
  // All budgets at once under the reference costs, once it was asked for; may be null.
  std::shared_ptr<const Frontier> frontier;
  // Whose it is: entries of one tenant are listed, pinned and deleted by that tenant alone.
  std::string tenant;
  // Of the network, for people.
  std::string name;
  // Nothing of it changes: no re-solve, no new reference, no new plan.
  bool frozen = false;
  // Of a history: from FirstGeneration it grows by one with every change. A store refuses a change of
  // what somebody else has changed since it was read.
  int64_t generation = 0;
  // When that generation was made, in seconds since 1970; nothing where a version before this one has made it. Stores
  // keep it beside the entry's bytes (entry_codec.h), and a copy has the time of what it is a copy of.
  std::optional<int64_t> updated_s;
  // Of the decisions that are in it (server/decisions/decision.h), 0 for none. No store keeps it.
  uint64_t edition = 0;
};

// The low part of a generation counts changes; the rest tells histories apart: what is made anew
// after it was erased or lost begins another one. Exact as a double, so that Redis can compare.
inline constexpr int64_t kChangesPerHistory = int64_t{1} << 20;

// Of a history that no other entry has, near enough, and that is greater than the one of `after`. The
// number of a history rises with the time when it began, to about 17 minutes, so that a deletion can
// name all that began before it. (Versions before this one drew numbers below all of these.)
int64_t FirstGeneration(int64_t after = 0);

// The last generation of every history that has begun by now, on servers whose clocks differ by less
// than 17 minutes; of the one of `known`; and of those that FirstGeneration(known) may have begun.
int64_t LastGenerationByNow(int64_t known);

// When the history of a generation began, in seconds since 1970, to about 17 minutes; nothing where a version before this
// one had begun it.
std::optional<int64_t> BegunAt(int64_t generation);

// Makes it a change of now: of that generation, by the clock of this machine.
void BecomeGeneration(int64_t generation, PlanEntry* entry);

// Whether `a` comes after `b` in one history. Of two histories neither is newer.
inline bool IsNewer(int64_t a, int64_t b) {
  return a > b && a / kChangesPerHistory == b / kChangesPerHistory;
}

// ABORTED: somebody else has changed the entry since it was read.
absl::Status StaleGenerationError();

// Bytes of memory that costs, or an entry, hold, near enough to bound a cache by.
Bytes ChargeOf(const Instance& costs);
Bytes ChargeOf(const PlanEntry& entry);

struct ChargedEntry {
  std::shared_ptr<const PlanEntry> entry;
  Bytes charge;
};

// The entry with as many of its newest plans as fit a store of `capacity`, at least one, and all that
// are pinned. RESOURCE_EXHAUSTED when these are too many.
absl::StatusOr<ChargedEntry> FitTo(Bytes capacity, std::shared_ptr<const PlanEntry> entry);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLAN_ENTRY_H_

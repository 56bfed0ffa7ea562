// What administrators have decided about a key's plans: pins, roll-backs, promotions, freezes,
// deletions, and that they are no more. Kept apart from the plans, which any tier may lose.
//
// Keyed by the PlanKey alone: the tenant is in the bytes that it hashes, so a key is one tenant's. Of a
// key there are
// - one deletion: every history that had begun by then is over, wherever a copy of it comes back
//   from, and whatever else was decided about it. A plan that is asked for later is solved anew, and
//   begins a history after the deletion (FirstGeneration). A solve that began before the deletion
//   answers who waits for it, and is not kept;
// - one freeze, with the whole entry as it was when it was frozen;
// - one decision for each budget, with the budget's plans as they were left: what is pinned, what was
//   rolled back, what waits in shadow. To unpin is a decision, too, without a pin in it.
// Each has a stamp. Of two for the same, the later stamp counts, wherever it comes from; so servers
// that share a tier may exchange decisions in any order, any number of times, and agree. A stamp is
// the time in microseconds, times 1024 and a drawn number less than that, and always later than those
// of the decisions about the key that the server knows: who undoes a decision has seen it, so the
// undoing counts, whatever the clocks say. Of decisions that did not know of each other (the shared
// tier was emptied in between) the later one by the clock counts. Deletions and the other decisions
// are not compared by stamps: a decision about a history that a deletion has ended is over, one about
// a later history is not.
//
// Decisions are kept for ever: any server may have been away, with its file of plans, for any time. A
// deletion takes some 150 bytes, the others what their plans take.
#ifndef STOWAGE_SERVER_DECISIONS_DECISION_H_
#define STOWAGE_SERVER_DECISIONS_DECISION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"

namespace stowage {

enum class DecisionKind { kDeletion, kFreeze, kBudget };

struct Decision {
  DecisionKind kind = DecisionKind::kBudget;
  Bytes budget;       // of kBudget; else 0
  int64_t stamp = 0;  // in [1, kLatestStamp]
  // Of kDeletion: the last one that is over, 0 for none. Else of the entry that it was made on.
  int64_t generation = 0;
  // What it keeps, null where it keeps nothing: of kFreeze the whole entry (null: it is not frozen);
  // of kBudget an entry with the plans of the budget alone, one job's sample and no reports.
  std::shared_ptr<const PlanEntry> kept;
};

inline constexpr int64_t kLatestStamp = int64_t{1} << 62;
inline constexpr int64_t kStampsPerMicrosecond = 1024;
inline constexpr int64_t kStampsPerSecond = 1'000'000 * kStampsPerMicrosecond;

// Which of a key's decisions it is.
using DecisionId = std::pair<DecisionKind, int64_t>;
inline DecisionId IdOf(const Decision& decision) {
  return {decision.kind, decision.budget.value()};
}

// All decisions about one key. What is over because of the deletion is not among them.
struct KeyDecisions {
  std::map<DecisionId, Decision> all;
  uint64_t edition = 0;  // differs from that of every other KeyDecisions there was for the key

  int64_t deleted_up_to() const;
  int64_t latest_stamp() const;  // 0 without any
  // Whether it counts: it is later than the one for the same, and about nothing that is over.
  bool IsNews(const Decision& decision) const;
  void Add(const Decision& decision);
};

// What to call the change from one entry to the other: freeze, states and pins of the revisions;
// empty where these are equal. Without stamps; of the generation of `after`. O(plans).
std::vector<Decision> DecisionsBetween(const PlanEntry& before, const PlanEntry& after);

// A deletion now of what is known of the key, among it an entry of generation `there`.
Decision DeletionOf(int64_t there, int64_t deleted_before);

// Sealed (sealed_bytes.h), and bound to its key. A change of the encoding, of EncodeEntry among it, is a new
// kDecisionVersion, and what was written before must still be read.
inline constexpr uint32_t kDecisionVersion = 0x44000001;  // no version of an entry
std::string EncodeDecision(const PlanKey& key, const Decision& decision);

// DATA_LOSS: damaged, of another key, or a plan in it is refused by the evaluator. UNIMPLEMENTED: of
// another version. Takes any bytes. O(bytes).
absl::StatusOr<Decision> DecodeDecision(const PlanKey& key, std::string bytes);

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_DECISION_H_

// Entries as bytes, for the tiers that outlive the process.
//
// The encoding is our own: sealed (sealed_bytes.h), and inside it, as field_code.h writes them,
//   canonical bytes; reference (problem_code.h); the least budget, if known; plans (plan_code.h);
//   samples: job, identity, costs;
//   reports: job, budget, revision, time ratio, peak ratio, steps, identity;
//   the encoded frontier (solvers/schedule/frontier.h), empty without one;
//   tenant; name; frozen; whether a profile is wanted; generation
// An entry has one encoding. Any change to this list is a new kEntryVersion.
//
// Nothing is believed that can be computed: what store-all takes and every prediction come from a
// replay under the reference. Plan::stage_vertices is not kept (plan_entry.h). Thread-safe.
#ifndef STOWAGE_SERVER_ENTRIES_ENTRY_CODEC_H_
#define STOWAGE_SERVER_ENTRIES_ENTRY_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"
#include "server/observe/server_metrics.h"
#include "solvers/model/canonical.h"

namespace stowage {

inline constexpr uint32_t kEntryVersion = 2;

// Of an entry's bytes in a store: two entries with one stamp are one entry.
struct EntryStamp {
  int64_t generation = 0;
  std::string seal;  // the end of the bytes: a digest of all that is before it

  friend bool operator==(const EntryStamp& a, const EntryStamp& b) {
    return a.generation == b.generation && a.seal == b.seal;
  }
};

// Bytes of a seal.
inline constexpr size_t kSealSize = Digest::kSize;

// The end of sealed bytes.
inline std::string SealOf(const std::string& sealed) {
  return sealed.size() < kSealSize ? sealed : sealed.substr(sealed.size() - kSealSize);
}

// `entry` has a reference, and costs with every sample. O(entry).
std::string EncodeEntry(const PlanEntry& entry);

// What the bytes of `entry` are told by. O(entry).
EntryStamp StampOf(const PlanEntry& entry);

// When the entry last changed, for a store to keep beside the bytes, whose format does not know it:
// "GENERATION:SECONDS", since 1970; "" where that is not known. A program of a version before notes
// changes an entry and leaves the note of what was there: the generation says that the note is not
// the entry's.
std::string UpdateNoteOf(const PlanEntry& entry);

// The entry of `key`, last changed as `update_note` says, which may be any text. DATA_LOSS: cut,
// changed, of another key (its canonical bytes do not hash to
// this one), or the evaluator refuses a plan of it. UNIMPLEMENTED: of another format version. Takes
// any bytes, and memory in proportion to what is valid among them. O(entry).
absl::StatusOr<std::shared_ptr<const PlanEntry>> DecodeEntry(const PlanKey& key, std::string bytes,
                                                             const std::string& update_note = "");

// What an error of DecodeEntry counts as.
CacheFailure FailureOf(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_ENTRY_CODEC_H_

// Canonical bytes: one encoding of what must be equal for two jobs to share plans, and the key hashed from it.
// keys.md ("Canonical bytes") has the encoding, field by field.
//
// Times, overheads, bandwidths beyond their class and names are not in it: they are noisy or for people. A graph's
// canonical order is its program order, which is structure: the sender's numbering of the vertices leaves no trace.
// Any change is a new version.
#ifndef STOWAGE_SOLVERS_MODEL_CANONICAL_H_
#define STOWAGE_SOLVERS_MODEL_CANONICAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "solvers/model/digest.h"
#include "solvers/model/problem.h"

namespace stowage {

inline constexpr int32_t kEncodingVersion = 1;

enum class Objective { kLeastTime = 1 };

// Slots of a solver's table that options may ask for, at most.
inline constexpr int64_t kSlotLimit = 1000000;

// Options that change which plan comes out. Defaults mean "the planner chooses".
struct KeyOptions {
  std::string tenant;
  Objective objective = Objective::kLeastTime;
  std::string solver;
  int64_t slots = 0;
  // Plans copy nothing to host memory, whatever link the device has.
  bool recompute_only = false;
};

struct PlanKey {
  int32_t encoding_version = kEncodingVersion;
  Digest digest;

  friend bool operator==(const PlanKey& a, const PlanKey& b) {
    return a.encoding_version == b.encoding_version && a.digest == b.digest;
  }
  friend bool operator!=(const PlanKey& a, const PlanKey& b) { return !(a == b); }
  friend bool operator<(const PlanKey& a, const PlanKey& b) {
    return std::tie(a.encoding_version, a.digest) < std::tie(b.encoding_version, b.digest);
  }
  template <class H>
  friend H AbslHashValue(H state, const PlanKey& key) {
    return H::combine(std::move(state), key.encoding_version, key.digest);
  }
};

// The bytes that the key hashes. O(size of the problem).
std::string CanonicalBytes(const Profile& profile, const KeyOptions& options);

// The options that canonical bytes begin with; nothing if they are not those of kEncodingVersion.
// recompute_only is not among them: it shows in the device alone.
std::optional<KeyOptions> OptionsIn(const std::string& canonical);

// SHA-256 of CanonicalBytes.
PlanKey MakePlanKey(const Profile& profile, const KeyOptions& options);

// Appends integers and strings in the encoding above. Shared by everything that needs bytes to
// hash.
class CanonicalWriter {
 public:
  void Integer(int64_t value);
  void String(const std::string& value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_CANONICAL_H_

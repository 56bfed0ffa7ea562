// Canonical bytes: one encoding of what must be equal for two jobs to share plans, and the key
// hashed from it.
//
// Encoding version 1. Integers are 8 bytes little-endian, strings and lists a count followed by
// their elements, booleans of one element packed into one integer. In this order:
//   "STWG", encoding version
//   options that matter: tenant, objective, solver, slots
//   environment: device model, framework, math settings, granularity, bandwidth class, duplex,
//     host memory (0 where only recomputing is allowed: the device might as well have none).
//     The bandwidth class is the one that the device states; if that is 0 and plans may copy (host
//     memory, both directions measured, not only recomputing) BandwidthClassOf the link
//     (transfer_model.h), else 0: plans for a link are no plans for one half as fast
//   of a chain: 1, input, input gradient, number of stages, each stage, the loss;
//     a stage: op kind, output, saved, gradient, transient, flags; if it lists its saved tensors, the
//     flags say so, and the number of tensors and each one's size follow
//   of a graph: 2, number of vertices, each vertex in program order;
//     a vertex: op kind, output, gradient, extra, transient, flags, alias, number of inputs,
//     each input as (position, backward needs)
// Times, overheads, bandwidths beyond their class and names are not in it: they are noisy or for
// people. A graph's canonical order is its program order, which is structure: the sender's numbering
// of the vertices leaves no trace. Any change to this list is a new version.
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

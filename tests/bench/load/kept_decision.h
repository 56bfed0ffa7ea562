// What an administrator was told is decided, and whether a server still says so.
#ifndef STOWAGE_TESTS_BENCH_LOAD_KEPT_DECISION_H_
#define STOWAGE_TESTS_BENCH_LOAD_KEPT_DECISION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "stowage/v1/plan_service.pb.h"

namespace stowage {

enum class DecidedAs { kPinned, kUnpinned, kDeleted };

// A server, and which of the disks that it has had.
struct ServerDisk {
  size_t server = 0;
  int disk = 0;
};

struct KeptDecision {
  v1::PlanKey key;
  int64_t budget_bytes = 0;
  int64_t revision = 0;
  DecidedAs as = DecidedAs::kPinned;
  ServerDisk on;  // had by the server that has acknowledged it, no later than it did
};

// "pin of revision 1 for 123 bytes of key 0a1b2c3d4e5f6071".
std::string TextOf(const KeptDecision& decision);

// Whether the server whose disk this is has had the decision there since it was acknowledged: then it says so at any time.
// Another one, or one that has lost that disk, has yet to hear of it from what servers share.
bool HasOnDisk(const KeptDecision& decision, const ServerDisk& disk);

// What a server lists under the key of a pin or an unpinning; nothing listed is NOT_FOUND, too. Empty, or
// what is wrong, with key and revision: a pin holds where its revision is there, and pinned, for a server
// puts back what its caches have lost; an unpinning where nothing of the key is pinned, or nothing is left.
std::string WhatIsLost(const KeptDecision& decision, const v1::ListPlansResponse& listed);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_KEPT_DECISION_H_

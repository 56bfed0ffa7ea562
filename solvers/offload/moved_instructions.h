// A schedule with some instructions elsewhere. Internal to late_prefetches.h and early_waits.h.
#ifndef STOWAGE_SOLVERS_OFFLOAD_MOVED_INSTRUCTIONS_H_
#define STOWAGE_SOLVERS_OFFLOAD_MOVED_INSTRUCTIONS_H_

#include <cstddef>
#include <vector>

#include "solvers/plan/schedule.h"

namespace stowage {

// `before`: by instruction, the one before which it is to come; itself where it stays. Those that go to
// one place keep their order. O(n log n).
Schedule WithMoved(const Schedule& schedule, const std::vector<size_t>& before);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_MOVED_INSTRUCTIONS_H_

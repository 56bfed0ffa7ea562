// How much the relaxed recurrence may take. Internal to solvers/offload.
#ifndef STOWAGE_SOLVERS_OFFLOAD_RELAXED_LIMITS_H_
#define STOWAGE_SOLVERS_OFFLOAD_RELAXED_LIMITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "solvers/offload/offload_problem.h"
#include "solvers/offload/relaxed_optimum.h"
#include "solvers/offload/relaxed_recurrence.h"
#include "solvers/solver.h"

namespace stowage {

// Some thousand states for an op, fewer where the options' tables would get too large.
inline RelaxedLimits RelaxedLimitsOf(const OffloadProblem& problem, const SolveOptions& options,
                                     size_t state_bytes, bool beam) {
  constexpr size_t kStates = 4096;
  constexpr int64_t kNodes = 100000;
  const auto table = static_cast<size_t>(std::max<int64_t>(options.table_limit.value(), 0));
  RelaxedLimits limits;
  limits.states = std::clamp<size_t>(
      table / (state_bytes * static_cast<size_t>(problem.size() + 1)), 1, kStates);
  limits.beam = beam;
  limits.sets = kMaxRelaxedSets;
  limits.nodes = kNodes;
  return limits;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_RELAXED_LIMITS_H_

// How much the relaxed recurrence may take. Internal to solvers/offload.
#ifndef STOWAGE_SOLVERS_OFFLOAD_RELAXED_LIMITS_H_
#define STOWAGE_SOLVERS_OFFLOAD_RELAXED_LIMITS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "solvers/offload/offload_problem.h"
#include "solvers/offload/relaxed_optimum.h"
#include "solvers/offload/relaxed_recurrence.h"
#include "solvers/solver.h"

namespace stowage {

// Some thousand states for an op, fewer where the options' tables would get too large. A beam is
// narrower the more ops there are, so that no problem takes more than some 2^28 comparisons; what
// is to be complete may take four times as many before it is given up.
inline RelaxedLimits RelaxedLimitsOf(const OffloadProblem& problem, const SolveOptions& options,
                                     size_t state_bytes, bool beam) {
  constexpr size_t kStates = 4096;
  // States not yet compared, their copies when vectors grow, and scratch of sorting.
  constexpr size_t kRowsBeside = 12;
  constexpr int64_t kNodes = 100000;
  constexpr double kBeamPairs = 1 << 27;  // states of an op, squared, of all ops
  const auto table = static_cast<size_t>(std::max<int64_t>(options.table_limit.value(), 0));
  RelaxedLimits limits;
  limits.states = std::clamp<size_t>(
      table / (state_bytes * (static_cast<size_t>(problem.size() + 1) + kRowsBeside)), 1, kStates);
  if (beam) {
    const auto width = static_cast<size_t>(std::sqrt(kBeamPairs / problem.size()));
    limits.states = std::clamp<size_t>(width, 1, limits.states);
  }
  limits.beam = beam;
  limits.comparisons = beam ? std::numeric_limits<int64_t>::max() : int64_t{1} << 30;
  limits.sets = kMaxRelaxedSets;
  limits.nodes = kNodes;
  return limits;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_RELAXED_LIMITS_H_

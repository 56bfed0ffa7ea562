// What computes and keeps the values of a discretised table: one of two engines over one of three
// types of value. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_ENGINE_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_ENGINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/min_plus_dispatch.h"
#include "solvers/chain/persistent_slots.h"
#include "solvers/chain/stage_repeats.h"
#include "solvers/solver.h"

namespace stowage {

class PersistentEngine {
 public:
  virtual ~PersistentEngine() = default;
  // C(s, t, m) in units of time above the ideal, or kNever where nothing fits or the value is
  // beyond the type. 0 <= m; stages count from 0. The a^{s-1} beside m must fit the slots too.
  virtual int64_t Value(int s, int t, int64_t m) const = 0;
  virtual int64_t bytes() const = 0;
};

// What both engines start from.
struct EngineInput {
  const PersistentSlots& slots;
  const LiveSlots& live;
  const std::vector<StageRepeat>& repeats;
  std::vector<int64_t> forward;  // forward time of the stages before s, in units of time
  int64_t bytes_beside;          // of the table: what is held beside the engine
};

// The largest sum of forward times that a type of value takes.
template <class T>
bool FitsValues(int64_t forward_total) {
  return forward_total < static_cast<int64_t>(kNeverAs<T>);
}

// RESOURCE_EXHAUSTED if `bytes` in all are over the limit of a table.
absl::Status CheckTableSize(int64_t stages, int64_t slots, int64_t bytes,
                            const SolveOptions& options);
absl::Status NoMemoryForTable(int64_t bytes);

// All intervals, in tiles (min_plus_kernel.h). For chains without much repetition.
template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles(const EngineInput& input,
                                                               const MinPlusKernels& kernels,
                                                               const SolveOptions& options);

// One row per distinct interval. For chains whose stages repeat.
template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows(const EngineInput& input,
                                                              const MinPlusKernels& kernels,
                                                              const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_ENGINE_H_

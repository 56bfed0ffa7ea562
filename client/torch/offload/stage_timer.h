// The clock that profiles go by: how long a device's compute took from one mark to the next.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_STAGE_TIMER_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_STAGE_TIMER_H_

#include <memory>
#include <vector>

#include "solvers/model/units.h"

namespace stowage {

// Not thread-safe.
class StageTimer {
 public:
  virtual ~StageTimer() = default;

  // Marks the point that the calling thread has given compute work up to; waits for nothing. A start
  // that has no stop is forgotten at the next. Throws what LibTorch throws.
  virtual void Start() = 0;
  // The same for work that is queued as a whole before compute begins with it, as it is in a step where compute is behind
  // the host: else short work takes as long as the host takes to give it. Where the host waits for compute before Stop,
  // compute begins earlier.
  virtual void StartQueued() { Start(); }
  virtual void Stop() = 0;
  // Whether compute has done all that was marked: Collect then waits for nothing. Nor does this.
  virtual bool Passed() = 0;
  // The times from each start to its stop since the last Collect, in order. Waits until compute has done all that was
  // marked.
  virtual std::vector<Nanos> Collect() = 0;
};

// For compute that is the calling thread's: the steady clock.
std::unique_ptr<StageTimer> MakeSteadyTimer();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_STAGE_TIMER_H_
